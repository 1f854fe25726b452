//! Commands that the engine is given, before it answers: the model decides on its own what each must lead to.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Status;
use crosspoint_engine::breaker;
use crosspoint_engine::core::{AgentCommand, Core, Grip};
use crosspoint_engine::id::Seq;
use crosspoint_engine::machine::Event;

use super::disk::Disk;
use super::known::{Cause, Life};
use super::members::Due;
use super::model::Model;
use super::rule::{Fuse, Verdict, Wish, ensure};

/// The state that a job must have reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Must {
    Anything,
    Completed,
    Cancelled,
    WithoutAgent,
    Asking,
    WithAgent,
}

impl Model {
    pub(crate) fn hears(&mut self, seq: Seq, event: &Event) -> (Cause, Must) {
        let now = self.now;
        if let Event::Release = event {
            return self.hears_release(seq);
        }
        let Some(job) = self.jobs.get_mut(&seq).filter(|job| job.outcome.is_none()) else {
            return (Cause::Heard, Must::Anything);
        };
        if job.aside && !matches!(event, Event::Cancel) {
            return (Cause::Heard, Must::Anything);
        }
        let mut listen = |attempt: u32| {
            let present = job.is_present(attempt);
            if let Life::With { heard } = &mut job.life
                && present
            {
                *heard = now;
            }
            present
        };
        match event {
            Event::Heard { attempt } => {
                listen(*attempt);
                (Cause::Heard, Must::Anything)
            }
            Event::Progress { attempt, progress } => {
                if listen(*attempt) {
                    job.heard_percent = progress.percent.or(job.heard_percent);
                }
                (Cause::Heard, Must::Anything)
            }
            Event::Output { attempt, .. } if listen(*attempt) => (Cause::Output(*attempt), Must::Anything),
            Event::Output { attempt, .. } => (Cause::Output(*attempt), Must::Anything),
            Event::Ask { attempt, question, answered } => {
                let present = listen(*attempt);
                let must =
                    if present { self.hears_question(seq, question.json().get(), *answered) } else { Must::Anything };
                (Cause::Asked, must)
            }
            Event::Unasked { attempt } => {
                let present = listen(*attempt);
                if !present || !matches!(job.life, Life::Asking { .. }) {
                    return (Cause::Heard, Must::Anything);
                }
                job.leave_asking(now);
                job.life = Life::With { heard: now };
                (Cause::Heard, Must::WithAgent)
            }
            Event::Remember { attempt, memory } => {
                if listen(*attempt) {
                    job.hears_memory(*attempt, String::from_utf8_lossy(&memory.0).into());
                }
                (Cause::Heard, Must::Anything)
            }
            Event::Step { attempt, .. } => {
                if listen(*attempt) {
                    job.cut_short = 0;
                }
                (Cause::Stepped(*attempt), Must::Anything)
            }
            Event::Finish { attempt, result } => self.hears_result(seq, *attempt, result),
            Event::Answer { answer, .. } => {
                let must = if let Life::Asking { .. } = job.life { Must::WithAgent } else { Must::Anything };
                (Cause::Answered(answer.get().into()), must)
            }
            Event::Cancel => (Cause::Cancelled, Must::Cancelled),
            Event::Withdrawn { attempt } => (Cause::Withdrawn(*attempt), job.hears_withdrawal(*attempt)),
            Event::Start { .. } | Event::Clock | Event::Interrupted(_) | Event::Release => {
                (Cause::Heard, Must::Anything)
            }
        }
    }

    /// An agent that joined reports on an attempt. Only attempts that it had count. If it has let go of the attempt,
    /// only a success or the end of an attempt that is over counts.
    pub(crate) fn hears_report(&mut self, seq: Seq, agent: usize, grip: Grip, event: &Event) -> (Cause, Must) {
        let nothing = (Cause::Heard, Must::Anything);
        let Some(job) = self.jobs.get(&seq).filter(|job| job.outcome.is_none()) else { return nothing };
        let attempt = event.attempt().unwrap_or(0);
        let had = (attempt as usize).checked_sub(1).and_then(|at| job.had.get(at));
        let success = matches!(event, Event::Finish { result: Ok(_), .. });
        let late = matches!(event, Event::Finish { .. }) && !job.is_present(attempt);
        if had != Some(&agent) || (grip == Grip::Lost && !success && !late) {
            return nothing;
        }
        self.hears(seq, event)
    }

    fn hears_release(&mut self, seq: Seq) -> (Cause, Must) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&seq).filter(|job| job.outcome.is_none()) else {
            return (Cause::Heard, Must::Anything);
        };
        if std::mem::replace(&mut job.aside, false) {
            job.begins_anew(now);
            if let Life::Paused { until: at } | Life::Asking { since: at, .. } = &mut job.life {
                *at = now;
            }
            if self.drives(seq) {
                self.jobs.get_mut(&seq).into_iter().for_each(|job| job.is_taken_up(now));
            }
            return (Cause::Released, Must::Anything);
        }
        if job.life == Life::Poisoned {
            (job.life, job.cut_short) = (Life::Queued, 0);
        }
        (Cause::Released, Must::Anything)
    }

    /// A job that no process drives is driven from now on.
    pub(crate) fn hears_take_up(&mut self, seq: Seq) -> Cause {
        let now = self.now;
        let is_live = self.jobs.get(&seq).is_some_and(|job| job.outcome.is_none());
        if !is_live || self.resting || self.drives(seq) {
            return Cause::Heard;
        }
        if let Some((_, taken)) = &mut self.held {
            taken.insert(seq);
        }
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.begins_anew(now);
            if !job.aside {
                job.is_taken_up(now);
            }
        }
        Cause::Started
    }

    /// A question that was answered before is not asked again.
    fn hears_question(&mut self, seq: Seq, question: &str, answered: Option<u32>) -> Must {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&seq) else { return Must::Anything };
        if answered.is_some_and(|answered| (answered as usize) < job.asked) {
            // The answer is on its way.
            return Must::Anything;
        }
        if matches!(&job.life, Life::Asking { question: asked, .. } if **asked == *question) {
            return Must::Asking;
        }
        if job.answers.get(job.asked).is_some_and(|(known, _)| **known == *question) {
            job.leave_asking(now);
            job.asked += 1;
            job.life = Life::With { heard: now };
            self.answered_again += 1;
            return Must::WithAgent;
        }
        Must::Asking
    }

    fn hears_result(
        &mut self,
        seq: Seq,
        attempt: u32,
        result: &Result<crosspoint_contracts::reply::Success, crosspoint_contracts::reply::Failed>,
    ) -> (Cause, Must) {
        let Some(job) = self.jobs.get_mut(&seq) else { return (Cause::Heard, Must::Anything) };
        let (present, made) = (job.is_present(attempt), (1..=job.attempts).contains(&attempt));
        let agent = job.agent;
        if present {
            job.wanted = None;
        }
        match result {
            Ok(success) => {
                if present {
                    self.mark(agent, false);
                }
                let must = if made { Must::Completed } else { Must::Anything };
                (Cause::Done(attempt, success.outputs.as_ref().map_or("", Body::get).into()), must)
            }
            Err(failed) => {
                let must = if present { Must::WithoutAgent } else { Must::Anything };
                if failed.has_died() {
                    return (Cause::Died(attempt), must);
                }
                let is_away = [Failure::Timeout, Failure::Unavailable].contains(&failed.failure);
                if present && is_away && failed.lost == Some(crosspoint_contracts::reply::Lost::Dropped) {
                    self.drops(agent);
                } else if present {
                    self.mark(agent, is_away);
                }
                (Cause::Failed(attempt, failed.failure, failed.dispatched, Wish::of(failed)), must)
            }
        }
    }

    /// Checks that the job is in the state that it must have reached.
    pub(crate) fn must(&self, seq: Seq, must: Must) -> Verdict {
        let Some(job) = self.jobs.get(&seq) else { return Ok(()) };
        let status = job.outcome.as_ref().map(|outcome| outcome.status);
        let so = match must {
            Must::Anything => true,
            Must::Completed => status == Some(Status::Completed),
            Must::Cancelled => status == Some(Status::Cancelled),
            Must::WithoutAgent => !job.has_agent(),
            Must::Asking => matches!(job.life, Life::Asking { .. }),
            Must::WithAgent => matches!(job.life, Life::With { .. }),
        };
        ensure!(so, "job {} must be {must:?}, and is {:?}, {status:?}", seq.0, job.life);
        Ok(())
    }

    pub(crate) fn hears_of_agent(&mut self, agent: usize, command: AgentCommand) -> Due {
        if !self.known[agent] {
            return Due::NoSuchAgent;
        }
        match command {
            AgentCommand::Drain(drained) => self.drained[agent] = drained,
            AgentCommand::Breaker(breaker::Event::Checked(health)) => {
                self.checked(agent, health == breaker::Health::Well);
            }
            AgentCommand::Breaker(breaker::Event::Open) => self.set_fuse(agent, Fuse::Open(None)),
            AgentCommand::Breaker(breaker::Event::Close) => self.set_fuse(agent, Fuse::Closed(0)),
            AgentCommand::Breaker(breaker::Event::Marked(_) | breaker::Event::Clock | breaker::Event::Interrupted) => {}
            AgentCommand::Capacity(capacity) => return self.hears_of_capacity(agent, capacity),
            AgentCommand::Forget => return self.hears_of_forgetting(agent),
        }
        Due::Done
    }

    /// Checks what holds whenever everything due has been done.
    pub(crate) fn check(&self, core: &Core, disk: &Disk) -> Verdict {
        ensure!(core.jobs().count() == self.live.len(), "the core has {} jobs", core.jobs().count());
        let alarm = core.alarm(self.wall()).map(|at| self.steady(at));
        // Another agent may allow less time than the last one did. Then the time is up as soon as the attempt has
        // started.
        let just_started = self.live.iter().any(|seq| self.jobs[seq].life == Life::With { heard: self.now });
        ensure!(just_started || alarm.is_none_or(|at| at > self.now), "it is looked at again and again: {alarm:?}");
        let alive = disk.alive_at.map_or(i64::MIN / 2, |at| self.steady(at));
        let told = self.held.is_some() || self.live.is_empty() || self.now - alive <= 5_000_000;
        ensure!(told, "it was last said {} us ago that we are alive", self.now - alive);
        let mut running = vec![0; self.specs.len()];
        for seq in &self.live {
            let job = &self.jobs[seq];
            self.check_job(*seq, core, disk).map_err(|wrong| format!("job {}: {wrong}", seq.0))?;
            if matches!(job.life, Life::With { .. }) && self.drives(*seq) {
                running[job.agent] += 1;
            }
        }
        for (index, spec) in self.specs.iter().enumerate() {
            let Some(agent) = core.agent(&spec.name).filter(|_| self.known[index]) else {
                ensure!(!self.known[index] && core.agent(&spec.name).is_none(), "{} was forgotten, or not", spec.name);
                continue;
            };
            ensure!(agent.capacity() == self.capacity[index], "{} takes {}", spec.name, agent.capacity());
            ensure!(
                agent.running == running[index],
                "{} has {} jobs, not {}",
                spec.name,
                agent.running,
                running[index]
            );
            let found = match agent.standing.breaker {
                breaker::Breaker::Closed { failures } => Fuse::Closed(failures),
                breaker::Breaker::Open { until: crosspoint_contracts::time::Time::NEVER } => Fuse::Open(None),
                breaker::Breaker::Open { until } => Fuse::Open(Some(self.steady(until))),
                breaker::Breaker::HalfOpen => Fuse::Checking,
            };
            ensure!(
                found == self.fuses[index],
                "the breaker of {} is {found:?}, not {:?}",
                spec.name,
                self.fuses[index]
            );
            ensure!(agent.standing.drained == self.drained[index], "{} is drained or not", spec.name);
            ensure!(agent.waiting as usize == self.waiting(index), "{} has {} that wait", spec.name, agent.waiting);
            if !self.resting && self.is_open_to_work(index) && running[index] < self.capacity[index] {
                // A suspect that must wait until it is alone makes the suspects behind it wait, too.
                let is_next = |seq: Seq| self.is_queued(seq) && self.drives(seq) && self.jobs[&seq].is_suspect();
                let waits = |seq: Seq| is_next(seq) && self.waits_for_suspect(seq);
                let held_up = |seq: Seq| {
                    self.jobs[&seq].is_suspect() && self.live.iter().any(|other| *other <= seq && waits(*other))
                };
                let idle = |seq: &&Seq| {
                    let job = &self.jobs[*seq];
                    self.is_queued(**seq) && self.drives(**seq) && self.may_have(index, job) && !held_up(**seq)
                };
                let idle = self.live.iter().find(|seq| idle(seq));
                ensure!(
                    idle.is_none(),
                    "{} has room, and job {:?} waits for it: {:?}",
                    spec.name,
                    idle,
                    idle.and_then(|seq| core.job(*seq))
                );
            }
        }
        self.check_members(disk)?;
        self.check_owed(disk)
    }

    fn check_job(&self, seq: Seq, core: &Core, disk: &Disk) -> Verdict {
        let job = &self.jobs[&seq];
        ensure!(!job.hurried, "more than ten progress events a second");
        if self.drives(seq) {
            let attempt = job.has_agent().then_some(job.attempts);
            ensure!(job.wanted == attempt, "agents are at attempt {:?}, the job at {attempt:?}", job.wanted);
            ensure!(!self.is_silent(job), "its agent was silent for too long");
            ensure!(!self.is_overdue(job), "the time of its attempt is up");
            let late = self.deadline(job).is_some_and(|deadline| self.now >= deadline);
            // Another agent may allow less time than the last one did. Then the job's time is up as soon as the attempt
            // has started.
            let just_started = job.life == Life::With { heard: self.now };
            ensure!(!late || just_started, "its time is up");
        }
        let found = core.job(seq).ok_or("the core has forgotten it")?;
        let row = disk.jobs.get(&seq).ok_or("the disk has forgotten it")?;
        let told = (found.attempts, found.retries, found.begun, found.events, found.output_bytes, found.answers.len());
        let stored = (row.attempts, row.retries, row.begun, row.events, row.output_bytes, row.answers.len());
        ensure!(told == stored, "the disk has {stored:?}, the core {told:?}");
        ensure!(found.memory == row.memory, "the disk remembers something else");
        ensure!(found.stays == job.stays && row.stays == job.stays, "it stays with its agent, or not");
        let asked = |job: &crosspoint_engine::job::Job| job.running().map(|running| running.asked);
        ensure!(asked(found) == asked(row), "the disk has {:?} questions, the core {:?}", asked(row), asked(found));
        ensure!((found.attempts, found.events) == (job.attempts, job.events), "the model has other counts");
        let memory = found.memory.as_ref().map(|memory| String::from_utf8_lossy(&memory.0));
        ensure!(memory.as_deref() == job.remembered(), "{memory:?} is remembered, not {:?}", job.remembered());
        ensure!(found.cut_short == job.cut_short, "cut short {} times, not {}", found.cut_short, job.cut_short);
        let poisoned = matches!(found.state, crosspoint_engine::job::State::Poisoned);
        ensure!(poisoned == (job.life == Life::Poisoned), "poisoned, or not: {:?}", job.life);
        ensure!(found.aside.is_some() == job.aside && disk.aside.contains_key(&seq) == job.aside, "aside, or not");
        Ok(())
    }
}

impl super::known::Known {
    /// An attempt is withdrawn. If it is the present one, no agent should be at it any longer.
    fn hears_withdrawal(&mut self, attempt: u32) -> Must {
        if !self.is_present(attempt) {
            return Must::Anything;
        }
        self.wanted = None;
        Must::WithoutAgent
    }

    /// The job's link wants this to be remembered. A job that gets further than where it began is not what kills the
    /// process (ALL-13).
    fn hears_memory(&mut self, attempt: u32, memory: Box<str>) {
        if self.remembered().is_some_and(|before| *before != *memory) {
            self.cut_short = 0;
        }
        self.memory = Some((attempt, memory));
    }

    /// All the job's time counts from now on.
    fn begins_anew(&mut self, now: i64) {
        (self.accepted, self.waited) = (now, 0);
        self.started = self.started.map(|_| now);
    }

    /// The process takes up the job's attempt, which goes on from here.
    fn is_taken_up(&mut self, now: i64) {
        if self.has_agent() {
            (self.taken_up, self.timed_from) = (Some(now), now);
        }
        if let Life::With { heard } = &mut self.life {
            *heard = now;
        }
    }
}
