//! A round of the committing thread, and the ways in which it does not get through.

use std::borrow::Cow;

use crosspoint_engine::core::{AgentCommand, Batch, Command, Core, Effect, Origin, Reply};
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;
use crosspoint_engine::machine::{self, Action, Event};
use crosspoint_engine::policy::Policy;

use super::model::Model;
use super::rule::{Verdict, ensure};
use super::world::{Lost, World};

/// What becomes of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Through,
    CommitFails,
    CrashBefore,
    /// It is on disk, and only so many of its effects were carried out.
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
            Lost::Nothing => self.letters(),
            Lost::Commit(unseen) => {
                self.remake(unseen, false)?;
                std::mem::take(&mut self.kept)
            }
            Lost::Life => {
                let jump = self.roll_jump();
                self.model.offset += jump;
                self.remake(jump, true)?;
                Vec::new()
            }
        };
        let fate = self.fate();
        let before = (fate != Fate::Through).then(|| self.model.clone());
        let mut batch = Batch::default();
        let jump = if was_lost == Lost::Nothing { self.roll_jump() } else { 0 };
        let replies = self.decide(&letters, jump, was_lost == Lost::Life, &mut batch)?;
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
                let (now, offset) = (self.model.now, self.model.offset);
                self.model = Model { now, offset, ..before };
                // A start that cannot commit is no start.
                self.lost = if was_lost == Lost::Life { Lost::Life } else { Lost::Commit(jump) };
                if let Lost::Commit(unseen) = was_lost {
                    self.lost = Lost::Commit(unseen);
                }
                self.kept = letters.into_iter().filter(is_report).collect();
                Ok(())
            }
            (Fate::CrashBefore, Some(before)) => {
                // The jump that nobody saw is part of the next start's, which is unseen anyway.
                self.model = Model { now: self.model.now, ..before };
                self.die(&letters);
                Ok(())
            }
            (Fate::Through | Fate::CommitFails | Fate::CrashBefore | Fate::CrashAfter(_), _) => {
                self.committed(&letters, replies, batch, fate)
            }
        }
    }

    fn committed(&mut self, letters: &[Command], replies: Vec<Reply>, batch: Batch, fate: Fate) -> Verdict {
        self.disk.commit(&batch)?;
        self.tally_batch(&batch);
        self.model.check(&self.core, &self.disk)?;
        let carried_out = if let Fate::CrashAfter(some) = fate { some } else { usize::MAX };
        for effect in batch.effects.into_iter().take(carried_out) {
            self.carry_out(effect);
        }
        if let Fate::CrashAfter(_) = fate {
            // Nobody was told that anything was accepted.
            self.die(&[]);
            return Ok(());
        }
        for (letter, reply) in letters.iter().zip(replies) {
            self.answered(letter, reply)?;
        }
        Ok(())
    }

    fn tally_batch(&mut self, batch: &Batch) {
        for entry in batch.jobs.values().flat_map(|written| &written.entries) {
            self.count(entry.what.name());
            if let What::Ended(outcome) = &entry.what
                && let Some((failure, _)) = outcome.failure
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

    fn roll_jump(&mut self) -> i64 {
        if !self.dice.percent(self.faults.jump) {
            return 0;
        }
        self.count("jump");
        let size = self.dice.pick(&[2_000_000, 70_000_000, 3_600_000_000, 400 * 86_400_000_000]);
        if self.dice.percent(50) { size } else { -size }
    }

    fn die(&mut self, letters: &[Command]) {
        self.lost = Lost::Life;
        self.kept.clear();
        let mail = std::mem::take(&mut self.mail);
        let ghosts = self.dice.below(100);
        let of_ours = mail.into_iter().chain(letters.iter().cloned().map(|letter| ((self.model.now, 0), letter)));
        for ((at, _), letter) in of_ours.collect::<Vec<_>>() {
            // A health check dies with us; agents and callers may try again, or may have sent it long ago.
            let stays = match &letter {
                Command::Submit(_) => true,
                Command::Job(..) => self.dice.percent(ghosts),
                Command::Find(..)
                | Command::TakeUp(_)
                | Command::Agent(..)
                | Command::Join(_)
                | Command::Violation(..)
                | Command::ClockJumped(_)
                | Command::Rest => false,
            };
            if stays {
                let delay = (at - self.model.now).max(0);
                self.post(delay, letter);
            }
        }
    }

    fn remake(&mut self, unseen: i64, died: bool) -> Verdict {
        self.say(|| format!("made anew, died: {died}, jump unseen: {unseen}"));
        if died {
            self.model.everybody_is_away();
        }
        let origin = self.disk.origin(&self.settled, self.model.jobs_live_max, self.model.wall());
        let there = (0..self.specs.len()).filter(|index| self.model.joins[*index] && self.model.capacity[*index] > 0);
        let present = there.map(|index| (self.specs[index].name.clone(), self.model.capacity[index])).collect();
        self.core = Core::new(Origin { present, ..origin });
        for (seq, known) in &self.model.jobs {
            ensure!(!known.acknowledged || self.disk.jobs.contains_key(seq), "job {} was accepted and is gone", seq.0);
        }
        self.model.remake(&self.core, unseen, died)
    }

    fn answered(&mut self, letter: &Command, reply: Reply) -> Verdict {
        match (letter, reply) {
            (Command::Submit(_), Reply::Accepted(job)) => {
                self.model.jobs.get_mut(&job.seq()).into_iter().for_each(|known| known.acknowledged = true);
                Ok(())
            }
            (Command::Submit(submission), Reply::Known(seq)) => self.submit_known(submission, seq),
            (Command::Job(id, event), Reply::NotLive) => self.came_late(id.seq(), event),
            (_, _) => Ok(()),
        }
    }

    /// Nothing that comes after the outcome changes anything.
    fn came_late(&mut self, seq: Seq, event: &Event) -> Verdict {
        let Some(row) = self.disk.jobs.get(&seq) else { return Err("an event for no job".into()) };
        let Ok(step) = machine::step(row, event.clone(), self.model.wall(), &Policy::DEFAULT) else { return Ok(()) };
        ensure!(step.entries.is_empty() && step.actions.is_empty(), "something follows the outcome of job {}", seq.0);
        ensure!(step.job.outcome() == row.outcome() && row.outcome().is_some(), "the outcome of job {} changed", seq.0);
        Ok(())
    }
}

/// What is kept when a commit fails, because nobody would say it again.
fn is_report(command: &Command) -> bool {
    match command {
        Command::Job(_, Event::Cancel | Event::Answer { .. }) => false,
        Command::Submit(_) | Command::Find(..) | Command::TakeUp(_) => false,
        Command::Agent(_, AgentCommand::Drain(_) | AgentCommand::Forget) | Command::Join(_) => false,
        Command::Job(..) | Command::Agent(..) | Command::Violation(..) | Command::ClockJumped(_) | Command::Rest => {
            true
        }
    }
}
