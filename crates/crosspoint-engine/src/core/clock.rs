//! The clocks of all jobs: when something is due, the sign that the orchestrator is alive, and jumps of the clock.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::{Batch, Core};
use crate::id::Seq;
use crate::job::{Job, State};
use crate::machine;

/// How often it is written that the orchestrator is alive, as long as there is a job that has not ended. The next start
/// takes the time since the last such entry as time in which no orchestrator ran.
pub const ALIVE_PERIOD: Duration = Duration::from_secs(5);

impl Core {
    pub(super) fn is_alive(&mut self, now: Time, batch: &mut Batch) {
        self.alive_at = now;
        batch.alive_at = Some(now);
    }

    /// Returns when it must be written next that the orchestrator is alive. A process that leaves the jobs to another
    /// one never writes it.
    pub(super) fn alive_alarm(&self) -> Option<Time> {
        let drives_all = self.driven_from == Seq(0);
        (drives_all && !self.jobs.is_empty()).then(|| self.alive_at.plus(ALIVE_PERIOD))
    }

    /// Returns when [`Core::settle`] has something to do next. A suspect that could have begun before `now` waits for
    /// an agent, and not for a time.
    pub fn alarm(&self, now: Time) -> Option<Time> {
        let job = self.alarms.first().map(|(at, _)| *at);
        let breaker = self.agents.values().filter_map(|agent| agent.standing.breaker.alarm()).min();
        let suspect = if self.suspects.is_empty() { None } else { self.alone_until() };
        let suspect = suspect.filter(|until| *until > now && *until != Time::NEVER);
        job.into_iter().chain(breaker).chain(self.alive_alarm()).chain(suspect).min()
    }

    /// Puts a job into the queue and sets its alarm, as its state demands.
    pub(super) fn watch(&mut self, seq: Seq) {
        if !self.is_driven(seq) {
            return;
        }
        let Some(live) = self.jobs.get(&seq) else { return };
        let job = live.job.clone();
        let alarm = machine::alarm(&job, self.policy(&job));
        if let State::Queued = job.state {
            if job.is_suspect() {
                self.suspects.insert(seq);
            } else {
                self.queues.add(&job);
            }
        }
        if let Some(at) = alarm {
            self.alarms.insert((at, seq));
        }
        if let Some(live) = self.jobs.get_mut(&seq) {
            live.alarm = alarm;
        }
    }

    pub(super) fn unwatch(&mut self, seq: Seq) {
        let Some(live) = self.jobs.get_mut(&seq) else { return };
        if let Some(at) = live.alarm.take() {
            self.alarms.remove(&(at, seq));
        }
        if let State::Queued = live.job.state {
            self.suspects.remove(&seq);
            self.queues.remove(&live.job);
        }
    }

    /// Moves everything that is due along with the clock, on disk too, because the next start knows nothing of the
    /// jump.
    pub(super) fn shift(&mut self, micros: i64, batch: &mut Batch) {
        let seqs: Vec<Seq> = self.jobs.keys().copied().collect();
        for seq in seqs {
            self.unwatch(seq);
            if let Some(live) = self.jobs.get_mut(&seq) {
                Arc::make_mut(&mut live.job).shift(micros);
                // A job that is set aside cannot be written. Its clocks begin anew when it is released.
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

/// Whether the job's row holds anything that says how long something may take. For a job that no agent has had, that is
/// only the caller's limit.
pub(super) fn is_timed(job: &Job) -> bool {
    job.started_at.is_some() || job.request.limits.total.is_some()
}
