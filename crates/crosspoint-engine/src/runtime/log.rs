//! Logs what was committed.

use std::borrow::Cow;

use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::time::Time;

use crate::breaker::Breaker;
use crate::core::Batch;
use crate::event::{Violation, What};
use crate::id::Seq;
use crate::job::Job;

/// Writes one line for each transition: ids first, never content.
pub(super) fn transitions(batch: &Batch) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    for written in batch.jobs.values() {
        let (job, request) = (&written.job, &written.job.request);
        let id = request.id;
        if written.accepted.is_some() {
            tracing::info!(job = %id, request_id = &*request.request_id, door = request.door.name(), work = &*request.work, "accepted");
        }
        for entry in &written.entries {
            match &entry.what {
                What::Started { attempt, agent } => tracing::info!(job = %id, attempt, agent = &**agent, "started"),
                What::Retrying { attempt, failure, until } => {
                    tracing::info!(job = %id, attempt, failure = failure.name(), %until, "retrying");
                }
                What::Interrupted { attempt } => tracing::info!(job = %id, attempt, "interrupted"),
                What::Asked { .. } => tracing::info!(job = %id, "waiting"),
                What::Answered { .. } => tracing::info!(job = %id, "answered"),
                What::Ended(outcome) => {
                    let failure = outcome.failure().map(Failure::name);
                    let ms = outcome.at.since(request.accepted_at).as_millis();
                    tracing::info!(job = %id, attempts = job.attempts, duration_ms = ms, failure, "{}", outcome.status.name());
                }
                What::Accepted | What::Progress(_) | What::Output { .. } | What::Step { .. } => {}
            }
        }
    }
}

/// Writes that an agent's breaker has opened or closed. Half open it is only for the time of a check.
pub(super) fn breaker(agent: &str, before: Breaker, after: Breaker) {
    match after {
        Breaker::Open { until } if before != after => {
            // An operator who opened it closes it, too.
            let until = Some(until).filter(|until| *until != Time::NEVER).map(tracing::field::display);
            tracing::warn!(agent, state = after.name(), until, "the agent's breaker has opened; new work for it waits");
        }
        Breaker::Closed { .. } if !before.is_closed() => {
            tracing::info!(agent, state = after.name(), "the agent's breaker has closed");
        }
        Breaker::Open { .. } | Breaker::HalfOpen | Breaker::Closed { .. } => {}
    }
}

/// Writes that a rule was broken, by the agent that has the job. A job that is not in memory is named by its number.
pub(super) fn violation(seq: Seq, job: Option<&Job>, violation: &Violation) {
    let (clause, number) = (violation.clause, job.is_none().then_some(seq.0));
    let id = job.map(|job| tracing::field::display(job.id()));
    let agent = job.and_then(|job| job.agent.as_deref());
    match &violation.what {
        Cow::Borrowed(what) => tracing::warn!(job = id, agent, seq = number, clause, "{what}"),
        // An agent may have chosen the words, so they are content: only the clause is logged (RUN-11).
        Cow::Owned(_) => tracing::warn!(job = id, agent, seq = number, clause, "a rule was broken"),
    }
}
