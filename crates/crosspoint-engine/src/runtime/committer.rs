//! The one thread that decides and commits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::board::Load;
use super::clock::Clock;
use super::engine::Engine;
use super::failing::Hindered;
use super::inbox::{Inbox, Letter, Mail};
use super::purge::{Purger, Stepped};
use super::release::{self, Release};
use crate::core::{Batch, Command, Core, Effect, Mode, Origin, Reply, Room, Spec};
use crate::id::Seq;
use crate::machine::Action;
use crate::retention::{Ended, Rule};
use crate::store::{Fault, Store};
use crate::time::Time;

/// So often it is looked at whether the store is still ours, also where nothing is written.
const LOOK_EVERY: Duration = Duration::from_secs(50);

pub(super) struct Committer {
    pub(super) core: Core,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) engine: Engine,
    inbox: Arc<Inbox>,
    settled: Settled,
    mode: Mode,
    /// What is removed of jobs that need no longer be kept.
    pub(super) purger: Purger,
    /// What agents reported while nothing could be committed.
    pub(super) kept: VecDeque<Letter>,
    /// What agents said at once, for the next round.
    at_once: Vec<Letter>,
    /// When a commit last failed.
    pub(super) tried_at: Instant,
    /// Jobs whose rows do not say that they have ended, and cannot be made to.
    pub(super) unrepairable: BTreeSet<Seq>,
    /// The last number whose row could not be written: another job takes the next.
    pub(super) passed_over: Seq,
    /// When it was last looked at whether the store is still ours.
    looked_at: Instant,
    /// Whether the core holds something that is not on disk, because a commit failed.
    pub(super) stale: bool,
    /// By how many microseconds the clock has jumped over all starts, and by how many that is not on disk.
    jumped_micros: i64,
    unwritten_jump_micros: i64,
    releases: UnboundedSender<Release>,
    /// Whether nothing more can be done: nobody carries out what is committed, or the store is another's.
    pub(super) dead: bool,
}

/// Which round it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// That of our start, in which what was under way is taken up.
    First,
    /// One after it.
    Later,
}

/// What the operator has settled.
pub(super) struct Settled {
    pub(super) agents: Vec<Spec>,
    pub(super) room: Room,
    pub(super) mode: Mode,
    pub(super) retention: Rule,
}

impl Committer {
    /// Loads what the store knows and takes up what was under way. When it returns, everything is as if we had never been
    /// gone.
    pub(super) fn start(
        mut store: Store,
        engine: Engine,
        inbox: Arc<Inbox>,
        settled: Settled,
    ) -> Result<Committer, Fault> {
        let mut clock = Clock::new();
        let mode = settled.mode.clone();
        let is_server = mode == Mode::Serve;
        if is_server {
            store.serve();
        }
        // What only visits a store removes nothing from it.
        let rule = if is_server { settled.retention } else { Rule::FOR_EVER };
        let wall = clock.look().now;
        let mut jumps = store.jumps()?;
        // Where an orchestrator was alive at a time that is yet to come, the clock was set back meanwhile: a jump like any other.
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
            settled,
            purger: Purger::new(is_server),
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
        committer.engine.board().post_agents(committer.core.agents());
        committer.engine.metrics().took_up(committer.core.jobs());
        committer.decide_and_commit(Vec::new(), Round::First).map_err(|(fault, _)| fault)?;
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
                Mail::Closed => return self.end(),
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

    /// What is left is committed, and that this is the end.
    fn end(mut self) {
        let said = std::mem::take(&mut self.at_once);
        if !said.is_empty() {
            self.round(said);
        }
        // What agents reported while nothing could be committed has one last chance.
        if !self.kept.is_empty() {
            let _ = self.try_again();
        }
        let is_server = self.mode == Mode::Serve;
        let now = self.clock.now();
        let batch = Batch {
            alive_at: is_server.then_some(now),
            // What only visits a store says nothing of how others have ended.
            is_clean_end: is_server,
            ..Batch::default()
        };
        if self.store.has_written() {
            // Should it fail, the next start believes that we were killed.
            let _ = self.store.commit(&batch);
        }
    }

    fn patience(&mut self) -> Option<Duration> {
        if !self.at_once.is_empty() {
            return Some(Duration::ZERO);
        }
        if self.engine.board().fault().is_some() {
            return Some(super::failing::PAUSE);
        }
        let now = self.clock.now();
        let purge = self.purger.patience(self.core.ended(), now).unwrap_or(Duration::MAX);
        // At least once a minute the clock is looked at, in case it jumped.
        Some(self.core.alarm(now).map_or(Duration::MAX, |at| at.since(now)).min(purge).min(Duration::from_secs(60)))
    }

    /// One step at most, after what was waiting was committed. Where the store is full this is also what makes room.
    fn purge(&mut self) {
        if self.looked_at.elapsed() >= LOOK_EVERY {
            // Whoever has nothing to write would not learn of it otherwise.
            self.looked_at = Instant::now();
            if let Err(fault) = self.store.look() {
                return self.failed(Vec::new(), fault);
            }
        }
        let now = self.clock.now();
        let stepped = self.purger.step(&mut self.store, self.core.ended(), now);
        self.engine.board().set_overfull(self.purger.is_overfull());
        let step = match stepped {
            Stepped::Done(step) => step,
            Stepped::Idle => return,
            Stepped::GaveUp => return self.engine.board().purging_given_up(),
            Stepped::Lost(fault) => return self.failed(Vec::new(), fault),
        };
        for (hash, seq) in step.keys {
            self.core.release_key(hash, seq);
        }
        self.engine.board().purged(step.jobs);
    }

    /// Decides everything that is waiting, commits once, and lets it out.
    fn round(&mut self, letters: Vec<Letter>) {
        if let Err((fault, letters)) = self.decide_and_commit(letters, Round::Later) {
            self.failed(letters, fault);
        }
    }

    /// The same; gives the letters back where nothing of them could be committed. What happens to one job and cannot be written keeps
    /// nobody else waiting: see [`Hindered`].
    pub(super) fn decide_and_commit(
        &mut self,
        mut letters: Vec<Letter>,
        which: Round,
    ) -> Result<(), (Fault, Vec<Letter>)> {
        if self.stale
            && let Err(unreadable) = self.rebuild(which)
        {
            return Err((unreadable, letters));
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
            let replies = self.decide(&letters, now, &mut batch);
            let fault = match self.commit(&batch, letters.len()) {
                Ok(()) => {
                    if which == Round::First {
                        // At once, and not with what follows: whoever starts us may look before that.
                        let _ = self.engine.board().post(self.core.jobs().cloned());
                    }
                    self.released(batch, letters.into_iter().zip(replies).collect());
                    return Ok(());
                }
                Err(fault) => fault,
            };
            self.stale = true;
            match self.go_round(&mut hindered, fault, &batch, letters, which)? {
                Some(left) => letters = left,
                None => return Ok(()),
            }
        }
    }

    /// Writes a batch, and keeps count of what that takes.
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

    /// The time; if the clock jumped, everything that is timed moves along. That is told again until it is on disk.
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
        self.core.committed(&batch);
        let only_in_memory = batch.touched.iter().filter(|seq| !batch.jobs.contains_key(seq));
        let mut unwritten: Vec<_> = only_in_memory.filter_map(|seq| self.core.job(*seq).cloned()).collect();
        // Whoever waits for a job whose row has only now been told that it ended learns so here.
        let repaired = batch.repaired.iter().filter_map(|seq| self.engine.readers().job_at(*seq).ok().flatten());
        unwritten.extend(repaired.map(Arc::new));
        self.ask_at_once(&mut batch);
        let load = self.core.agents().map(Load::of).collect();
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

    /// A core that knows what the disk knows, and nothing of what failed.
    pub(super) fn rebuild(&mut self, which: Round) -> Result<(), Fault> {
        // What is on disk is from before a jump that is not.
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
        self.purger.begin_anew();
        self.stale = false;
        Ok(())
    }
}

/// What the store knows. `now` is the time by the clock that what is on disk knows of, `wall` by the one that has jumped since.
fn origin(
    store: &Store,
    settled: &Settled,
    mode: Mode,
    (now, wall): (Time, Time),
    mut ended: Ended,
) -> Result<Origin, Fault> {
    let loaded = store.load_telling(|seq, at| ended.note_again(seq, at, wall))?;
    if !loaded.unrepaired.is_empty() {
        tracing::error!(jobs = loaded.unrepaired.len(), "jobs have an outcome and did not say so; they are put right");
    }
    Ok(Origin {
        agents: settled.agents.clone(),
        members: loaded.members,
        present: std::collections::BTreeMap::new(),
        standings: loaded.standings,
        jobs: loaded.jobs,
        keys: loaded.keys,
        last_seq: loaded.last_seq,
        ended,
        unrepaired: loaded.unrepaired,
        room: settled.room,
        mode,
        end: loaded.end,
        visited: loaded.visited,
        alive_at: loaded.alive_at,
        now,
    })
}
