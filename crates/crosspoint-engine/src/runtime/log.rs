//! Logs what was committed.

use std::borrow::Cow;

use crosspoint_contracts::failure::Failure;

use crate::core::Batch;
use crate::event::What;

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
                What::Accepted | What::Progress(_) | What::Output { .. } => {}
            }
        }
    }
    for (seq, _, violation) in &batch.violations {
        match &violation.what {
            Cow::Borrowed(what) => tracing::warn!(seq = seq.0, clause = violation.clause, "{what}"),
            // An agent may have chosen the words, so they are content: only the clause is logged (RUN-11).
            Cow::Owned(_) => tracing::warn!(seq = seq.0, clause = violation.clause, "a rule was broken"),
        }
    }
}
