//! The clocks of one job: how they react to a clock that jumped, to time in which no orchestrator ran, and to a fresh
//! start.

use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::{Job, Running, State};

impl Job {
    /// Moves the job's clocks along with a clock that jumped, so that silence and pauses last as long as they would
    /// have.
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
            State::Retrying { until, .. } => {
                *until = until.shifted(micros);
                // The pause stays as long as it is.
                self.updated_at = self.updated_at.shifted(micros);
            }
            State::Queued | State::Poisoned | State::Ended(_) => {}
        }
    }
}

impl Running {
    fn shift(&mut self, micros: i64) {
        self.heard_at = self.heard_at.shifted(micros);
        self.timed_from = self.timed_from.shifted(micros);
        self.taken_up_at = self.taken_up_at.map(|at| at.shifted(micros));
    }
}

impl Job {
    /// Makes all clocks of the job start now: the job was held, and no agent is known to have worked on it meanwhile.
    pub fn begin_anew(&mut self, now: Time) {
        self.skew_micros = now.0.saturating_sub(self.request.accepted_at.0);
        self.started_at = self.started_at.map(|_| now);
        self.waited = Duration::ZERO;
    }

    /// Adjusts a job that was read from disk, after `away_micros` in which no orchestrator ran. That time does not
    /// count against the job or its agent (ALL-3). Only pauses go on while no orchestrator runs.
    ///
    /// Impossible times, which a changed clock can leave, are corrected: nothing that has happened lies ahead of `now`,
    /// and what is left of a pause is no longer than the whole of it, `pause`.
    pub fn come_back(&mut self, now: Time, away_micros: i64, pause: Duration) {
        let since_accepted = now.0.saturating_sub(self.request.accepted_at.0);
        self.skew_micros = self.skew_micros.saturating_add(away_micros).min(since_accepted);
        match &mut self.state {
            // The person had this time to answer all the same, and waiting for a person does not count anyway.
            State::Waiting { .. } | State::Poisoned => self.updated_at = self.updated_at.min(now),
            State::Retrying { until, .. } => {
                *until = (*until).min(now.plus(pause));
                self.updated_at = self.updated_at.min(now);
                self.started_at = self.started_at.map(|at| at.shifted(away_micros));
            }
            State::Queued | State::Running(_) | State::Ended(_) => {
                self.started_at = self.started_at.map(|at| at.shifted(away_micros));
            }
        }
        self.started_at = self.started_at.map(|at| at.min(now));
    }
}
