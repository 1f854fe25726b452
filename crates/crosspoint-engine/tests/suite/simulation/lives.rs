//! Lives of an orchestrator: how they begin and end, what outlives them, and which other process believes that it is
//! alive.

use std::collections::BTreeSet;

use crosspoint_engine::claim::Claim;
use crosspoint_engine::core::{Batch, Command, Core, Mode};
use crosspoint_engine::id::Seq;
use crosspoint_engine::retention::{Ended, Rule};

use super::disk::Unwritten;
use super::model::Model;
use super::rule::{Verdict, ensure};
use super::world::{Lost, World};

impl World {
    /// Begins a life from what is on disk, at a time to which the clock may have jumped.
    pub(crate) fn begin_life(&mut self) -> Verdict {
        let rolled = self.roll_jump();
        // A jump that the life before saw and could not write counts as unseen.
        let unseen = rolled + self.unwritten;
        let alive = self.disk.alive_at.map(|at| self.model.steady(at) + self.unwritten);
        self.unborn = Some((self.model.clone(), unseen));
        self.model.offset += rolled;
        // If a process was alive at a time that is yet to come, the clock was set back, which is a jump like any other.
        self.unwritten = self.disk.jumps.set_back_micros(self.disk.alive_at, self.model.wall());
        (self.jumped, self.resting_for) = (self.disk.jumps.total_micros() + self.unwritten, None);
        self.has_jumped |= self.unwritten < 0;
        self.claim = Claim::Seen(self.disk.epoch);
        let visits = self.dice.percent(self.faults.visit);
        let first = Seq(self.disk.last_seq + 1);
        self.model.held = visits.then(|| (first, BTreeSet::new()));
        self.model.resting = false;
        self.model.end = self.disk.end();
        self.disk.serves = !visits;
        self.say(|| format!("a life begins; jump unseen: {unseen}, visits: {visits}"));
        if visits {
            self.count("visit");
        }
        self.model.all_agents_are_away();
        self.model.begin_life(alive, unseen, self.unwritten);
        self.make_core();
        for (seq, known) in &self.model.jobs {
            let there = known.purged || self.disk.jobs.contains_key(seq);
            ensure!(!known.acknowledged || there, "job {} was accepted and is gone", seq.0);
        }
        Ok(())
    }

    /// A life that ends before its first commit counts as if it had never begun.
    pub(crate) fn was_no_life(&mut self) {
        let Some((model, unseen)) = self.unborn.take() else { return };
        let (now, offset) = (self.model.now, self.model.offset);
        self.model = Model { now, offset, ..model };
        self.unwritten = unseen;
    }

    /// Makes the core of a life that begins.
    pub(crate) fn make_core(&mut self) {
        let (mode, rule) =
            if self.model.held.is_some() { (Mode::Held, Rule::FOR_EVER) } else { (Mode::Serve, self.rule) };
        let wall = self.model.wall();
        let now = wall.shifted(-self.unwritten);
        let mut jumps = self.disk.jumps.clone();
        jumps.add(wall, self.jumped);
        let ended = Ended::new(rule, jumps);
        let origin = self.disk.origin(&self.settled, self.model.room, mode, (now, wall), ended);
        self.core = Core::new(origin);
        self.publish_grants();
    }

    /// Makes a core in place of one whose batch could not be committed.
    pub(crate) fn remake(&mut self) {
        self.say(|| "made anew".to_owned());
        let mode = match &self.model.held {
            None => Mode::Serve,
            Some((first, taken)) => Mode::HeldBefore { first: *first, taken: taken.clone() },
        };
        // What is on disk is from before a jump that is not on disk.
        let wall = self.model.wall();
        let now = wall.shifted(-self.unwritten);
        let ended = self.core.ended().anew();
        let origin = self.disk.origin(&self.settled, self.model.room, mode, (now, wall), ended);
        self.core = self.core.made_anew(origin);
        self.publish_grants();
        self.model.remake();
    }

    pub(crate) fn jump(&mut self, micros: i64) {
        if micros != 0 {
            self.say(|| format!("jump by {micros}"));
            self.has_jumped = true;
            self.model.offset += micros;
            self.unwritten += micros;
            self.jumped += micros;
        }
    }

    pub(crate) fn roll_jump(&mut self) -> i64 {
        if !self.dice.percent(self.faults.jump) {
            return 0;
        }
        self.count("jump");
        let size = self.dice.pick(&[2_000_000, 70_000_000, 3_600_000_000, 400 * 86_400_000_000]);
        if self.dice.percent(50) { size } else { -size }
    }

    /// A commit fails. It may be on disk all the same, as a start after a crash finds out.
    pub(crate) fn fails(&mut self, batch: &Batch, before: Model) {
        let (now, offset) = (self.model.now, self.model.offset);
        self.ghost = None;
        if self.dice.percent(50) {
            let (mut disk, mut claim) = (self.disk.clone(), self.claim);
            if disk.commit(batch, &mut claim).is_ok() {
                let mut model = self.model.clone();
                let visits = model.held.is_some();
                for seq in batch.jobs.keys() {
                    model.jobs.get_mut(seq).into_iter().for_each(|job| job.written(visits));
                }
                self.ghost = Some((disk, model));
            }
        }
        self.model = Model { now, offset, ..before };
    }

    pub(crate) fn die(&mut self, letters: &[Command]) {
        self.lost = Lost::Life;
        self.kept.clear();
        if let Some((disk, model)) = self.ghost.take()
            && self.dice.percent(60)
        {
            self.count("there after all");
            self.say(|| "what could not be committed is there after all".to_owned());
            let (now, offset) = (self.model.now, self.model.offset);
            // Callers that were answered before that still have their answers.
            let told: Vec<Seq> =
                self.model.jobs.iter().filter(|(_, job)| job.acknowledged).map(|(seq, _)| *seq).collect();
            (self.disk, self.model) = (disk, Model { now, offset, ..model });
            for seq in told {
                self.model.jobs.get_mut(&seq).into_iter().for_each(|job| job.acknowledged = true);
            }
            (self.unborn, self.unwritten) = (None, 0);
        }
        self.was_no_life();
        self.rival = Some(self.claim);
        let mail = std::mem::take(&mut self.mail);
        let ghosts = self.dice.below(100);
        let of_ours = mail.into_iter().chain(letters.iter().cloned().map(|letter| ((self.model.now, 0), letter)));
        for ((at, _), letter) in of_ours.collect::<Vec<_>>() {
            // A health check dies with the process. Agents and callers may try again, or may have sent the command long
            // ago.
            let stays = match &letter {
                Command::Submit(_) => true,
                Command::Job(..) | Command::Report { .. } => self.dice.percent(ghosts),
                Command::Find(..)
                | Command::TakeUp(_)
                | Command::Agent(..)
                | Command::Join(_)
                | Command::Told(_)
                | Command::Grant(_)
                | Command::Audit(_)
                | Command::Violation(..)
                | Command::ClockJumped { .. }
                | Command::Rest => false,
            };
            if stays {
                let delay = (at - self.model.now).max(0);
                self.post(delay, letter);
            }
        }
    }

    /// Checks that an earlier process which does not know that it was overtaken writes nothing once this one has
    /// written.
    pub(crate) fn is_not_overtaken(&mut self) -> Verdict {
        let Some(mut rival) = self.rival.filter(|_| matches!(self.claim, Claim::Ours(_))) else { return Ok(()) };
        self.rival = None;
        let batch = Batch { alive_at: Some(self.model.wall()), ..Batch::default() };
        let written = self.disk.clone().commit(&batch, &mut rival);
        ensure!(matches!(written, Err(Unwritten::Overtaken)), "a writer of an old epoch wrote");
        self.count("overtaken");
        Ok(())
    }

    /// Now and then an operator stops the process: nothing is begun any more, and after a while the process ends.
    pub(crate) fn rest_or_stop(&mut self) -> Verdict {
        match self.resting_for {
            None if self.dice.percent(self.faults.stop) => {
                self.count("rested");
                self.resting_for = Some(self.dice.below(4));
                self.post(0, Command::Rest);
            }
            None => {}
            Some(0) if self.model.resting => self.end_cleanly()?,
            Some(rounds) => self.resting_for = Some(rounds.saturating_sub(1)),
        }
        Ok(())
    }

    fn end_cleanly(&mut self) -> Verdict {
        self.count("clean end");
        let serves = self.model.held.is_none();
        let batch = Batch { alive_at: serves.then(|| self.model.wall()), is_clean_end: serves, ..Batch::default() };
        if let Claim::Ours(_) = self.claim {
            let written = self.disk.commit(&batch, &mut self.claim);
            ensure!(written.is_ok(), "the last commit fails: {written:?}");
        }
        self.die(&[]);
        Ok(())
    }

    /// Removes jobs that were kept long enough: never sooner, and never a job that a caller could still repeat.
    pub(crate) fn purge(&mut self) -> Verdict {
        const MOST: usize = 4;
        if self.model.held.is_some() {
            return Ok(());
        }
        let now = self.model.wall();
        let due = self.core.ended().take(now, MOST);
        for seq in &due {
            self.say(|| format!("  job {} goes", seq.0));
            self.may_go(*seq).map_err(|wrong| format!("job {} is removed: {wrong}", seq.0))?;
            self.count("purged");
            for hash in self.disk.purge(*seq) {
                self.core.release_key(hash, *seq);
            }
            if let Some(job) = self.model.jobs.get_mut(seq) {
                job.purged = true;
            }
            self.model.keys.retain(|_, holder| holder != seq);
        }
        // Where the clock has jumped, a job may seem younger than it is.
        if due.len() < MOST && !self.has_jumped {
            let age = self.rule.age.map_or(i64::MAX / 4, super::rule::micros);
            let kept = |job: &&super::known::Known| job.outcome.is_some() && !job.purged;
            let old =
                self.model.jobs.values().filter(kept).find(|job| job.ended + age + age / 500 + 2_000 < self.model.now);
            ensure!(
                old.is_none(),
                "job {} stays too long, {:?}, {:?}",
                old.map_or(0, |job| job.request.id.seq().0),
                old.map(|job| self.model.now - job.ended),
                self.rule
            );
        }
        Ok(())
    }

    fn may_go(&self, seq: Seq) -> Verdict {
        let job = self.model.jobs.get(&seq).ok_or("it never was")?;
        ensure!(job.outcome.is_some() && !job.purged, "it has not ended, or is gone");
        let kept = self.model.jobs.values().filter(|job| job.outcome.is_some() && !job.purged).count() as u64;
        let age = self.model.now - job.ended;
        let by_age = self.rule.age.is_some_and(|most| age >= super::rule::micros(most));
        let by_count = self.rule.jobs.is_some_and(|most| kept > most) && age >= super::rule::micros(self.rule.age_min);
        ensure!(by_age || by_count, "{age} us after its end, and {kept} are kept: {:?}", self.rule);
        Ok(())
    }
}
