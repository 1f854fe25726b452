//! The one thread that decides and commits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::failure::{Dispatched, Failure};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::board::Load;
use super::clock::Clock;
use super::engine::Engine;
use super::inbox::{Answer, Inbox, Letter, Mail};
use super::purge::{Purger, Stepped};
use super::release::{self, Release};
use crate::core::{AgentCommand, Batch, Command, Core, Effect, Mode, Origin, Reply, Spec};
use crate::machine::{Action, Event, Failed};
use crate::retention::Rule;
use crate::store::{Fault, Store};
use crate::time::Time;

/// After a commit that failed the next is tried so much later.
const FAILING_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Committer {
    core: Core,
    store: Store,
    clock: Clock,
    engine: Engine,
    inbox: Arc<Inbox>,
    agents: Vec<Spec>,
    jobs_live_max: usize,
    mode: Mode,
    /// What is removed of jobs that need no longer be kept.
    purger: Purger,
    /// What agents reported while nothing could be committed.
    kept: VecDeque<Letter>,
    /// What agents said at once, for the next round.
    at_once: Vec<Letter>,
    /// When a commit last failed.
    tried_at: Instant,
    releases: UnboundedSender<Release>,
    /// Whether an end is near, and nothing more is handed out.
    resting: bool,
    /// Whether nobody carries out what is committed.
    dead: bool,
}

impl Committer {
    /// Loads what the store knows and takes up what was under way. When it returns, everything is as if we had never been
    /// gone.
    pub(super) fn start(
        store: Store,
        engine: Engine,
        inbox: Arc<Inbox>,
        agents: Vec<Spec>,
        jobs_live_max: usize,
        mode: Mode,
        retention: Rule,
    ) -> Result<Committer, Fault> {
        let mut clock = Clock::new();
        let mut purger = Purger::new((mode == Mode::Serve).then_some(retention));
        let core = Core::new(origin(&store, &agents, jobs_live_max, mode.clone(), clock.look().now, &mut purger)?);
        let kept = VecDeque::new();
        let releases = release::start(&engine);
        let mut committer = Committer {
            core,
            store,
            clock,
            engine,
            inbox,
            agents,
            jobs_live_max,
            mode,
            purger,
            kept,
            at_once: Vec::new(),
            tried_at: Instant::now(),
            releases,
            resting: false,
            dead: false,
        };
        let is_server = committer.mode == Mode::Serve;
        committer.show_mode();
        committer.engine.board().post_agents(committer.core.agents());
        committer.engine.metrics().took_up(committer.core.jobs());
        let mut batch = Batch::default();
        let now = committer.clock.look().now;
        if is_server {
            committer.core.resume(now, &mut batch);
        }
        committer.core.settle(now, &mut batch);
        committer.commit(&batch, 0)?;
        // At once, and not with what follows: whoever starts us may look before that.
        let _ = committer.engine.board().post(committer.core.jobs().cloned());
        committer.released(batch, Vec::new());
        Ok(committer)
    }

    /// Who drives which jobs, from what is on disk: for all to see, and for a core that is made anew.
    fn show_mode(&mut self) {
        self.mode = self.core.mode();
        if let Mode::HeldBefore { first, taken } = &self.mode {
            self.engine.board().post_held(*first, taken);
        }
    }

    /// Until the inbox is closed and empty.
    pub(super) fn run(mut self) {
        while !self.dead {
            let patience = self.patience();
            match self.inbox.take(patience) {
                Mail::Closed => {
                    let said = std::mem::take(&mut self.at_once);
                    if !said.is_empty() {
                        self.round(said);
                    }
                    // What agents reported while nothing could be committed has one last chance.
                    if !self.kept.is_empty() {
                        let _ = self.try_again();
                    }
                    return;
                }
                Mail::Letters(letters) => {
                    let mut all = std::mem::take(&mut self.at_once);
                    all.extend(letters);
                    if self.engine.board().fault().is_some() {
                        self.round_while_failing(all);
                    } else {
                        self.round(all);
                    }
                    self.purge();
                }
            }
        }
    }

    fn patience(&mut self) -> Option<Duration> {
        if !self.at_once.is_empty() {
            return Some(Duration::ZERO);
        }
        if self.engine.board().fault().is_some() {
            return Some(FAILING_PAUSE);
        }
        let now = self.clock.now();
        let purge = self.purger.patience(now).unwrap_or(Duration::MAX);
        // At least once a minute the clock is looked at, in case it jumped.
        Some(self.core.alarm().map_or(Duration::MAX, |at| at.since(now)).min(purge).min(Duration::from_secs(60)))
    }

    /// One step at most, after what was waiting was committed. Where the store is full this is also what makes room.
    fn purge(&mut self) {
        let now = self.clock.now();
        let step = match self.purger.step(&mut self.store, now) {
            Stepped::Done(step) => step,
            Stepped::Idle => return,
            Stepped::GaveUp => return self.engine.board().purging_given_up(),
        };
        for (hash, seq) in step.keys {
            self.core.release_key(hash, seq);
        }
        self.engine.board().purged(step.jobs);
    }

    /// Decides everything that is waiting, commits once, and lets it out.
    fn round(&mut self, letters: Vec<Letter>) {
        let mut batch = Batch::default();
        let now = self.look(&mut batch);
        let replies = self.decide(&letters, now, &mut batch);
        match self.commit(&batch, letters.len()) {
            Ok(()) => self.released(batch, letters.into_iter().zip(replies).collect()),
            Err(fault) => self.failed(letters, fault),
        }
    }

    /// Writes a batch, and keeps count of what that takes.
    fn commit(&mut self, batch: &Batch, commands: usize) -> Result<(), Fault> {
        let began = Instant::now();
        let committed = self.store.commit(batch);
        match &committed {
            // Nothing was written, so nothing was waited for.
            Ok(()) if batch.is_clean() => {}
            Ok(()) => self.engine.metrics().committed(commands, began.elapsed(), self.store.sync_time()),
            Err(_) => self.engine.metrics().commit_failed(),
        }
        committed
    }

    /// The time; if the clock jumped, everything that is timed moves along.
    fn look(&mut self, batch: &mut Batch) -> Time {
        let look = self.clock.look();
        if let Some(micros) = look.jump_micros {
            tracing::warn!(seconds = micros / 1_000_000, "the clock jumped; pauses and silences keep their length");
            self.core.apply(&Command::ClockJumped(micros), look.now, batch);
            self.purger.ended.jumped(micros);
        }
        look.now
    }

    fn decide(&mut self, letters: &[Letter], now: Time, batch: &mut Batch) -> Vec<Reply> {
        let replies = letters.iter().map(|letter| self.core.apply(&letter.command, now, batch)).collect();
        self.core.settle(now, batch);
        replies
    }

    /// What was decided is on disk: now it may be seen, done and told.
    fn released(&mut self, mut batch: Batch, answered: Vec<(Letter, Reply)>) {
        if !batch.taken.is_empty() {
            self.show_mode();
        }
        for (seq, written) in &batch.jobs {
            if let Some(outcome) = written.job.outcome() {
                self.purger.ended.note(*seq, outcome.at);
            }
        }
        let only_in_memory = batch.touched.iter().filter(|seq| !batch.jobs.contains_key(seq));
        let unwritten = only_in_memory.filter_map(|seq| self.core.job(*seq).cloned()).collect();
        self.ask_at_once(&mut batch);
        let load = self.core.agents().map(|agent| Load { running: agent.running, joined: agent.joined }).collect();
        // Without the task that takes it nothing that is committed would happen: then it is better not to go on.
        self.dead |= self.releases.send(Release { batch, answered, unwritten, load }).is_err();
    }

    /// What agents can say at once need not go through a task and the inbox: it joins what arrived during this commit.
    fn ask_at_once(&mut self, batch: &mut Batch) {
        let mut effects = std::mem::take(&mut batch.effects);
        effects.retain(|effect| {
            let Effect::Job { job, action: Action::Dispatch { attempt } } = effect else { return true };
            let said = batch.input(job.seq()).and_then(|input| self.engine.at_once(job, *attempt, input));
            let Some(command) = said else { return true };
            // Nobody waits for the answer: if the job was cancelled in this very moment, it has its outcome.
            self.at_once.push(Letter { command, reply: oneshot::channel().0 });
            false
        });
        batch.effects = effects;
    }

    /// Nothing of the batch is on disk, so nothing of it has happened. What the core made of it is thrown away with the core;
    /// what agents reported is kept, because they will not say it again.
    fn failed(&mut self, letters: Vec<Letter>, fault: Fault) {
        tracing::error!(error = %fault, "nothing can be committed; new work is refused until it can");
        let fault = Arc::new(fault);
        self.engine.board().set_fault(Some(fault.clone()));
        self.tried_at = Instant::now();
        self.keep_reports(letters, &fault);
    }

    fn keep_reports(&mut self, letters: Vec<Letter>, fault: &Arc<Fault>) {
        for letter in letters {
            self.resting |= matches!(letter.command, Command::Rest);
            if is_report(&letter.command) {
                self.kept.push_back(letter);
            } else {
                let _ = letter.reply.send(Answer::Failed(fault.clone()));
            }
        }
    }

    fn round_while_failing(&mut self, letters: Vec<Letter>) {
        if let Some(fault) = self.engine.board().fault() {
            self.keep_reports(letters, &fault);
        }
        if self.tried_at.elapsed() < FAILING_PAUSE {
            return;
        }
        self.tried_at = Instant::now();
        match self.try_again() {
            Ok(()) => tracing::info!("commits work again; new work is taken"),
            Err(fault) => self.engine.board().set_fault(Some(Arc::new(fault))),
        }
    }

    /// From what is on disk, and what was kept.
    fn try_again(&mut self) -> Result<(), Fault> {
        self.store.probe()?;
        self.rebuild()?;
        let kept: Vec<Letter> = self.kept.drain(..).collect();
        match self.commit_kept(kept) {
            Ok(()) => {}
            Err((Fault::Unwritable { .. }, kept)) => self.commit_singly(kept)?,
            Err((fault, kept)) => {
                self.kept.extend(kept);
                return Err(fault);
            }
        }
        self.engine.board().set_fault(None);
        Ok(())
    }

    /// A core that knows what the disk knows, and nothing of what failed.
    fn rebuild(&mut self) -> Result<(), Fault> {
        let now = self.clock.now();
        // Who is there is not on disk; and nobody has left because a disk was full.
        let here = |agent: &crate::core::Agent| agent.joined.is_some() && agent.capacity() > 0;
        let present = self.core.agents().filter(|agent| here(agent));
        let present = present.map(|agent| (agent.spec.name.clone(), agent.capacity())).collect();
        let purger = &mut self.purger;
        let origin = origin(&self.store, &self.agents, self.jobs_live_max, self.mode.clone(), now, purger)?;
        self.core = Core::new(Origin { present, ..origin });
        if self.resting {
            self.core.apply(&Command::Rest, now, &mut Batch::default());
        }
        Ok(())
    }

    fn commit_kept(&mut self, letters: Vec<Letter>) -> Result<(), (Fault, Vec<Letter>)> {
        let mut batch = Batch::default();
        let now = self.look(&mut batch);
        let replies = self.decide(&letters, now, &mut batch);
        match self.commit(&batch, letters.len()) {
            Ok(()) => {
                self.released(batch, letters.into_iter().zip(replies).collect());
                Ok(())
            }
            Err(fault) => Err((fault, letters)),
        }
    }

    /// One report can never be written, and must not keep the others from it for ever: its job ends as our failure.
    fn commit_singly(&mut self, letters: Vec<Letter>) -> Result<(), Fault> {
        let mut left: VecDeque<Letter> = letters.into();
        while let Some(letter) = left.pop_front() {
            self.rebuild()?;
            let Err((fault, failed)) = self.commit_kept(vec![letter]) else { continue };
            if !matches!(fault, Fault::Unwritable { .. }) {
                self.kept.extend(failed.into_iter().chain(left));
                return Err(fault);
            }
            tracing::error!(error = %fault, "a report cannot be written; its job ends");
            left.extend(failed.into_iter().filter_map(in_its_place));
        }
        self.rebuild()
    }
}

/// The end of a job in place of a report about it that cannot be written. What is no such report is dropped, and so is a failure: there
/// is nothing smaller to put in its place.
fn in_its_place(letter: Letter) -> Option<Letter> {
    let Command::Job(
        id,
        Event::Finish { attempt, result: Ok(_) } | Event::Output { attempt, .. } | Event::Ask { attempt, .. },
    ) = letter.command
    else {
        return None;
    };
    let failed = Failed::of(Failure::Internal, Dispatched::Yes);
    Some(Letter { command: Command::Job(id, Event::Finish { attempt, result: Err(failed) }), ..letter })
}

fn origin(
    store: &Store,
    agents: &[Spec],
    jobs_live_max: usize,
    mode: Mode,
    now: Time,
    purger: &mut Purger,
) -> Result<Origin, Fault> {
    purger.begin_anew();
    // What ended in the future ended by a clock that was wrong.
    let loaded = store.load_telling(|seq, at| purger.ended.note(seq, at.min(now)))?;
    Ok(Origin {
        agents: agents.to_vec(),
        members: loaded.members,
        present: BTreeMap::new(),
        standings: loaded.standings,
        jobs: loaded.jobs,
        keys: loaded.keys,
        last_seq: loaded.last_seq,
        jobs_live_max,
        mode,
        now,
    })
}

/// What nobody would say again if it were refused.
fn is_report(command: &Command) -> bool {
    match command {
        Command::Submit(_) | Command::Find(..) | Command::TakeUp(_) => false,
        Command::Job(_, event) => match event {
            Event::Cancel | Event::Answer { .. } => false,
            Event::Start { .. }
            | Event::Heard { .. }
            | Event::Progress { .. }
            | Event::Output { .. }
            | Event::Ask { .. }
            | Event::Unasked { .. }
            | Event::Finish { .. }
            | Event::Withdrawn { .. }
            | Event::Clock
            | Event::Interrupted => true,
        },
        Command::Agent(_, AgentCommand::Drain(_) | AgentCommand::Forget) | Command::Join(_) | Command::Rest => false,
        Command::Agent(_, AgentCommand::Breaker(_) | AgentCommand::Capacity(_)) => true,
        Command::Violation(..) | Command::ClockJumped(_) => true,
    }
}
