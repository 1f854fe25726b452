//! What time does to a job: silence, the total time, the end of a pause, and progress that was held back (ALL-3, ALL-4,
//! ALL-9, MSG-5, MSG-6).

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Progress};
use crosspoint_contracts::request::ATTEMPTS_MAX;
use crosspoint_contracts::time::Time;

use super::{Action, Step};
use crate::breaker::Mark;
use crate::event::What;
use crate::job::{Job, Running, State};
use crate::policy::Policy;

/// Shortest time between two progress events of a job: 10 a second (ALL-9).
pub(super) const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// Returns when [`super::Event::Clock`] is due next, if nothing else happens before.
pub fn alarm(job: &Job, policy: &Policy) -> Option<Time> {
    if let State::Ended(_) = job.state {
        return None;
    }
    let pending = job.pending.is_some().then(|| job.progress_at.plus(PROGRESS_PERIOD));
    let own = match &job.state {
        State::Running(running) => {
            silence_ends(job, running, policy).into_iter().chain(attempt_ends(job, running)).min()
        }
        State::Retrying { until, .. } => Some(*until),
        State::Queued | State::Waiting { .. } | State::Poisoned | State::Ended(_) => None,
    };
    [deadline(job, policy), own, pending].into_iter().flatten().min()
}

/// Returns when the job's time is up. The caller's limit counts from acceptance. The agent's limit counts from the
/// first attempt, and not while a person is asked. The time of an attempt that was taken up after a restart is not up
/// before its agent could be asked once (ALL-3).
pub(super) fn deadline(job: &Job, policy: &Policy) -> Option<Time> {
    let accepted_at = job.request.accepted_at.shifted(job.skew_micros);
    let asked_for = job.request.limits.total.map(|total| accepted_at.plus(total));
    let total =
        policy.total.max(job.request.limits.attempt.map_or(Duration::ZERO, |limit| all_attempts(job, limit, policy)));
    let settled = match &job.state {
        // The limit holds in the queue too, once the job was with an agent: otherwise it would be started only to be
        // stopped.
        State::Queued | State::Running(_) | State::Retrying { .. } => {
            job.started_at.map(|started| started.plus(total).plus(job.waited))
        }
        State::Waiting { .. } | State::Poisoned | State::Ended(_) => None,
    };
    let taken_up = job.running().and_then(|running| running.taken_up_at).map(|at| at.plus(policy.take_up));
    // A request's own limit takes the place of the agent's (ALL-4), also where it is longer.
    Some(asked_for.or(settled)?.max(taken_up.unwrap_or_default()))
}

/// Returns how long a job may take whose request limits the time of each attempt: the agent's own limit must not cut
/// short what the request allows.
fn all_attempts(job: &Job, limit: Duration, policy: &Policy) -> Duration {
    let schedule = job.request.limits.retry.unwrap_or(policy.schedule);
    let pauses = (2..=ATTEMPTS_MAX).map_while(|attempt| schedule.delay_before(attempt, 1.0));
    pauses.fold(limit, |all, pause| all.saturating_add(pause).saturating_add(limit))
}

/// Returns when the agent has given no sign of life for as long as it may.
fn silence_ends(job: &Job, running: &Running, policy: &Policy) -> Option<Time> {
    Some(running.heard_at.plus(silence(job, policy)?))
}

/// Returns how long the agent may be silent.
fn silence(job: &Job, policy: &Policy) -> Option<Duration> {
    Some(job.request.limits.silence.unwrap_or(policy.silence?))
}

/// Returns when the time of the attempt is up.
fn attempt_ends(job: &Job, running: &Running) -> Option<Time> {
    Some(running.timed_from.plus(job.request.limits.attempt?))
}

impl Step {
    pub(super) fn clock(mut self, now: Time, policy: &Policy) -> Step {
        if let State::Ended(_) = self.job.state {
            return self;
        }
        if deadline(&self.job, policy).is_some_and(|time| time <= now) {
            return self.out_of_time(now);
        }
        match self.job.state {
            State::Retrying { until, .. } if until <= now => {
                self.enter(State::Queued, now);
                // The pause was an event, and the next attempt will be one. Being in the queue in between is not an
                // event. After a crash the pause is over all the same.
            }
            State::Running(running) if silence_ends(&self.job, &running, policy).is_some_and(|at| at <= now) => {
                let what = "the agent gave no sign of life for as long as it may";
                let seconds = silence(&self.job, policy).unwrap_or_default().as_secs_f64();
                let message = format!("The agent gave no sign of life for {seconds} s (silence_seconds).");
                return self.given_up("ALL-4", what, &message, now, policy);
            }
            State::Running(running) if attempt_ends(&self.job, &running).is_some_and(|at| at <= now) => {
                let what = "the agent was not done when the time for the attempt was over";
                return self.given_up("ALL-4.2", what, "The attempt took longer than it was allowed.", now, policy);
            }
            State::Queued
            | State::Running(_)
            | State::Retrying { .. }
            | State::Waiting { .. }
            | State::Poisoned
            | State::Ended(_) => {}
        }
        if self.job.pending.is_some() && self.job.progress_at.plus(PROGRESS_PERIOD) <= now {
            self.show_progress(now);
        }
        self
    }

    fn out_of_time(mut self, now: Time) -> Step {
        let had_agent = self.job.running().is_some();
        // A job that waited for a person or for an agent broke no rule.
        if let State::Running(_) = self.job.state {
            self.breaks("ALL-4.2", "the agent was not done when the time for the work was over");
        }
        self.stop_attempt();
        let dispatched = if had_agent { Dispatched::Yes } else { Dispatched::No };
        let message = "The job took longer than it was allowed in all.";
        self.end_failed(Failed::said(Failure::Timeout, dispatched, message), now);
        self
    }

    /// Gives the attempt up. Another one may follow.
    fn given_up(mut self, clause: &'static str, what: &'static str, message: &str, now: Time, policy: &Policy) -> Step {
        self.breaks(clause, what);
        self.stop_attempt();
        if let Some(agent) = self.job.agent.clone() {
            self.actions.push(Action::Mark { agent, mark: Mark::Bad });
        }
        let failed = Failed::said(Failure::Timeout, Dispatched::Yes, message);
        self.attempt_failed(failed, now, policy);
        self
    }

    pub(super) fn show_progress(&mut self, now: Time) {
        let Some(progress) = self.job.pending.take() else { return };
        self.job.progress_at = now;
        self.note(What::Progress((*progress).clone()), now);
        let Some(began) = &progress.began else {
            self.job.progress = Some(progress);
            return;
        };
        // The start is kept apart, so that later progress does not repeat it.
        self.job.began = Some(Arc::new(began.clone()));
        let rest = Progress { began: None, ..(*progress).clone() };
        if rest != Progress::default() {
            self.job.progress = Some(Arc::new(rest));
        }
    }
}
