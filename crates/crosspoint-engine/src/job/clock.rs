//! The clocks of one job: a clock that jumped, time in which no orchestrator ran, and beginning anew.

use std::time::Duration;

use super::{Job, Running, State};
use crate::time::Time;

impl Job {
    /// Moves its clocks along with a clock that jumped, so that neither silence nor a pause is longer or shorter for it.
    pub fn shift(&mut self, micros: i64) {
        self.skew_micros = self.skew_micros.saturating_add(micros);
        self.started_at = self.started_at.map(|at| at.shifted(micros));
        self.progress_at = self.progress_at.shifted(micros);
        match &mut self.state {
            State::Running(running) => running.shift(micros),
            State::Waiting { running, .. } => {
                running.shift(micros);
                self.updated_at = self.updated_at.shifted(micros);
            }
            State::Retrying { until, .. } => *until = until.shifted(micros),
            State::Queued | State::Poisoned | State::Ended(_) => {}
        }
    }
}

impl Running {
    fn shift(&mut self, micros: i64) {
        self.heard_at = self.heard_at.shifted(micros);
        self.taken_up_at = self.taken_up_at.map(|at| at.shifted(micros));
    }
}

impl Job {
    /// All its time counts from now on: it was held, and no agent has worked at it meanwhile that we know of.
    pub fn begin_anew(&mut self, now: Time) {
        self.skew_micros = now.0.saturating_sub(self.request.accepted_at.0);
        self.started_at = self.started_at.map(|_| now);
        self.waited = Duration::ZERO;
    }

    /// For a job from disk, after `away_micros` in which no orchestrator ran: that time counts against nobody (ALL-3), but for pauses,
    /// which go on without us.
    ///
    /// What cannot be, whatever was done to the clock, is put right: nothing that has happened lies ahead of `now`, and no pause under
    /// way is longer than `pause_max`.
    pub fn come_back(&mut self, now: Time, away_micros: i64, pause_max: Duration) {
        let since_accepted = now.0.saturating_sub(self.request.accepted_at.0);
        self.skew_micros = self.skew_micros.saturating_add(away_micros).min(since_accepted);
        match &mut self.state {
            // A person had the time to answer all the same, and waiting does not count anyway.
            State::Waiting { .. } | State::Poisoned => self.updated_at = self.updated_at.min(now),
            State::Retrying { until, .. } => {
                *until = (*until).min(now.plus(pause_max));
                self.started_at = self.started_at.map(|at| at.shifted(away_micros));
            }
            State::Queued | State::Running(_) | State::Ended(_) => {
                self.started_at = self.started_at.map(|at| at.shifted(away_micros));
            }
        }
        self.started_at = self.started_at.map(|at| at.min(now));
    }
}
