//! The clocks of all jobs: when something is due, that we are alive, and a clock that jumped.

use std::sync::Arc;
use std::time::Duration;

use super::{Batch, Core};
use crate::id::Seq;
use crate::job::Job;
use crate::time::Time;

/// As long as there is a job that has not ended, it is written at least so often that we are alive: what is missing at the next start is
/// the time in which nobody was.
pub const ALIVE_PERIOD: Duration = Duration::from_secs(5);

impl Core {
    pub(super) fn is_alive(&mut self, now: Time, batch: &mut Batch) {
        self.alive_at = now;
        batch.alive_at = Some(now);
    }

    /// When it must be written next that we are alive: while others are to drive the jobs, it is none of our business.
    pub(super) fn alive_alarm(&self) -> Option<Time> {
        let drives_all = self.driven_from == Seq(0);
        (drives_all && !self.jobs.is_empty()).then(|| self.alive_at.plus(ALIVE_PERIOD))
    }

    /// When [`Core::settle`] has something to do next. A suspect that could have begun before now waits for an agent, and not for a time.
    pub fn alarm(&self, now: Time) -> Option<Time> {
        let job = self.alarms.first().map(|(at, _)| *at);
        let breaker = self.agents.values().filter_map(|agent| agent.standing.breaker.alarm()).min();
        let suspect = if self.suspects.is_empty() { None } else { self.alone_until() };
        let suspect = suspect.filter(|until| *until > now && *until != Time::NEVER);
        job.into_iter().chain(breaker).chain(self.alive_alarm()).chain(suspect).min()
    }

    /// Everything that is due moves along with the clock, on disk too: the next start knows nothing of the jump.
    pub(super) fn shift(&mut self, micros: i64, batch: &mut Batch) {
        let seqs: Vec<Seq> = self.jobs.keys().copied().collect();
        for seq in seqs {
            self.unwatch(seq);
            if let Some(live) = self.jobs.get_mut(&seq) {
                Arc::make_mut(&mut live.job).shift(micros);
                // What is set aside cannot be written, and time passes without it.
                if live.job.aside.is_none() && is_timed(&live.job) {
                    batch.rewritten(&live.job);
                }
            }
            self.watch(seq);
        }
        if self.alive_at != Time::default() {
            let alive_at = self.alive_at.shifted(micros);
            self.is_alive(alive_at, batch);
        }
        for agent in self.agents.values_mut() {
            let breaker = agent.standing.breaker.shifted(micros);
            if breaker != agent.standing.breaker {
                agent.standing.breaker = breaker;
                batch.agents.insert(agent.spec.name.clone(), agent.standing);
            }
        }
    }
}

/// Whether anything in the job's row says how long something may take: of a job that no agent has had, only the caller's limit.
pub(super) fn is_timed(job: &Job) -> bool {
    job.started_at.is_some() || job.request.limits.total.is_some()
}
