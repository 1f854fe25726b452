//! What is stored and done, one thing after another, and whether it is allowed.

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::outcome::Status;
use crosspoint_engine::core::Effect;
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Ending;
use crosspoint_engine::machine::{Action, End};
use crosspoint_engine::policy::{Recovery, Repeats};

use super::known::{Cause, Known, Life};
use super::model::Model;
use super::rule::{Reason, Verdict, Wish, ensure, may_repeat, pause_micros};

/// The longest pause for the given shortest pause: jitter adds up to half.
fn longest(least: i64) -> i64 {
    least + least / 2 + 1
}

impl Model {
    pub(crate) fn stored(&mut self, seq: Seq, entry: &Entry, cause: &Cause) -> Verdict {
        let now = self.now;
        ensure!(self.steady(entry.at) == now, "an event has another time than its step");
        let Some(mut job) = self.jobs.remove(&seq) else { return Err(format!("an event of no job: {}", seq.0)) };
        ensure!(job.outcome.is_none(), "{} follows the outcome", entry.what.name());
        ensure!(entry.n == job.events + 1, "event {} follows {}", entry.n, job.events);
        job.events = entry.n;
        ensure!(!job.hurried || matches!(entry.what, What::Ended(_)), "more than ten progress events a second");
        match &entry.what {
            What::Accepted => return Err("acceptance was stored as an event of its own".into()),
            What::Started { attempt, agent } => self.stored_start(&mut job, *attempt, agent, cause)?,
            What::Progress(progress) => {
                job.hurried = job.shown_at.is_some_and(|at| now - at < 100_000);
                job.shown_percent = progress.percent;
                job.shown_at = Some(now);
            }
            What::Output { attempt, offset, block } => {
                ensure!(matches!(cause, Cause::Output(by) if by == attempt), "output out of nowhere: {cause:?}");
                ensure!(job.is_present(*attempt), "output of an attempt that was given up");
                ensure!(*offset == job.outputs && !block.0.is_empty(), "output at {offset}, not at {}", job.outputs);
                job.outputs += block.0.len() as u64;
            }
            What::Step { .. } => {
                ensure!(matches!(cause, Cause::Stepped(by) if job.is_present(*by)), "a step out of nowhere: {cause:?}");
            }
            What::Asked { question } => {
                ensure!(matches!(cause, Cause::Asked), "a question out of nowhere: {cause:?}");
                job.leave_asking(now);
                job.life = Life::Asking { since: now, question: question.json().get().into() };
            }
            What::Answered { answer } => Model::stored_answer(&mut job, answer.get(), cause, now)?,
            What::Retrying { attempt, failure, until } => {
                let until = self.steady(*until);
                self.stored_pause(&mut job, *attempt, *failure, until, cause)?;
            }
            What::Interrupted { attempt } => {
                let policy = &self.specs[job.agent].policy;
                let may = match cause {
                    Cause::Started | Cause::Released => policy.recovery == Recovery::Rerun,
                    Cause::Withdrawn(by) => by == attempt,
                    Cause::Settled
                    | Cause::Heard
                    | Cause::Output(_)
                    | Cause::Stepped(_)
                    | Cause::Asked
                    | Cause::Done(..)
                    | Cause::Failed(..)
                    | Cause::Died(_)
                    | Cause::Answered(_)
                    | Cause::Cancelled => false,
                };
                ensure!(may, "interrupted, and its agent does not run again: {cause:?}");
                ensure!(job.is_present(*attempt), "attempt {attempt} was not under way");
                let cut_short_max = policy.cut_short_max.filter(|_| !matches!(cause, Cause::Withdrawn(_)));
                let at_work = matches!(job.life, Life::With { .. });
                let to_blame = self.end == End::Unclean && at_work && !self.doubtful.contains(&seq) && !job.visited;
                if to_blame && matches!(cause, Cause::Started) && cut_short_max.is_some() {
                    job.cut_short += 1;
                }
                // What was withdrawn never began.
                let may_have_begun = !matches!(cause, Cause::Withdrawn(_));
                job.stays |= may_have_begun && policy.repeats == Repeats::SameAgent;
                job.leave_asking(now);
                (job.started, job.waited) = (None, 0);
                let poisoned = at_work && cut_short_max.is_some_and(|most| job.cut_short >= most);
                job.life = if poisoned { Life::Poisoned } else { Life::Queued };
                // The agent's work on this attempt was lost with the process, or was stopped.
                job.wanted = None;
            }
            What::Ended(outcome) => self.stored_end(&mut job, seq, outcome, cause)?,
        }
        self.jobs.insert(seq, job);
        Ok(())
    }

    fn stored_start(&mut self, job: &mut Known, attempt: u32, agent: &str, cause: &Cause) -> Verdict {
        ensure!(matches!(cause, Cause::Settled), "started by {cause:?}");
        let agent = self.agent_index(agent).ok_or("started with nobody")?;
        match job.life {
            Life::Queued => {}
            // The longest pause is rounded.
            Life::Paused { until } => ensure!(until <= self.now + 1, "started {} us too early", until - self.now),
            Life::Poisoned => return Err("started although it is poisoned".into()),
            Life::With { .. } | Life::Asking { .. } | Life::Ended => return Err("started while it is under way".into()),
        }
        ensure!(!self.resting, "started while we rest");
        ensure!(attempt == job.attempts + 1, "attempt {attempt} follows {}", job.attempts);
        ensure!(self.takes(agent, &job.request), "its agent does not take this");
        ensure!(
            !job.stays || agent == job.agent,
            "another agent has it, which does not know whether the work was done"
        );
        *self.reached.entry("stays").or_default() += u64::from(job.stays);
        ensure!(self.is_open_to_work(agent), "started with an agent that gets no work: {:?}", self.fuses[agent]);
        job.attempts = attempt;
        job.agent = agent;
        job.had.push(agent);
        (job.taken_up, job.timed_from) = (None, self.now);
        job.started.get_or_insert(self.now);
        job.outputs = 0;
        job.asked = 0;
        job.life = Life::With { heard: self.now };
        Ok(())
    }

    fn stored_answer(job: &mut Known, answer: &str, cause: &Cause, now: i64) -> Verdict {
        ensure!(matches!(cause, Cause::Answered(given) if **given == *answer), "an answer out of nowhere: {cause:?}");
        let Life::Asking { question, .. } = job.life.clone() else { return Err("an answer without a question".into()) };
        job.leave_asking(now);
        job.answers.truncate(job.asked);
        job.answers.push((question, answer.into()));
        job.asked += 1;
        job.life = Life::With { heard: now };
        Ok(())
    }

    fn stored_pause(&mut self, job: &mut Known, attempt: u32, failure: Failure, until: i64, cause: &Cause) -> Verdict {
        ensure!(attempt == job.attempts && job.has_agent(), "a pause after an attempt that was given up");
        let reason = self.reason(job, failure, cause)?;
        if let Cause::Settled = cause {
            self.mark(job.agent, true);
        }
        let spec = &self.specs[job.agent];
        ensure!(may_repeat(failure, reason, &job.request.limits, spec), "{failure} {reason:?} is repeated");
        let schedule = job.request.limits.retry.unwrap_or(spec.policy.schedule);
        let least = pause_micros(&schedule, job.repeats + 1).ok_or("more attempts than there may be")?;
        let pause = until - self.now;
        let after = wished(cause).ok_or("it is repeated, which is in vain")?;
        let most = longest(least).max(after);
        ensure!(pause >= least.max(after) && pause <= most, "a pause of {pause} us, not of {least} or {after}");
        ensure!(
            self.deadline(job).is_none_or(|deadline| until < deadline),
            "the next attempt would begin after the end"
        );
        job.cut_short = 0;
        job.repeats += 1;
        job.stays |= reason != Reason::NeverBegan && spec.policy.repeats == Repeats::SameAgent;
        job.leave_asking(self.now);
        job.pause = pause;
        *self.reached.entry("later at the agent's wish").or_default() += u64::from(after > longest(least));
        job.life = Life::Paused { until };
        Ok(())
    }

    /// Whether an attempt may count as failed like this, and whether it had begun.
    fn reason(&self, job: &Known, failure: Failure, cause: &Cause) -> Result<Reason, String> {
        match cause {
            Cause::Failed(by, reported, dispatched, _) if *by == job.attempts && *reported == failure => {
                Ok(if *dispatched == Dispatched::No { Reason::NeverBegan } else { Reason::MayHaveBegun })
            }
            Cause::Died(by) if *by == job.attempts && failure == Failure::Unavailable => Ok(Reason::Died),
            Cause::Settled if failure == Failure::Timeout && (self.is_silent(job) || self.is_overdue(job)) => {
                Ok(Reason::MayHaveBegun)
            }
            Cause::Started
            | Cause::Settled
            | Cause::Heard
            | Cause::Output(_)
            | Cause::Stepped(_)
            | Cause::Asked
            | Cause::Done(..)
            | Cause::Failed(..)
            | Cause::Died(_)
            | Cause::Withdrawn(_)
            | Cause::Answered(_)
            | Cause::Released
            | Cause::Cancelled => Err(format!("{failure} out of nowhere: {cause:?}")),
        }
    }

    fn stored_end(&mut self, job: &mut Known, seq: Seq, outcome: &std::sync::Arc<Ending>, cause: &Cause) -> Verdict {
        match outcome.status {
            Status::Completed => {
                let Cause::Done(by, outputs) = cause else { return Err(format!("completed by {cause:?}")) };
                ensure!(*by >= 1 && *by <= job.attempts, "completed by an attempt that was never made");
                job.wanted = job.wanted.filter(|wanted| wanted != by);
                let given = outcome.outputs.as_ref().is_some_and(|given| given.get().contains(&**outputs));
                ensure!(given, "another's outputs");
            }
            // An agent may report by itself that it was stopped.
            Status::Cancelled => {
                let may = matches!(cause, Cause::Cancelled | Cause::Failed(_, Failure::Cancelled, ..));
                ensure!(may, "cancelled by {cause:?}");
            }
            Status::Failed => self.may_fail(job, outcome, cause)?,
        }
        job.hurried = false;
        ensure!(job.heard_percent == job.shown_percent, "the last progress was lost");
        job.leave_asking(self.now);
        job.life = Life::Ended;
        job.outcome = Some(outcome.clone());
        (job.ended, job.aside) = (self.now, false);
        self.live.retain(|live| *live != seq);
        Ok(())
    }

    fn may_fail(&mut self, job: &Known, outcome: &Ending, cause: &Cause) -> Verdict {
        let (failure, _) = outcome.why().ok_or("failed without a failure")?;
        match cause {
            Cause::Settled if says(outcome, "allowed in all") => {
                let late = self.deadline(job).is_some_and(|deadline| self.now >= deadline);
                ensure!(failure == Failure::Timeout && late, "its time was not up");
            }
            Cause::Settled | Cause::Failed(..) | Cause::Died(_) => {
                let reason = self.reason(job, failure, cause)?;
                if let Cause::Settled = cause {
                    self.mark(job.agent, true);
                }
                let spec = &self.specs[job.agent];
                let schedule = job.request.limits.retry.unwrap_or(spec.policy.schedule);
                let pause = pause_micros(&schedule, job.repeats + 1);
                let deadline = self.deadline(job).map_or(i64::MAX, |deadline| deadline - self.now);
                let after = wished(cause);
                let in_time = pause.zip(after).is_some_and(|(pause, after)| longest(pause).max(after) < deadline);
                let repeatable = may_repeat(failure, reason, &job.request.limits, spec);
                let too_late = repeatable && after.is_some_and(|after| after >= deadline);
                *self.reached.entry("too late at the agent's wish").or_default() += u64::from(too_late);
                ensure!(!repeatable || !in_time, "{failure} was not repeated");
            }
            Cause::Output(by) => {
                let limits = [Failure::BrokenContract, Failure::ResourceLimit];
                ensure!(limits.contains(&failure) && job.is_present(*by), "failed by output as {failure}");
            }
            Cause::Started | Cause::Released => {
                let fails = self.specs[job.agent].policy.recovery == Recovery::Fail && job.has_agent();
                ensure!(fails && failure == Failure::Unavailable, "failed at a start as {failure}");
            }
            Cause::Heard
            | Cause::Stepped(_)
            | Cause::Asked
            | Cause::Done(..)
            | Cause::Withdrawn(_)
            | Cause::Answered(_)
            | Cause::Cancelled => {
                return Err(format!("failed by {cause:?}"));
            }
        }
        Ok(())
    }

    pub(crate) fn done(&mut self, effect: &Effect) -> Verdict {
        let Effect::Job { job, action } = effect else { return Ok(()) };
        let held = self.held.as_ref().is_some_and(|(first, taken)| job.seq() < *first && !taken.contains(&job.seq()));
        let Some(known) = self.jobs.get_mut(&job.seq()) else { return Err("an action for no job".into()) };
        match action {
            Action::Dispatch { attempt } | Action::Resume { attempt } => {
                ensure!(known.outcome.is_none(), "work that is finished is started again");
                let memory = job.memory.as_ref().map(|memory| String::from_utf8_lossy(&memory.0));
                ensure!(memory.as_deref() == known.remembered(), "attempt {attempt} is given {memory:?}");
                ensure!(known.wanted.is_none(), "attempt {attempt} is wanted beside {:?}", known.wanted);
                known.wanted = Some(*attempt);
            }
            Action::Stop { attempt } => {
                // An attempt that was never begun in this process has nothing to stop, and stopping it does no harm.
                let never_begun = known.wanted.is_none() && (known.was_aside || held);
                ensure!(never_begun || known.wanted == Some(*attempt), "attempt {attempt} is stopped, and not wanted");
                known.wanted = None;
            }
            Action::Deliver { attempt, answer } => {
                let wanted = held || known.wanted == Some(*attempt);
                ensure!(wanted, "an answer for attempt {attempt}, which is not wanted");
                let last = known.asked.checked_sub(1).and_then(|last| known.answers.get(last));
                ensure!(last.is_some_and(|(_, last)| **last == *answer.get()), "another question's answer");
            }
            Action::Mark { .. } => return Err("a mark is no effect".into()),
        }
        Ok(())
    }
}

/// The shortest pause that the agent asks for, in microseconds; `None` if a repeat would be in vain.
fn wished(cause: &Cause) -> Option<i64> {
    match cause {
        Cause::Failed(_, _, _, Wish::Never) => None,
        Cause::Failed(_, _, _, Wish::After(micros)) => Some(*micros),
        Cause::Started
        | Cause::Settled
        | Cause::Heard
        | Cause::Output(_)
        | Cause::Stepped(_)
        | Cause::Asked
        | Cause::Done(..)
        | Cause::Died(_)
        | Cause::Withdrawn(_)
        | Cause::Answered(_)
        | Cause::Released
        | Cause::Cancelled => Some(0),
    }
}

fn says(outcome: &Ending, words: &str) -> bool {
    let message = outcome.reason.as_ref().and_then(|reason| reason.message.as_ref());
    message.is_some_and(|message| message.get().contains(words))
}
