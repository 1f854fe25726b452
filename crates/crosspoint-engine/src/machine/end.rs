//! How attempts and jobs end. This is the only place where an outcome is made.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::time::Time;

use super::Step;
use super::clock::deadline;
use crate::event::What;
use crate::job::{Ending, Job, State};
use crate::policy::{Policy, RETRY_AFTER_MAX, Repeats};

/// Returns how long the pause is that a retrying job is in: that of its schedule, or the longer one that its agent
/// asked for.
pub fn pause(job: &Job) -> Duration {
    match job.state {
        State::Retrying { until, .. } => until.since(job.updated_at),
        State::Queued | State::Running(_) | State::Waiting { .. } | State::Poisoned | State::Ended(_) => Duration::ZERO,
    }
}

impl Step {
    /// Handles a failure of the present attempt: another attempt follows, or the job fails with it.
    pub(super) fn attempt_failed(&mut self, failed: Failed, now: Time, policy: &Policy) {
        match self.next_attempt(&failed, now, policy) {
            Some(until) => {
                if failed.dispatched == Dispatched::Yes {
                    self.may_have_begun(policy);
                }
                self.job.retries += 1;
                // The attempt came to its own end, so the job is not what crashes the orchestrator.
                self.job.cut_short = 0;
                let (attempt, after) = (self.job.attempts, failed.failure);
                self.enter(State::Retrying { until, after }, now);
                self.note(What::Retrying { attempt, failure: after, until }, now);
            }
            None => self.end_failed(failed, now),
        }
    }

    /// Returns when the next attempt is due, if there is one. There is none if it would begin only after the job's time
    /// is up, also where the agent asks for a longer pause: then the caller learns at once that it has to come again.
    fn next_attempt(&self, failed: &Failed, now: Time, policy: &Policy) -> Option<Time> {
        let asked_for = self.job.request.limits.retry;
        let repeats = if asked_for.is_some() { Repeats::Always } else { policy.repeats };
        let begins_again = failed.has_died() && failed.failure.is_retried() && policy.recovery.begins_the_dead_again();
        let is_in_vain = failed.repeat == Some(Repeat::Never);
        if is_in_vain || (!begins_again && !repeats.allow(failed.failure, failed.dispatched)) {
            return None;
        }
        let delay = asked_for.unwrap_or(policy.schedule).delay_before(self.job.retries + 2, self.chance())?;
        let asked = Duration::from_secs(failed.retry_after_seconds.into()).min(RETRY_AFTER_MAX);
        let until = now.plus(delay.max(asked));
        deadline(&self.job, policy).is_none_or(|deadline| until < deadline).then_some(until)
    }

    /// Returns a number from 0 to 1 that differs between jobs and attempts, so that jobs that failed together are not
    /// repeated together. It is the same when the step is taken again. Callers see what comes of it, so it is made of
    /// the id and not of the number.
    fn chance(&self) -> f64 {
        let (_, id) = self.job.request.id.uuid().as_u64_pair();
        let seed = id ^ (u64::from(self.job.attempts) << 48);
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        f64::from((mixed >> 40) as u32) / f64::from(1_u32 << 24)
    }

    pub(super) fn end_completed(&mut self, success: Success, now: Time) {
        self.end(Outcome::completed(success), now);
    }

    pub(super) fn end_failed(&mut self, failed: Failed, now: Time) {
        let dispatched = if self.job.begun { Dispatched::Yes } else { failed.dispatched };
        let repeat = failed.repeat.unwrap_or_else(|| failed.failure.repeat(dispatched));
        self.end(Outcome::failed(failed, repeat), now);
    }

    /// Fails the job because the agent printed more than it may. Part of the work is done, and a repeat would print as
    /// much again.
    pub(super) fn end_oversized(&mut self, limit: u64, now: Time) {
        let message = format!("The agent's output is longer than the {limit} bytes that it may have.");
        let failed = Failed::said(Failure::ResourceLimit, Dispatched::Yes, &message);
        self.end(Outcome::failed(failed, Repeat::Never), now);
    }

    pub(super) fn end_cancelled(&mut self, now: Time) {
        self.end(Outcome::failed(Failed::of(Failure::Cancelled, Dispatched::Yes), Repeat::Never), now);
    }

    fn end(&mut self, outcome: Outcome, now: Time) {
        // Otherwise progress that was held back would never be seen.
        self.show_progress(now);
        let ended = Arc::new(Ending::new(now, outcome));
        self.enter(State::Ended(ended.clone()), now);
        self.note(What::Ended(ended), now);
    }
}
