//! All jobs and all agents, and what a command does to them: pure, like the machine of one job that it is built on.
//!
//! The core is what one orchestrator knows. The code that drives it gives it commands and the time, commits the
//! [`Batch`] that results, and only then carries out the batch's effects and sends the replies. The core never waits
//! and never fails. If a commit fails, the core is dropped and made anew from what is on disk. The runtime drives it
//! with a database and a clock, the simulation with a model and dice.

mod agents;
mod aside;
mod batch;
mod children;
mod clock;
mod command;
mod driven;
mod fairness;
mod grants;
mod look;
mod members;
mod names;
mod owed;
mod report;
mod room;
mod suspects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use crate::breaker;
use crate::grant::Grants;
use crate::id::{Ids, SEQ_MAX, Seq};
use crate::job::{Job, Request, State};
use crate::keys::Keys;
use crate::machine::{self, Action, End, Event, Refused};
use crate::policy::{Policy, Recovery};
use crate::queue::Queues;
use crate::retention::Ended;
pub use agents::{Agent, AgentCommand, INTERNAL, Spec, Standing};
pub use batch::{Accepted, Batch, Effect, Written};
pub use clock::ALIVE_PERIOD;
use clock::is_timed;
pub use command::{Command, Mode, Origin, Rejected, Repeats, Reply, Submission};
pub use grants::GrantCommand;
pub use members::{MEMBERS_MAX, Member, Membership, Presence};
pub use report::Grip;
pub(crate) use report::NEVER_HAD;
pub use room::{Room, Share};

/// Everything that one orchestrator knows about its jobs and agents.
#[derive(Debug)]
pub struct Core {
    jobs: BTreeMap<Seq, Live>,
    keys: Keys,
    queues: Queues,
    alarms: BTreeSet<(Time, Seq)>,
    agents: BTreeMap<Arc<str>, Agent>,
    /// The agents that take each work. The name of a work is stored here once and shared by all jobs that have it.
    works: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// The jobs that are stages of other jobs, by the ids of those. None has ended.
    children: BTreeMap<Uuid, BTreeSet<Seq>>,
    next_seq: Seq,
    ids: Ids,
    last_accepted_at: Time,
    /// The first job that this orchestrator drives. Jobs before it are driven by another process, except those in
    /// `taken`.
    driven_from: Seq,
    taken: BTreeSet<Seq>,
    /// Stages that were there at the start, and that their jobs have not come to again since. Nothing of them is begun.
    behind: BTreeSet<Seq>,
    resting: bool,
    shares: room::Shares,
    /// Queued jobs that are suspected of crashing the orchestrator, and suspects that agents have: one suspect begins
    /// at a time.
    suspects: BTreeSet<Seq>,
    suspects_running: BTreeSet<Seq>,
    /// Suspects that were under way together when the orchestrator last crashed. Each of them begins only while no
    /// other suspect runs.
    doubtful: BTreeSet<Seq>,
    /// The jobs that have ended and are still kept.
    ended: Ended,
    /// When it was last written that the orchestrator is alive.
    alive_at: Time,
    /// How the orchestrator before this one ended.
    end: End,
    /// Jobs that another process has driven since then. That end did not cut them short.
    visited: BTreeSet<Seq>,
    /// Jobs that have an outcome although their rows do not say so.
    unrepaired: Vec<Seq>,
    /// The presence that agents had before commands that are not committed yet changed it.
    presence_before: BTreeMap<Arc<str>, Option<Presence>>,
    /// Who may come in with which token. Readers share it, so it is copied when it changes.
    grants: Arc<Grants>,
}

/// A job that has not ended.
#[derive(Debug)]
struct Live {
    job: Arc<Job>,
    alarm: Option<Time>,
    /// The agent whose share of the room the job takes.
    charged: Option<Arc<str>>,
}

impl Core {
    /// Makes a core that knows what the store knows. Nothing moves before [`Core::resume`].
    pub fn new(origin: Origin) -> Core {
        let next_seq = Seq(origin.last_seq.0 + 1);
        let none = BTreeSet::new;
        let (driven_from, taken, behind) = match origin.mode {
            Mode::Serve => (Seq(0), none(), none()),
            Mode::ServeBut { behind } => (Seq(0), none(), behind),
            Mode::Held => (next_seq, none(), none()),
            Mode::HeldBefore { first, taken } => (first, taken, none()),
        };
        let mut core = Core {
            jobs: BTreeMap::new(),
            keys: origin.keys,
            queues: Queues::default(),
            alarms: BTreeSet::new(),
            agents: BTreeMap::new(),
            works: BTreeMap::new(),
            children: BTreeMap::new(),
            next_seq,
            ids: origin.ids,
            last_accepted_at: Time::default(),
            resting: false,
            driven_from,
            taken,
            behind,
            shares: room::Shares::new(origin.room),
            suspects: BTreeSet::new(),
            suspects_running: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            ended: origin.ended,
            alive_at: origin.alive_at.unwrap_or_default(),
            end: origin.end,
            visited: origin.visited,
            unrepaired: origin.unrepaired,
            presence_before: BTreeMap::new(),
            grants: Arc::new(origin.grants.into_iter().collect()),
        };
        for spec in origin.agents {
            core.add_agent(spec, origin.now);
        }
        for member in origin.members {
            core.add_member(&member, &origin.present, origin.now);
        }
        for (name, standing) in origin.standings {
            if let Some(agent) = core.agents.get_mut(&name) {
                agent.standing = Standing { breaker: standing.breaker.bound_by(origin.now), ..standing };
            }
        }
        let away_micros = origin.alive_at.map_or(0, |at| origin.now.0.saturating_sub(at.0));
        for mut job in origin.jobs {
            // Jobs that another process is to drive are left as they are.
            if core.driven_from == Seq(0) {
                let pause = machine::pause(&job);
                job.come_back(origin.now, away_micros, pause);
            }
            core.add_job(job, origin.now);
        }
        core
    }

    /// Makes a core from what is on disk, in place of this one, whose last batch could not be committed. The disk knows
    /// neither which agents are present nor that the core rests, so both are taken over: no agent has left because a
    /// disk was full.
    #[must_use]
    pub fn made_anew(&self, origin: Origin) -> Core {
        // The orchestrator ran all the time and has not ended.
        let (written, now) = (origin.alive_at, origin.now);
        let (present, alive_at, end, visited) = (self.present(), Some(now), self.end, self.visited.clone());
        let mut core = Core::new(Origin { present, alive_at, end, visited, ..origin });
        core.alive_at = written.unwrap_or_default();
        core.resting = self.resting;
        core.see_as(self);
        core.doubtful.clone_from(&self.doubtful);
        core
    }

    /// Adds a job that was read from disk.
    fn add_job(&mut self, mut job: Job, now: Time) {
        let seq = job.seq();
        if let State::Running(running) | State::Waiting { running, .. } = &mut job.state {
            (running.heard_at, running.timed_from, running.taken_up_at) = (now, now, Some(now));
        }
        self.insert(Arc::new(job));
        self.count(seq, 1);
        self.watch(seq);
    }

    fn insert(&mut self, job: Arc<Job>) {
        let charged = self.charged(&job.request);
        self.shares.change(&job.request, charged.as_ref(), 1);
        self.add_child(&job.request);
        self.jobs.insert(job.seq(), Live { job, alarm: None, charged });
    }

    fn remove(&mut self, seq: Seq) {
        if let Some(live) = self.jobs.remove(&seq) {
            self.shares.change(&live.job.request, live.charged.as_ref(), -1);
            self.remove_child(&live.job.request);
        }
    }

    /// Applies one command.
    pub fn apply(&mut self, command: &Command, now: Time, batch: &mut Batch) -> Reply {
        match command {
            Command::Submit(submission) => self.submit(submission, now, batch),
            Command::Find(hash, others) => self.keys.find(*hash, others).map_or(Reply::NotLive, Reply::Known),
            Command::Job(id, Event::Release) => self.release(*id, now, batch),
            Command::Job(id, event) => match self.jobs.get(&id.seq()) {
                Some(live) if live.job.id() == *id => match self.apply_event(id.seq(), event.clone(), now, batch) {
                    Ok(job) => Reply::Job(job),
                    Err(refused) => Reply::Refused(refused),
                },
                _ => Reply::NotLive,
            },
            Command::Report { agent, grip, id, event } => self.report(agent, *grip, *id, event, now, batch),
            Command::Agent(name, command) => self.command_agent(name, *command, now, batch),
            Command::TakeUp(id) => self.take_up(*id, now, batch),
            Command::Join(member) => self.join(member, now, batch),
            Command::Told(id) => self.told(*id, batch),
            Command::Grant(command) => self.command_grant(command, now, batch),
            // It changes nothing: only who did it is written.
            Command::Audit(_) => Reply::Done,
            Command::Violation(seq, violation) => {
                batch.violations.push((*seq, now, violation.clone()));
                Reply::Done
            }
            Command::ClockJumped { micros, total_micros } => {
                self.ended.jumped(now, *total_micros);
                self.shift(*micros, batch);
                Reply::Done
            }
            Command::Rest => {
                self.resting = true;
                Reply::Done
            }
        }
    }

    /// Applies everything that is due and hands out work. Called after the commands of a batch.
    pub fn settle(&mut self, now: Time, batch: &mut Batch) {
        while let Some(&(at, seq)) = self.alarms.first()
            && at <= now
        {
            self.alarms.remove(&(at, seq));
            if let Some(live) = self.jobs.get_mut(&seq) {
                live.alarm = None;
            }
            let _ = self.apply_event(seq, Event::Clock, now, batch);
        }
        let due = |(name, agent): (&Arc<str>, &Agent)| {
            agent.standing.breaker.alarm().filter(|at| *at <= now).map(|_| name.clone())
        };
        let due: Vec<Arc<str>> = self.agents.iter().filter_map(due).collect();
        for name in due {
            self.tell_breaker(&name, breaker::Event::Clock, now, batch);
        }
        self.hand_out(now, batch);
        batch.repaired.append(&mut self.unrepaired);
        let is_first = self.alive_at == Time::default() && !batch.is_empty();
        if is_first || self.alive_alarm().is_some_and(|at| at <= now) {
            self.is_alive(now, batch);
        }
        // A store without anything in it stays as it is.
        if self.ended.jumps().is_unwritten() && (self.next_seq > Seq(1) || !batch.is_empty()) {
            batch.jumps = Some(self.ended.jumps().clone());
        }
    }

    /// Notes that the batch is on disk.
    pub fn committed(&mut self, batch: &Batch) {
        for (seq, written) in &batch.jobs {
            if let Some(outcome) = written.job.outcome() {
                self.ended.note(*seq, outcome.at);
            }
        }
        if batch.jumps.is_some() {
            self.ended.jumps_written();
        }
        self.presence_before.clear();
    }

    fn submit(&mut self, submission: &Submission, now: Time, batch: &mut Batch) -> Reply {
        if let Some(reply) = self.claim_names(submission, batch) {
            return reply;
        }
        let mut known = submission.hashes.iter().filter_map(|hash| self.keys.find(hash, &submission.others));
        if let Some(seq) = known.next() {
            return Reply::Known(seq);
        }
        let request = &submission.request;
        if let Err(rejected) = self.check_parent(request).and_then(|()| self.check_route(request)) {
            return Reply::Rejected(rejected);
        }
        let charged = self.charged(request);
        if let Err(rejected) = self.shares.check(request, charged.as_ref(), self.jobs.len()) {
            return Reply::Rejected(rejected);
        }
        if self.next_seq.0 > SEQ_MAX {
            return Reply::Rejected(Rejected::Full { share: Share::All, most: self.jobs.len() });
        }
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0 + 1);
        // The times in ids do not go back, also when the clock does.
        self.last_accepted_at = self.last_accepted_at.max(now);
        let id = self.ids.make(seq, self.last_accepted_at, &request.caller);
        let request_id = if submission.nameless { id.to_string().into_boxed_str() } else { request.request_id.clone() };
        // A hundred thousand jobs share the names of a few works.
        let work =
            self.works.get_key_value(&request.work).map_or_else(|| request.work.clone(), |(work, _)| work.clone());
        let job = Job::accepted(Arc::new(Request { id, request_id, work, accepted_at: now, ..request.clone() }));
        for hash in submission.hashes.iter() {
            self.keys.claim(hash, seq);
        }
        let job = Arc::new(job);
        batch.accepted(&job, submission);
        self.insert(job.clone());
        self.watch(seq);
        self.step_of_parent(submission, now, batch);
        Reply::Accepted(job)
    }

    /// Applies an event to a job, and everything that follows from it: places with agents, queues, alarms, breakers.
    fn apply_event(&mut self, seq: Seq, event: Event, now: Time, batch: &mut Batch) -> Result<Arc<Job>, Refused> {
        let Some(live) = self.jobs.get(&seq) else { return Err(Refused::Ended(crate::job::Phase::Completed)) };
        let before = live.job.clone();
        if before.aside.is_some() && !matches!(event, Event::Cancel | Event::Release) {
            return Err(Refused::Aside);
        }
        let step = machine::step(&before, event, now, self.policy(&before))?;
        let job = Arc::new(step.job);
        self.unwatch(seq);
        self.count(seq, -1);
        if let Some(live) = self.jobs.get_mut(&seq) {
            live.job = job.clone();
        }
        self.count(seq, 1);
        batch.stepped(&job, step.entries);
        if step.rewritten || asked(&before) < asked(&job) || is_unasked(&before, &job) {
            // Giving an answer again is no event. But a core made anew that did not count it would take the next
            // question for this one. Taking a question back is not at once an event either. But a core made anew that
            // did not know of it would still ask the question.
            batch.rewritten(&job);
        }
        if let Some(violation) = step.violation {
            batch.violations.push((seq, now, violation));
        }
        if job.outcome().is_some() {
            self.remove(seq);
            if self.behind.remove(&seq) {
                batch.taken.insert(seq);
            }
            if before.aside.is_some() {
                batch.aside.insert(seq, None);
            }
            self.end_children(job.id().uuid(), now, batch);
        } else {
            self.watch(seq);
        }
        for action in step.actions {
            match action {
                Action::Mark { agent, mark } => self.tell_breaker(&agent, breaker::Event::Marked(mark), now, batch),
                Action::Dispatch { .. } | Action::Resume { .. } | Action::Stop { .. } | Action::Deliver { .. } => {
                    batch.effects.push(Effect::Job { job: job.clone(), action });
                }
            }
        }
        Ok(job)
    }

    fn policy(&self, job: &Job) -> &Policy {
        const NONE_YET: Policy = Policy::DEFAULT;
        // What an agent that is no longer configured did with its work cannot be known.
        const GONE: Policy = Policy { recovery: Recovery::Fail, ..Policy::DEFAULT };
        // A stage without its agent is left as it is, for an orchestrator that has the agent.
        const ELSEWHERE: Policy = Policy { total: Duration::MAX, ..GONE };
        match &job.agent {
            None => &NONE_YET,
            Some(_) if self.is_elsewhere(job) => &ELSEWHERE,
            Some(name) => self.agents.get(name).map_or(&GONE, |agent| &agent.spec.policy),
        }
    }
}

/// Whether the job no longer waits for a person, and goes on.
fn is_unasked(before: &Job, job: &Job) -> bool {
    matches!((&before.state, &job.state), (State::Waiting { .. }, State::Running(_)))
}

/// Returns how many questions the attempt under way has asked.
fn asked(job: &Job) -> Option<u32> {
    job.running().map(|running| running.asked)
}
