//! The core decides and the model watches: every command, and everything that is stored and done because of it.

use std::collections::{BTreeMap, BTreeSet};

use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{AgentCommand, Batch, Command, Effect, Rejected, Reply, Share, Submission};
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;

use super::hear::Must;
use super::known::{Cause, Known};
use super::members::Due;
use super::model::Model;
use super::rule::{Fuse, Verdict, ensure};
use super::world::World;

/// How much of a batch the model has seen.
#[derive(Default)]
struct Seen {
    entries: BTreeMap<Seq, usize>,
    effects: usize,
    checks: usize,
}

impl World {
    /// Lets the core decide everything, while the model watches.
    pub(crate) fn decide(
        &mut self,
        letters: &[Command],
        aside: &BTreeSet<Seq>,
        begins: bool,
        batch: &mut Batch,
    ) -> Result<Vec<Reply>, String> {
        let mut seen = Seen::default();
        let now = self.model.wall();
        if self.unwritten != 0 {
            let (micros, total_micros) = (self.unwritten, self.jumped);
            self.core.apply(&Command::ClockJumped { micros, total_micros }, now, batch);
        }
        for seq in aside {
            self.core.set_aside(*seq, now, batch);
            self.model.jobs.get_mut(seq).into_iter().for_each(|job| (job.aside, job.was_aside) = (true, true));
        }
        self.do_effects(batch, &mut seen)?;
        if begins && self.model.held.is_none() {
            self.core.resume(now, batch);
            self.absorb(&Cause::Started, batch, &mut seen)?;
            self.expect_checks(batch, &mut seen, |model, agent| model.fuses[agent] == Fuse::Checking)?;
        }
        let mut replies = Vec::new();
        for letter in letters {
            replies.push(self.apply(letter, now, batch, &mut seen)?);
        }
        self.core.settle(now, batch);
        self.absorb(&Cause::Settled, batch, &mut seen)?;
        Ok(replies)
    }

    fn apply(&mut self, letter: &Command, now: Time, batch: &mut Batch, seen: &mut Seen) -> Result<Reply, String> {
        self.say(|| shown(letter));
        let wrong = |wrong: String| format!("{wrong}, after {}", shown(letter));
        match letter {
            Command::Submit(submission) => {
                let reply = self.core.apply(letter, now, batch);
                self.submitted(submission, &reply).map_err(wrong)?;
                Ok(reply)
            }
            // The simulation never looks up a job, because looking changes nothing.
            Command::Find(..) => Ok(self.core.apply(letter, now, batch)),
            Command::Job(id, event) => {
                let heard = self.model.hears(id.seq(), event);
                let reply = self.core.apply(letter, now, batch);
                self.follows(id.seq(), heard, batch, seen).map_err(wrong)?;
                Ok(reply)
            }
            Command::Agent(name, command) => {
                let agent = self.model.agent_index(name).ok_or("a command for nobody")?;
                let due = self.model.hears_of_agent(agent, *command);
                self.count(told(*command, due));
                let reply = self.core.apply(letter, now, batch);
                self.is_due(due, &reply).map_err(wrong)?;
                Ok(reply)
            }
            Command::Join(member) => {
                let agent = self.model.agent_index(&member.spec.name).ok_or("nobody joins")?;
                let (due, what) = self.model.hears_of_join(agent, member);
                self.count(what);
                let reply = self.core.apply(letter, now, batch);
                self.is_due(due, &reply).map_err(wrong)?;
                Ok(reply)
            }
            Command::Report { agent, grip, id, event } => {
                let agent = self.model.agent_index(agent).ok_or("a report of nobody")?;
                let heard = self.model.hears_report(id.seq(), agent, *grip, event);
                let reply = self.core.apply(letter, now, batch);
                self.follows(id.seq(), heard, batch, seen).map_err(wrong)?;
                Ok(reply)
            }
            Command::TakeUp(id) => self.take_up(id.seq(), letter, now, batch, seen).map_err(wrong),
            Command::Rest => {
                self.model.resting = true;
                Ok(self.core.apply(letter, now, batch))
            }
            Command::Told(id) => {
                let reply = self.core.apply(letter, now, batch);
                self.is_told(*id, &reply).map_err(wrong)?;
                Ok(reply)
            }
            Command::Grant(command) => {
                let reply = self.core.apply(letter, now, batch);
                self.granted(command, &reply).map_err(wrong)?;
                Ok(reply)
            }
            Command::Audit(_) | Command::Violation(..) | Command::ClockJumped { .. } => {
                Ok(self.core.apply(letter, now, batch))
            }
        }
    }

    fn take_up(
        &mut self,
        seq: Seq,
        letter: &Command,
        now: Time,
        batch: &mut Batch,
        seen: &mut Seen,
    ) -> Result<Reply, String> {
        let cause = self.model.hears_take_up(seq);
        let takes = matches!(cause, Cause::Started);
        let reply = self.core.apply(letter, now, batch);
        self.absorb_job(seq, &cause, batch, seen)?;
        let work = self.model.jobs.get(&seq).map(|job| job.request.work.clone());
        // A health check that was under way when a process was killed is made again.
        self.expect_checks(batch, seen, |model, agent| {
            let is_taker = model.known[agent] && model.specs[agent].works.iter().any(|one| Some(one) == work.as_ref());
            takes && is_taker && model.fuses[agent] == Fuse::Checking
        })?;
        self.do_effects(batch, seen)?;
        if takes {
            self.count("taken up");
        }
        Ok(reply)
    }

    /// Takes in what followed from an event of a job.
    fn follows(&mut self, seq: Seq, (cause, must): (Cause, Must), batch: &Batch, seen: &mut Seen) -> Verdict {
        self.absorb_job(seq, &cause, batch, seen)?;
        self.expect_check_of_drop(batch, seen)?;
        self.do_effects(batch, seen)?;
        self.model.must(seq, must)
    }

    fn submitted(&mut self, submission: &Submission, reply: &Reply) -> Verdict {
        let keyed = submission.hashes.key.is_some();
        match reply {
            Reply::Accepted(job) => {
                let seq = job.seq();
                let charged = self.model.charged(&submission.request);
                ensure!(self.full(submission, charged).is_none(), "more jobs than there may be");
                let takes = |agent| self.model.takes(agent, &submission.request);
                ensure!((0..self.specs.len()).any(takes), "no agent takes it");
                ensure!(self.model.jobs.keys().last().is_none_or(|last| *last < seq), "a number was given twice");
                self.takes_names(submission, seq)?;
                self.model.jobs.insert(seq, Known::new(job.request.clone(), charged, self.model.now));
                self.model.live.push(seq);
            }
            Reply::Claimed => self.claims_names(submission)?,
            Reply::MayBeOf(seq) => {
                ensure!(submission.repeats.as_ref().is_some_and(|repeats| repeats.seq != *seq), "another job is it");
                ensure!(!submission.others.contains(&self.other(*seq)), "it is known to be another");
            }
            Reply::Known(seq) => {
                ensure!(self.model.jobs.contains_key(seq) && keyed, "known as no job");
                ensure!(!submission.others.contains(&self.other(*seq)), "known as a job that is known to be another");
            }
            Reply::Rejected(Rejected::Full { share, .. }) => {
                self.count(match share {
                    Share::All => "full",
                    Share::Work => "full of a work",
                    Share::Agent => "full for an agent",
                    Share::Caller => "full of a caller",
                });
                let charged = self.model.charged(&submission.request);
                ensure!(self.full(submission, charged) == Some(*share), "rejected: {reply:?}");
            }
            Reply::Rejected(rejected) => {
                let pinned = submission.request.pinned.as_deref().and_then(|name| self.model.agent_index(name));
                let known = pinned.is_some_and(|agent| self.model.known[agent]);
                let takes = |agent| self.model.takes_work(agent, &submission.request);
                let is_its_work = pinned.is_some_and(takes);
                let is_addressed = |agent| self.model.is_addressed(agent, &submission.request);
                let mut takers = (0..self.specs.len()).filter(|agent| takes(*agent));
                let right = match rejected {
                    Rejected::UnknownAgent => !known,
                    Rejected::NotItsWork => known && !is_its_work,
                    Rejected::WrongType => (pinned.is_none() || is_its_work) && !takers.any(is_addressed),
                    Rejected::TooManyNames => self.has_too_many_names(submission),
                    // The first agent is always present, and takes both works.
                    // No stages are asked for here.
                    Rejected::UnknownWork | Rejected::ParentEnded | Rejected::Full { .. } => false,
                };
                ensure!(right, "rejected: {reply:?}");
                if *rejected == Rejected::WrongType {
                    self.count("addressed to no agent");
                }
            }
            Reply::Job(_)
            | Reply::Refused(_)
            | Reply::NotTheirs
            | Reply::NotLive
            | Reply::Done
            | Reply::NoSuchAgent
            | Reply::Configured
            | Reply::Present
            | Reply::Crowded
            | Reply::OtherContract
            | Reply::Grant(_)
            | Reply::NameTaken
            | Reply::NoSuchGrant
            | Reply::Unusable(_) => {
                return Err(format!("a submission was answered with {reply:?}"));
            }
        }
        Ok(())
    }

    /// The share that is full, if there is no room for one more job.
    fn full(&self, submission: &Submission, charged: Option<usize>) -> Option<Share> {
        let room = self.model.room;
        let live = || self.model.live.iter().map(|seq| &self.model.jobs[seq]);
        let of_work = live().filter(|job| job.request.work == submission.request.work).count();
        let of_agent = live().filter(|job| job.charged.is_some() && job.charged == charged).count();
        let counts = [
            (Share::All, live().count(), room.jobs),
            (Share::Work, of_work, room.of_work),
            (Share::Agent, of_agent, room.of_agent),
        ];
        counts.into_iter().find(|(_, count, most)| count >= most).map(|(share, _, _)| share)
    }

    fn absorb_job(&mut self, seq: Seq, cause: &Cause, batch: &Batch, seen: &mut Seen) -> Verdict {
        let Some(written) = batch.jobs.get(&seq) else { return Ok(()) };
        let from = seen.entries.insert(seq, written.entries.len()).unwrap_or(0);
        for entry in &written.entries[from..] {
            self.model.stored(seq, entry, cause).map_err(|wrong| format!("job {}: {wrong}", seq.0))?;
        }
        Ok(())
    }

    /// Takes in what settling or a start has stored. Started attempts come last, after the breakers have been told.
    fn absorb(&mut self, cause: &Cause, batch: &Batch, seen: &mut Seen) -> Verdict {
        let is_start = |what: &What| matches!(what, What::Started { .. });
        let mut starts = Vec::new();
        for (seq, written) in &batch.jobs {
            let from = seen.entries.insert(*seq, written.entries.len()).unwrap_or(0);
            for entry in &written.entries[from..] {
                if is_start(&entry.what) {
                    starts.push((*seq, entry));
                    continue;
                }
                self.say(|| format!("  job {} {}", seq.0, entry.what.name()));
                self.model.stored(*seq, entry, cause).map_err(|wrong| format!("job {}: {wrong}", seq.0))?;
            }
        }
        let now = self.model.now;
        if let Cause::Settled = cause {
            let due = |fuse: &Fuse| matches!(fuse, Fuse::Open(Some(until)) if *until <= now);
            self.expect_checks(batch, seen, |model, agent| due(&model.fuses[agent]))?;
            self.model.end_pauses();
        }
        let mut starters = Vec::new();
        for (seq, entry) in starts {
            self.say(|| format!("  job {} {:?}", seq.0, entry.what));
            ensure!(self.model.drives(seq), "job {} is not ours to drive", seq.0);
            let suspect = self.model.jobs[&seq].is_suspect();
            ensure!(!suspect || !self.model.waits_for_suspect(seq), "two suspects at a time");
            self.model.stored(seq, entry, cause).map_err(|wrong| format!("job {}: {wrong}", seq.0))?;
            starters.push(self.model.jobs[&seq].agent);
        }
        for agent in starters {
            let (running, capacity) = (self.model.running(agent), self.model.capacity[agent]);
            ensure!(running <= capacity as usize, "{} has too many jobs", self.specs[agent].name);
        }
        self.do_effects(batch, seen)
    }

    /// Checks that exactly these breakers want a check; they are half open from then on.
    fn expect_checks(&mut self, batch: &Batch, seen: &mut Seen, which: impl Fn(&Model, usize) -> bool) -> Verdict {
        for index in 0..self.specs.len() {
            let wanted = which(&self.model, index);
            let name = &self.specs[index].name;
            let checks = |effect: &Effect| matches!(effect, Effect::Check { agent } if agent == name);
            let found = batch.effects[seen.checks..].iter().filter(|effect| checks(effect)).count();
            ensure!(found == usize::from(wanted), "{found} checks of {name}, {:?}", self.model.fuses[index]);
            if wanted {
                self.model.fuses[index] = Fuse::Checking;
            }
        }
        seen.checks = batch.effects.len();
        Ok(())
    }

    /// Checks that a check is made because of a dropped connection, if it must be.
    fn expect_check_of_drop(&mut self, batch: &Batch, seen: &mut Seen) -> Verdict {
        if self.model.check_wanted.is_some() {
            self.count("check of a drop");
        }
        self.model.expect_check_of_drop(batch, seen.checks)?;
        seen.checks = batch.effects.len();
        Ok(())
    }

    fn do_effects(&mut self, batch: &Batch, seen: &mut Seen) -> Verdict {
        for effect in &batch.effects[seen.effects..] {
            self.model.done(effect)?;
        }
        seen.effects = batch.effects.len();
        Ok(())
    }
}

fn shown(command: &Command) -> String {
    match command {
        Command::Submit(submission) => {
            format!("submit {} of {}", submission.request.request_id, submission.request.work)
        }
        Command::Find(hash, _) => format!("find {}", hash.0),
        Command::Job(id, event) => format!("job {} {event:?}", id.seq().0),
        Command::TakeUp(id) => format!("take up {}", id.seq().0),
        Command::Agent(name, command) => format!("{name} {command:?}"),
        Command::Join(member) => format!("{} joins for {:?}", member.spec.name, member.spec.works),
        Command::Told(id) => format!("told of {}", id.seq().0),
        Command::Grant(command) => format!("{command:?}"),
        Command::Audit(deed) => format!("{deed:?}"),
        Command::Violation(seq, violation) => format!("violation of {}: {}", seq.0, violation.what),
        Command::Report { agent, grip, id, event } => format!("{agent} ({grip:?}) of job {} {event:?}", id.seq().0),
        Command::ClockJumped { micros, .. } => format!("jump by {micros}"),
        Command::Rest => "rest".to_owned(),
    }
}

/// The name under which a command for an agent is counted.
fn told(command: AgentCommand, due: Due) -> &'static str {
    match (command, due) {
        (AgentCommand::Capacity(0), Due::Done) => "went away",
        (AgentCommand::Forget, Due::Done) => "forgotten",
        (AgentCommand::Forget, Due::Present) => "not forgotten",
        (_, Due::NoSuchAgent) => "not known",
        (_, _) => "told",
    }
}
