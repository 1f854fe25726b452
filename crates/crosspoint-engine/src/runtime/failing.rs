//! What the committing thread does when a commit fails.
//!
//! There are two cases. If the disk is full or broken, nothing can be committed: new work is refused, and reports of
//! agents are kept, because agents will not send them again. If the disk is fine and one job's changes can never be
//! written, that job is set aside, and all other jobs go on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;

use super::committer::{Committer, Round};
use super::inbox::{Answer, Pending};
use crate::breaker;
use crate::core::{AgentCommand, Batch, Command};
use crate::id::Seq;
use crate::machine::Event;
use crate::store::Fault;

/// Pause before the next try after a commit that failed.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Most jobs of one round that may be set aside: more at a time are no accident of single rows.
const ASIDE_MAX: usize = 64;

/// Most numbers that are passed over in a round because something is in the place of their rows.
const PASSED_OVER_MAX: usize = 8;

/// The jobs that keep a round from being committed. The first time a job does, the report about it is replaced by an
/// internal failure. If that cannot be written either, or there was no report to replace, the job is set aside.
#[derive(Default)]
pub(super) struct Hindered {
    tamed: BTreeSet<Seq>,
    aside: BTreeSet<Seq>,
    rounds: usize,
}

/// Whether it was tried to commit a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    Yes,
    No,
}

impl Hindered {
    pub(super) fn aside(&self) -> &BTreeSet<Seq> {
        &self.aside
    }

    /// Whether another try is worthwhile.
    fn is_bearable(&self) -> bool {
        self.rounds < 2 * ASIDE_MAX
    }

    /// Counts a round after which the obstacle is gone, and returns the commands to decide again.
    fn once_more(&mut self, commands: Vec<Pending>) -> Vec<Pending> {
        self.rounds += 1;
        commands
    }

    /// Handles a job that was in the way, and returns the commands that are left to decide.
    fn by(&mut self, seq: Seq, commands: Vec<Pending>, fault: &Arc<Fault>) -> Vec<Pending> {
        self.rounds += 1;
        let (about, mut left): (Vec<Pending>, Vec<Pending>) =
            commands.into_iter().partition(|pending| is_about(pending, seq));
        let is_tamed = self.tamed.insert(seq) && about.iter().any(|pending| replacement(&pending.command).is_some());
        if is_tamed {
            tracing::error!(seq = seq.0, "a report cannot be written; its job ends");
        } else {
            tracing::error!(seq = seq.0, "what happens to a job cannot be written; it is set aside");
            self.aside.insert(seq);
        }
        for pending in about {
            match replacement(&pending.command).filter(|_| is_tamed) {
                Some(command) => left.push(Pending { command, ..pending }),
                // The sender of the command may have left.
                None => drop(pending.reply.send(Answer::Failed(fault.clone()))),
            }
        }
        left
    }
}

impl Committer {
    /// Returns the commands that are left to decide after a commit that failed, on a core that is made anew; `None`
    /// where there are none.
    pub(super) fn go_round(
        &mut self,
        hindered: &mut Hindered,
        fault: Fault,
        batch: &Batch,
        commands: Vec<Pending>,
        which: Round,
    ) -> Result<Option<Vec<Pending>>, (Fault, Vec<Pending>)> {
        let (true, Fault::Unwritable { job, .. }) = (hindered.is_bearable(), &fault) else {
            return Err((fault, commands));
        };
        let job = *job;
        let is_new = |seq: &Seq| batch.jobs.get(seq).is_some_and(|written| written.accepted.is_some());
        let new_job = job.filter(is_new);
        self.passed_over = self.passed_over.max(new_job.unwrap_or(Seq(0)));
        self.unrepairable.extend(job.filter(|seq| batch.repaired.contains(seq)));
        if let Err(unreadable) = self.rebuild(which) {
            return Err((unreadable, commands));
        }
        let seq = match job {
            Some(seq) if new_job.is_none() || hindered.rounds < PASSED_OVER_MAX => seq,
            Some(_) | None => return self.commit_singly(commands, fault).map(|()| None),
        };
        // The new job gets another number, or the row was corrected, or it is left as it is.
        let is_live = new_job.is_none() && self.core.job(seq).is_some();
        Ok(Some(if is_live { hindered.by(seq, commands, &Arc::new(fault)) } else { hindered.once_more(commands) }))
    }

    /// Commits one command after the other, because it is not known which of them cannot be written, so that the others
    /// are answered. Returns the commands that are left undecided where nothing can be committed.
    pub(super) fn commit_singly(
        &mut self,
        mut commands: Vec<Pending>,
        fault: Fault,
    ) -> Result<(), (Fault, Vec<Pending>)> {
        if commands.len() <= 1 {
            return self.commit_without(commands, fault);
        }
        while !commands.is_empty() {
            let pending = commands.remove(0);
            match self.decide_and_commit(vec![pending], Round::Later) {
                Ok(()) => {}
                Err((fault, first)) => return Err((fault, first.into_iter().chain(commands).collect())),
            }
        }
        Ok(())
    }

    /// Answers the sender of a command that can never be written, if that command alone is the obstacle.
    fn commit_without(&mut self, commands: Vec<Pending>, fault: Fault) -> Result<(), (Fault, Vec<Pending>)> {
        if commands.is_empty() {
            return Err((fault, commands));
        }
        if let Err((fault, _)) = self.decide_and_commit(Vec::new(), Round::Later) {
            return Err((fault, commands));
        }
        tracing::error!(error = %fault, "what was asked for can never be written");
        let fault = Arc::new(fault);
        answer(commands, |pending| pending.reply.send(Answer::Failed(fault.clone())).is_ok());
        Ok(())
    }

    /// Handles a batch that is not known to be on disk, and so counts as not having happened. What the core made of it
    /// is dropped with the core; reports of agents are kept.
    pub(super) fn failed(&mut self, commands: Vec<Pending>, fault: Fault) {
        tracing::error!(error = %fault, "nothing can be committed; new work is refused until it can");
        // Another process has the store and its jobs: everything that goes on here would go on beside it.
        self.dead |= matches!(fault, Fault::Lost { .. });
        let fault = Arc::new(fault);
        self.engine.published().set_fault(Some(fault.clone()));
        self.tried_at = Instant::now();
        self.refuse(commands, &fault, Tried::Yes);
    }

    fn refuse(&mut self, commands: Vec<Pending>, fault: &Arc<Fault>, tried: Tried) {
        for pending in commands {
            if let Command::Rest = pending.command {
                let now = self.clock.now();
                self.core.apply(&Command::Rest, now, &mut Batch::default());
            }
            if is_report(&pending.command) {
                self.kept.push_back(pending);
                continue;
            }
            let answer = match (&pending.command, tried) {
                (Command::Find(..), _) => self.look_up(&pending.command),
                (_, Tried::Yes) => Answer::Failed(fault.clone()),
                (_, Tried::No) => Answer::NotTried(fault.clone()),
            };
            let _ = pending.reply.send(answer);
        }
    }

    /// Answers a lookup. It changes nothing, so it works while nothing can be written.
    fn look_up(&mut self, command: &Command) -> Answer {
        if self.stale
            && let Err(unreadable) = self.rebuild(Round::Later)
        {
            return Answer::NotTried(Arc::new(unreadable));
        }
        let now = self.clock.now();
        Answer::Committed { reply: self.core.apply(command, now, &mut Batch::default()), watch: None }
    }

    pub(super) fn round_while_failing(&mut self, commands: Vec<Pending>) {
        if let Some(fault) = self.engine.published().fault() {
            self.refuse(commands, &fault, Tried::No);
        }
        if self.tried_at.elapsed() < PAUSE {
            return;
        }
        self.tried_at = Instant::now();
        match self.try_again() {
            Ok(()) => tracing::info!("commits work again; new work is taken"),
            Err(fault) => {
                self.dead |= matches!(fault, Fault::Lost { .. });
                self.engine.published().set_fault(Some(Arc::new(fault)));
            }
        }
    }

    /// Tries again, with a core made from what is on disk and with the reports that were kept.
    pub(super) fn try_again(&mut self) -> Result<(), Fault> {
        self.store.probe()?;
        self.rebuild(Round::Later)?;
        let kept: Vec<Pending> = self.kept.drain(..).collect();
        if let Err((fault, kept)) = self.decide_and_commit(kept, Round::Later) {
            self.kept.extend(kept);
            return Err(fault);
        }
        self.engine.published().set_fault(None);
        Ok(())
    }
}

fn answer(commands: Vec<Pending>, send: impl Fn(Pending) -> bool) {
    for pending in commands {
        // The sender of the command may have left.
        let _ = send(pending);
    }
}

fn is_about(pending: &Pending, seq: Seq) -> bool {
    match &pending.command {
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

/// Returns a failure that takes the place of a report that cannot be written. Other commands have no replacement, and
/// neither has a failure: nothing smaller could take its place.
fn replacement(command: &Command) -> Option<Command> {
    let failed = |attempt| Event::Finish { attempt, result: Err(Failed::of(Failure::Internal, Dispatched::Yes)) };
    let replaced = |event: &Event| match event {
        Event::Finish { attempt, result: Ok(_) }
        | Event::Output { attempt, .. }
        | Event::Ask { attempt, .. }
        | Event::Step { attempt, .. }
        | Event::Remember { attempt, .. } => Some(failed(*attempt)),
        Event::Finish { result: Err(_), .. }
        | Event::Heard { .. }
        | Event::Progress { .. }
        | Event::Unasked { .. }
        | Event::Withdrawn { .. }
        | Event::Start { .. }
        | Event::Answer { .. }
        | Event::Cancel
        | Event::Clock
        | Event::Interrupted(_)
        | Event::Release => None,
    };
    match command {
        Command::Job(id, event) => Some(Command::Job(*id, replaced(event)?)),
        Command::Report { agent, grip, id, event } => {
            Some(Command::Report { agent: agent.clone(), grip: *grip, id: *id, event: replaced(event)? })
        }
        Command::Submit(_)
        | Command::Find(..)
        | Command::TakeUp(_)
        | Command::Agent(..)
        | Command::Join(_)
        | Command::Told(_)
        | Command::Grant(_)
        | Command::Audit(_)
        | Command::Violation(..)
        | Command::ClockJumped { .. }
        | Command::Rest => None,
    }
}

/// Whether the command is a report that its sender would not repeat if it were refused. Requests of callers and
/// operators are refused at once instead: they are there to be told.
fn is_report(command: &Command) -> bool {
    match command {
        // The sender tells the recipient again, and then that it was told.
        Command::Told(_) => false,
        Command::Submit(_) | Command::Find(..) | Command::TakeUp(_) | Command::Join(_) | Command::Rest => false,
        Command::Grant(_) | Command::Audit(_) => false,
        Command::Job(_, event) | Command::Report { event, .. } => match event {
            Event::Cancel | Event::Answer { .. } | Event::Release => false,
            Event::Start { .. }
            | Event::Heard { .. }
            | Event::Progress { .. }
            | Event::Output { .. }
            | Event::Ask { .. }
            | Event::Unasked { .. }
            | Event::Remember { .. }
            | Event::Step { .. }
            | Event::Finish { .. }
            | Event::Withdrawn { .. }
            | Event::Clock
            | Event::Interrupted(_) => true,
        },
        Command::Agent(_, command) => match command {
            AgentCommand::Drain(_) | AgentCommand::Forget => false,
            AgentCommand::Breaker(event) => match event {
                breaker::Event::Open | breaker::Event::Close => false,
                breaker::Event::Marked(_)
                | breaker::Event::Clock
                | breaker::Event::Checked(_)
                | breaker::Event::Interrupted => true,
            },
            AgentCommand::Capacity(_) => true,
        },
        Command::Violation(..) | Command::ClockJumped { .. } => true,
    }
}
