//! A round of the committing thread, and the ways in which it can fail.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crosspoint_engine::breaker;
use crosspoint_engine::core::{AgentCommand, Batch, Command, Effect, Reply, Written};
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::State;
use crosspoint_engine::machine::{self, Action, Event};
use crosspoint_engine::policy::Policy;

use super::disk::Unwritten;
use super::model::Model;
use super::rule::{Verdict, ensure};
use super::world::{Lost, World};

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Through,
    CommitFails,
    CrashBefore,
    /// The round is on disk, and only this many of its effects were carried out.
    CrashAfter(usize),
}

impl World {
    fn letters(&mut self) -> Vec<Command> {
        let most = if self.dice.percent(30) { 1 } else { 8 };
        let mut letters = Vec::new();
        while letters.len() < most
            && let Some(first) = self.mail.first_entry().filter(|first| first.key().0 <= self.model.now)
        {
            letters.push(first.remove());
        }
        letters
    }

    fn fate(&mut self) -> Fate {
        if self.dice.percent(self.faults.fail_commit) {
            return Fate::CommitFails;
        }
        if !self.dice.percent(self.faults.crash) {
            return Fate::Through;
        }
        if self.dice.percent(50) { Fate::CrashBefore } else { Fate::CrashAfter(self.dice.below(4) as usize) }
    }

    /// One round of the committing thread, which may be its first.
    pub(crate) fn round(&mut self) -> Verdict {
        self.rounds += 1;
        let was_lost = std::mem::replace(&mut self.lost, Lost::Nothing);
        let letters = match was_lost {
            Lost::Nothing => {
                let mut letters = self.letters();
                letters.extend(self.grant_letters());
                letters
            }
            Lost::Commit => {
                self.remake();
                std::mem::take(&mut self.kept)
            }
            Lost::Life => {
                self.begin_life()?;
                Vec::new()
            }
        };
        let fate = self.fate();
        if was_lost == Lost::Nothing {
            let jump = self.roll_jump();
            self.jump(jump);
        }
        let before = (fate != Fate::Through || !self.disk.cursed.is_empty()).then(|| self.model.clone());
        let begins = was_lost == Lost::Life;
        let mut batch = Batch::default();
        let replies = self.decide(&letters, &BTreeSet::new(), begins, &mut batch)?;
        self.count(match fate {
            Fate::Through => "round",
            Fate::CommitFails => "commit failed",
            Fate::CrashBefore => "crash before commit",
            Fate::CrashAfter(_) => "crash after commit",
        });
        if fate != Fate::Through {
            self.say(|| format!("{fate:?}"));
        }
        match (fate, before) {
            (Fate::CommitFails, Some(before)) => {
                self.fails(&batch, before);
                self.lost = Lost::Commit;
                if begins {
                    // A start that cannot commit is no start.
                    self.die(&[]);
                }
                self.kept = if begins { Vec::new() } else { letters.into_iter().filter(is_report).collect() };
                // Nothing of the round is published.
                self.check_grants()
            }
            (Fate::CrashBefore, Some(before)) => {
                // The jump that was not seen becomes part of the next start's jump, which is unseen anyway.
                self.model = Model { now: self.model.now, offset: self.model.offset, ..before };
                self.die(&letters);
                Ok(())
            }
            (Fate::Through | Fate::CommitFails | Fate::CrashBefore | Fate::CrashAfter(_), before) => {
                let decided = Decided { letters, replies, batch, fate, begins };
                self.commit(decided, before.as_ref())
            }
        }
    }

    /// Writes what was decided. A job that cannot be written is set aside, and everything is decided anew.
    fn commit(&mut self, mut decided: Decided, before: Option<&Model>) -> Verdict {
        let mut aside = BTreeSet::new();
        loop {
            let seq = match self.disk.commit(&decided.batch, &mut self.claim) {
                Ok(()) => return self.committed(decided),
                Err(Unwritten::Overtaken) => return Err("the only writer was overtaken".into()),
                Err(Unwritten::Wrong(wrong)) => return Err(wrong),
                Err(Unwritten::Job(seq)) => seq,
            };
            ensure!(aside.insert(seq), "job {} is in the way although it is set aside", seq.0);
            self.count("set aside");
            self.say(|| format!("job {} cannot be written", seq.0));
            let before = before.cloned().ok_or("a curse that came during a round")?;
            // A core that is made anew within a life still knows that it rests.
            let resting = before.resting || (self.model.resting && !decided.begins);
            self.model = Model { now: self.model.now, offset: self.model.offset, resting, ..before };
            if decided.begins {
                self.make_core();
            } else {
                self.remake();
            }
            decided.letters.retain(|letter| !is_about(letter, seq));
            decided.batch = Batch::default();
            let letters = std::mem::take(&mut decided.letters);
            decided.replies = self.decide(&letters, &aside, decided.begins, &mut decided.batch)?;
            decided.letters = letters;
        }
    }

    fn committed(&mut self, decided: Decided) -> Verdict {
        let Decided { letters, replies, batch, fate, .. } = decided;
        self.core.committed(&batch);
        if !batch.grants.is_empty() {
            self.publish_grants();
        }
        (self.ghost, self.unborn, self.unwritten) = (None, None, 0);
        self.is_not_overtaken()?;
        let visits = self.model.held.is_some();
        for seq in batch.jobs.keys() {
            self.model.jobs.get_mut(seq).into_iter().for_each(|job| job.written(visits));
        }
        self.tally_batch(&batch);
        self.model.check(&self.core, &self.disk)?;
        self.check_grants()?;
        self.model.note_waits();
        let carried_out = if let Fate::CrashAfter(some) = fate { some } else { usize::MAX };
        for effect in batch.effects.into_iter().take(carried_out) {
            self.carry_out(effect);
        }
        if let Fate::CrashAfter(_) = fate {
            // No caller was told that anything was accepted.
            self.die(&[]);
            return Ok(());
        }
        for (letter, reply) in letters.iter().zip(replies) {
            self.answered(letter, reply)?;
        }
        self.purge()?;
        self.rest_or_stop()
    }

    fn tally_batch(&mut self, batch: &Batch) {
        let poisoned = |written: &&Written| matches!(written.job.state, State::Poisoned) && !written.entries.is_empty();
        for _ in batch.jobs.values().filter(poisoned) {
            self.count("poisoned");
        }
        for entry in batch.jobs.values().flat_map(|written| &written.entries) {
            self.count(entry.what.name());
            if let What::Ended(outcome) = &entry.what
                && let Some((failure, _)) = outcome.why()
            {
                self.count(failure.name());
            }
        }
        for effect in &batch.effects {
            self.count(match effect {
                Effect::Check { .. } => "check",
                Effect::Job { action: Action::Dispatch { .. }, .. } => "dispatch",
                Effect::Job { action: Action::Resume { .. }, .. } => "resume",
                Effect::Job { action: Action::Stop { .. }, .. } => "stop",
                Effect::Job { action: Action::Deliver { .. }, .. } => "deliver",
                Effect::Job { action: Action::Mark { .. }, .. } => "mark",
            });
        }
        for (_, _, violation) in &batch.violations {
            self.count(match violation.what {
                Cow::Borrowed(what) => what,
                Cow::Owned(_) => "a rule that an agent says was broken",
            });
        }
    }

    fn answered(&mut self, letter: &Command, reply: Reply) -> Verdict {
        match (letter, reply) {
            (Command::Submit(_), Reply::Accepted(job)) => {
                self.model.jobs.get_mut(&job.seq()).into_iter().for_each(|known| known.acknowledged = true);
                Ok(())
            }
            (Command::Submit(submission), Reply::Known(seq)) => self.submit_known(submission, seq, false),
            (Command::Submit(submission), Reply::MayBeOf(seq)) => self.submit_known(submission, seq, true),
            (Command::Submit(submission), Reply::Claimed) => self.told_of_names(submission),
            (Command::Job(id, event), Reply::NotLive) => self.came_late(id.seq(), event),
            (_, _) => Ok(()),
        }
    }

    /// Checks that nothing after the outcome changes anything.
    fn came_late(&mut self, seq: Seq, event: &Event) -> Verdict {
        let Some(row) = self.disk.jobs.get(&seq) else {
            ensure!(self.model.jobs.get(&seq).is_none_or(|job| job.purged), "an event for no job");
            return Ok(());
        };
        let Ok(step) = machine::step(row, event.clone(), self.model.wall(), &Policy::DEFAULT) else { return Ok(()) };
        ensure!(step.entries.is_empty() && step.actions.is_empty(), "something follows the outcome of job {}", seq.0);
        ensure!(step.job.outcome() == row.outcome() && row.outcome().is_some(), "the outcome of job {} changed", seq.0);
        Ok(())
    }
}

struct Decided {
    letters: Vec<Command>,
    replies: Vec<Reply>,
    batch: Batch,
    fate: Fate,
    /// Whether it is the first round of a life.
    begins: bool,
}

fn is_about(command: &Command, seq: Seq) -> bool {
    match command {
        Command::Job(id, _) | Command::Report { id, .. } | Command::TakeUp(id) => id.seq() == seq,
        Command::Submit(_)
        | Command::Find(..)
        | Command::Agent(..)
        | Command::Join(_)
        | Command::Told(_)
        | Command::Grant(_)
        | Command::Audit(_)
        | Command::Violation(..)
        | Command::ClockJumped { .. }
        | Command::Rest => false,
    }
}

/// Whether a command is kept when a commit fails, because its sender would not repeat it.
fn is_report(command: &Command) -> bool {
    match command {
        Command::Job(_, event) | Command::Report { event, .. } => {
            !matches!(event, Event::Cancel | Event::Answer { .. } | Event::Release)
        }
        Command::Agent(_, AgentCommand::Drain(_) | AgentCommand::Forget) => false,
        Command::Agent(_, AgentCommand::Breaker(event)) => {
            !matches!(event, breaker::Event::Open | breaker::Event::Close)
        }
        Command::Submit(_) | Command::Find(..) | Command::TakeUp(_) | Command::Join(_) | Command::Told(_) => false,
        Command::Grant(_) | Command::Audit(_) => false,
        Command::Agent(..) | Command::Violation(..) | Command::ClockJumped { .. } | Command::Rest => true,
    }
}
