//! The committing thread: the one thread that decides and commits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::time::Time;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::clock::Clock;
use super::engine::Engine;
use super::failing::Hindered;
use super::inbox::{Inbox, Pending, Taken};
use super::origin::origin;
use super::published::Load;
use super::purge::{Purger, Stepped};
use super::purge_audit::AuditPurger;
use super::release::{self, Release};
use crate::audit::Deed;
use crate::core::{Batch, Command, Core, Effect, Mode, Reply, Room, Spec};
use crate::id::{Ids, Seq};
use crate::machine::Action;
use crate::retention::{Ended, Rule};
use crate::store::{Fault, Store};

/// How often it is checked whether the store still belongs to this process, also where nothing is written.
const LOOK_EVERY: Duration = Duration::from_secs(50);

pub(super) struct Committer {
    pub(super) core: Core,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) engine: Engine,
    inbox: Arc<Inbox>,
    settled: Settled,
    mode: Mode,
    /// Removes jobs that need no longer be kept.
    pub(super) purger: Purger,
    audit_purger: AuditPurger,
    /// Reports of agents that came while nothing could be committed.
    pub(super) kept: VecDeque<Pending>,
    /// Results that agents gave at once, for the next round.
    at_once: Vec<Pending>,
    /// When a commit last failed.
    pub(super) tried_at: Instant,
    /// Jobs whose rows do not say that they have ended, and cannot be corrected.
    pub(super) unrepairable: BTreeSet<Seq>,
    /// The last job number whose row could not be written: the next job takes a later one.
    pub(super) passed_over: Seq,
    /// When it was last checked whether the store still belongs to this process.
    looked_at: Instant,
    /// Whether the core holds something that is not on disk, because a commit failed.
    pub(super) stale: bool,
    /// By how many microseconds the clock has jumped over all starts, and how much of that is not on disk.
    jumped_micros: i64,
    unwritten_jump_micros: i64,
    releases: UnboundedSender<Release>,
    /// Whether the thread has to end: there is no task to carry out what is committed, or the store belongs to another
    /// process.
    pub(super) dead: bool,
}

/// Which round it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// The round at the start, in which work that was under way is taken up.
    First,
    /// Any later round.
    Later,
}

/// What the operator configured.
pub(super) struct Settled {
    pub(super) agents: Vec<Spec>,
    pub(super) room: Room,
    pub(super) mode: Mode,
    /// What makes the ids of jobs.
    pub(super) ids: Ids,
    pub(super) retention: Rule,
    /// How long entries of the audit are kept; `None` keeps them for ever.
    pub(super) audit_age: Option<Duration>,
}

impl Committer {
    /// Loads the store and takes up the work that was under way. When it returns, everything is as if the orchestrator
    /// had never been down.
    pub(super) fn start(
        mut store: Store,
        engine: Engine,
        inbox: Arc<Inbox>,
        settled: Settled,
    ) -> Result<Committer, Fault> {
        let mut clock = Clock::new();
        let mode = settled.mode.clone();
        let is_server = mode.is_serve();
        if is_server {
            store.serve();
        }
        // A process that only visits a store removes nothing from it.
        let rule = if is_server { settled.retention } else { Rule::FOR_EVER };
        let wall = clock.look().now;
        let mut jumps = store.jumps()?;
        // If an orchestrator was alive at a time that is still to come, the clock was set back meanwhile. That counts
        // as a jump.
        let unwritten_jump_micros = jumps.set_back_micros(store.alive_at()?, wall);
        let now = wall.shifted(unwritten_jump_micros.saturating_neg());
        let jumped_micros = jumps.total_micros().saturating_add(unwritten_jump_micros);
        jumps.add(wall, jumped_micros);
        let origin = origin(&store, &settled, mode, (now, wall), Ended::new(rule, jumps))?;
        let releases = release::start(&engine);
        let mut committer = Committer {
            core: Core::new(origin),
            store,
            clock,
            engine,
            inbox,
            mode: settled.mode.clone(),
            purger: Purger::new(is_server),
            // A process that only visits a store removes nothing from it.
            audit_purger: AuditPurger::new(settled.audit_age.filter(|_| is_server)),
            settled,
            kept: VecDeque::new(),
            at_once: Vec::new(),
            tried_at: Instant::now(),
            unrepairable: BTreeSet::new(),
            passed_over: Seq(0),
            looked_at: Instant::now(),
            stale: false,
            jumped_micros,
            unwritten_jump_micros,
            releases,
            dead: false,
        };
        committer.show_mode();
        committer.engine.post_agents(&committer.core);
        committer.engine.metrics().took_up(committer.core.jobs());
        committer.decide_and_commit(Vec::new(), Round::First).map_err(|(fault, _)| fault)?;
        Ok(committer)
    }

    /// Publishes which jobs are driven, according to what is on disk, and keeps it for a core that is made anew.
    fn show_mode(&mut self) {
        self.mode = self.core.mode();
        self.engine.published().post_mode(&self.mode);
    }

    /// Runs until the inbox is closed and empty.
    pub(super) fn run(mut self) {
        while !self.dead {
            let wait_time = self.wait_time();
            match self.inbox.take(wait_time) {
                Taken::Closed => return self.end(),
                Taken::Commands(commands) => {
                    let mut all = std::mem::take(&mut self.at_once);
                    all.extend(commands);
                    if self.engine.published().fault().is_some() {
                        self.round_while_failing(all);
                    } else {
                        self.round(all);
                    }
                    self.purge();
                }
            }
        }
    }

    /// Commits what is left, and that this is a clean end.
    fn end(mut self) {
        let commands = std::mem::take(&mut self.at_once);
        if !commands.is_empty() {
            self.round(commands);
        }
        // Reports of agents that came while nothing could be committed get one last chance.
        if !self.kept.is_empty() {
            let _ = self.try_again();
        }
        let is_server = self.mode.is_serve();
        let now = self.clock.now();
        let batch = Batch {
            alive_at: is_server.then_some(now),
            // A process that only visits a store says nothing about how servers ended.
            is_clean_end: is_server,
            ..Batch::default()
        };
        if self.store.has_written() {
            // If this fails, the next start assumes that this process was killed.
            let _ = self.store.commit(&batch);
        }
    }

    fn wait_time(&mut self) -> Option<Duration> {
        if !self.at_once.is_empty() {
            return Some(Duration::ZERO);
        }
        if self.engine.published().fault().is_some() {
            return Some(super::failing::PAUSE);
        }
        let now = self.clock.now();
        let purge = self.purger.wait_time(self.core.ended(), now).unwrap_or(Duration::MAX);
        let purge = purge.min(self.audit_purger.wait_time().unwrap_or(Duration::MAX));
        // The clock is looked at at least once a minute, in case it jumped.
        Some(self.core.alarm(now).map_or(Duration::MAX, |at| at.since(now)).min(purge).min(Duration::from_secs(60)))
    }

    /// Takes at most one step of removing jobs, after everything that was waiting is committed. Where the store is
    /// full, this also makes room.
    fn purge(&mut self) {
        if self.looked_at.elapsed() >= LOOK_EVERY {
            // A process that has nothing to write would not notice otherwise.
            self.looked_at = Instant::now();
            if let Err(fault) = self.store.look() {
                return self.failed(Vec::new(), fault);
            }
        }
        let now = self.clock.now();
        if let Err(fault) = self.audit_purger.step(&mut self.store, self.core.ended().jumps(), now) {
            return self.failed(Vec::new(), fault);
        }
        let stepped = self.purger.step(&mut self.store, self.core.ended(), now);
        self.engine.published().set_overfull(self.purger.is_overfull());
        let step = match stepped {
            Stepped::Done(step) => step,
            Stepped::Idle => return,
            Stepped::GaveUp => return self.engine.published().purging_given_up(),
            Stepped::Lost(fault) => return self.failed(Vec::new(), fault),
        };
        for (hash, seq) in step.keys {
            self.core.release_key(hash, seq);
        }
        self.engine.published().purged(step.jobs);
    }

    /// Decides everything that is waiting, commits it once, and releases the results.
    fn round(&mut self, commands: Vec<Pending>) {
        if let Err((fault, commands)) = self.decide_and_commit(commands, Round::Later) {
            self.failed(commands, fault);
        }
    }

    /// Does the same, and returns the commands where none of them could be committed. A job whose changes cannot be
    /// written does not hold up the other jobs: see [`Hindered`].
    pub(super) fn decide_and_commit(
        &mut self,
        mut commands: Vec<Pending>,
        which: Round,
    ) -> Result<(), (Fault, Vec<Pending>)> {
        if self.stale
            && let Err(unreadable) = self.rebuild(which)
        {
            return Err((unreadable, commands));
        }
        let mut hindered = Hindered::default();
        loop {
            let mut batch = Batch::default();
            let now = self.look(&mut batch);
            for seq in hindered.aside() {
                self.core.set_aside(*seq, now, &mut batch);
            }
            if which == Round::First && self.mode == Mode::Serve {
                self.core.resume(now, &mut batch);
            }
            let replies = self.decide(&commands, now, &mut batch);
            let fault = match self.commit(&batch, commands.len()) {
                Ok(()) => {
                    if which == Round::First {
                        self.show_mode();
                        // Published here and not with the release, because the caller of [`Engine::start`] may look
                        // before that.
                        let _ = self.engine.published().post(self.core.jobs().cloned());
                    }
                    // A client that learns from this batch that commits work again may ask for something at once.
                    self.engine.published().set_fault(None);
                    self.released(batch, commands.into_iter().zip(replies).collect());
                    return Ok(());
                }
                Err(fault) => fault,
            };
            self.stale = true;
            match self.go_round(&mut hindered, fault, &batch, commands, which)? {
                Some(left) => commands = left,
                None => return Ok(()),
            }
        }
    }

    /// Writes a batch, and counts what that takes.
    fn commit(&mut self, batch: &Batch, commands: usize) -> Result<(), Fault> {
        let began = Instant::now();
        let committed = self.store.commit(batch);
        if committed.is_ok() {
            self.unwritten_jump_micros = 0;
        }
        match &committed {
            // Nothing was written, so nothing was waited for.
            Ok(()) if batch.is_empty() => {}
            Ok(()) => {
                self.engine.metrics().committed(commands, began.elapsed(), self.store.sync_time());
            }
            Err(_) => self.engine.metrics().commit_failed(),
        }
        committed
    }

    /// Returns the time. If the clock jumped, everything that is timed moves along. The core is told again in each
    /// round until the jump is on disk.
    fn look(&mut self, batch: &mut Batch) -> Time {
        let look = self.clock.look();
        if let Some(micros) = look.jump_micros {
            tracing::warn!(seconds = micros / 1_000_000, "the clock jumped; pauses and silences keep their length");
            self.jumped_micros = self.jumped_micros.saturating_add(micros);
            self.unwritten_jump_micros = self.unwritten_jump_micros.saturating_add(micros);
        }
        if self.unwritten_jump_micros != 0 {
            let (micros, total_micros) = (self.unwritten_jump_micros, self.jumped_micros);
            self.core.apply(&Command::ClockJumped { micros, total_micros }, look.now, batch);
        }
        look.now
    }

    fn decide(&mut self, commands: &[Pending], now: Time, batch: &mut Batch) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(commands.len());
        for Pending { command, by, .. } in commands {
            let reply = self.core.apply(command, now, batch);
            let audited = by.as_ref().and_then(|by| Some(Deed::of(command, &reply)?.by(by, now)));
            batch.audit.extend(audited);
            replies.push(reply);
        }
        self.core.settle(now, batch);
        replies
    }

    /// Releases what was decided, now that it is on disk: it is published, carried out and answered.
    fn released(&mut self, mut batch: Batch, answered: Vec<(Pending, Reply)>) {
        if !batch.taken.is_empty() {
            self.mode.take(&batch.taken);
            self.engine.published().post_taken(&batch.taken);
        }
        self.core.committed(&batch);
        if !batch.grants.is_empty() {
            // Published here and not with the release, so that what is found on disk later is never overwritten.
            self.engine.published().post_grants(self.core.grants());
        }
        let only_in_memory = batch.touched.iter().filter(|seq| !batch.jobs.contains_key(seq));
        let mut unwritten: Vec<_> = only_in_memory.filter_map(|seq| self.core.job(*seq).cloned()).collect();
        // Tasks that wait for a job whose row was corrected only now learn here that it has ended.
        let repaired = batch.repaired.iter().filter_map(|seq| self.engine.readers().job_at(*seq).ok().flatten());
        unwritten.extend(repaired.map(Arc::new));
        self.ask_at_once(&mut batch);
        let load = self.core.agents().map(Load::of).collect();
        // Without the task that receives this, nothing that is committed would be carried out, so the thread ends.
        self.dead |= self.releases.send(Release { batch, answered, unwritten, load }).is_err();
    }

    /// Collects results that agents can give at once. They need neither a task nor the inbox, and join what arrived
    /// during this commit.
    fn ask_at_once(&mut self, batch: &mut Batch) {
        let mut effects = std::mem::take(&mut batch.effects);
        effects.retain(|effect| {
            let Effect::Job { job, action: Action::Dispatch { attempt } } = effect else { return true };
            let command = batch.input(job.seq()).and_then(|input| self.engine.at_once(job, *attempt, input));
            let Some(command) = command else { return true };
            // No task waits for the reply: if the job was cancelled in this moment, it has its outcome.
            self.at_once.push(Pending { command, by: None, reply: oneshot::channel().0 });
            false
        });
        batch.effects = effects;
    }

    /// Makes a core that knows what is on disk, and nothing of what failed.
    pub(super) fn rebuild(&mut self, which: Round) -> Result<(), Fault> {
        // What is on disk is from before a jump that is not on disk.
        let wall = self.clock.now();
        let now = wall.shifted(self.unwritten_jump_micros.saturating_neg());
        let ended = self.core.ended().anew();
        let mut origin = origin(&self.store, &self.settled, self.mode.clone(), (now, wall), ended)?;
        origin.last_seq = origin.last_seq.max(self.passed_over);
        origin.unrepaired.retain(|seq| !self.unrepairable.contains(seq));
        self.core = match which {
            Round::First => Core::new(origin),
            Round::Later => self.core.made_anew(origin),
        };
        // A commit that is said to have failed may be on disk, with an agent that has joined by it.
        self.engine.post_agents(&self.core);
        self.purger.begin_anew();
        self.stale = false;
        Ok(())
    }
}
