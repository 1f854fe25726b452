//! Why the engine does not do what a request asks, as refusals.

use crosspoint_contracts::failure::Repeat;
use crosspoint_contracts::job::State;
use crosspoint_engine::core::Share;
use crosspoint_engine::job::Phase;
use crosspoint_engine::machine::Refused;
use crosspoint_engine::runtime;
use crosspoint_engine::store::Fault;
use crosspoint_exchange::backend::Denied;
use crosspoint_exchange::refusal::{DONE_OR_NOT, JOB_OR_NOT, Limit, Refusal};

/// The limit of jobs is reached, of all jobs or of one share.
pub(super) fn full(share: Share, most: usize) -> Refusal {
    let limit = match share {
        Share::All => Limit::Jobs,
        Share::Work => Limit::JobsPerWork,
        Share::Agent => Limit::JobsPerAgent,
        Share::Caller => Limit::JobsPerCaller,
    };
    Refusal::full(limit, most)
}

pub(super) fn overloaded() -> Refusal {
    let hint = "nothing was done; send it again later";
    Refusal::unavailable("too many requests wait to be written", hint).over(Limit::Waiting)
}

pub(super) fn lost() -> Refusal {
    let message = "the server ended before it could say whether this became a job";
    Refusal::unavailable(message, JOB_OR_NOT).with_repeat(Repeat::Unknown, JOB_OR_NOT)
}

/// The job was to be written, and that failed.
pub(super) fn maybe_submitted(error: &Fault) -> Refusal {
    tried(error, JOB_OR_NOT)
}

/// Something was to be written, and that failed. A full disk takes nothing. After any other error it is unknown what
/// the disk holds.
pub(crate) fn tried(error: &Fault, hint: &'static str) -> Refusal {
    let refusal = fault(error);
    if matches!(error, Fault::Full { .. }) { refusal } else { refusal.with_repeat(Repeat::Unknown, hint) }
}

/// Returns why a caller's job was not changed.
pub(super) fn of_change(why: &runtime::Denied) -> Denied {
    match why {
        runtime::Denied::NotFound => Denied::NotFound,
        runtime::Denied::Refused(Refused::Ended(phase)) => Denied::Ended(state(*phase)),
        runtime::Denied::Refused(Refused::NotWaiting(phase) | Refused::NotQueued(phase)) => {
            Denied::NotWaiting(state(*phase))
        }
        runtime::Denied::Refused(Refused::OtherQuestion) => Denied::NotShown,
        runtime::Denied::Refused(Refused::Poisoned | Refused::Aside | Refused::NotAside(_)) => Denied::WaitsForOperator,
        runtime::Denied::NotEnded(_)
        | runtime::Denied::Closed
        | runtime::Denied::Lost
        | runtime::Denied::Fault(_)
        | runtime::Denied::NotTried(_) => Denied::Refused(denied(why, Refusal::no_such_job)),
    }
}

/// Returns the word for a phase that contracts know. A job between two attempts goes on for its caller.
fn state(phase: Phase) -> State {
    match phase {
        Phase::Queued => State::Queued,
        Phase::Running | Phase::Retrying => State::Running,
        Phase::Waiting => State::Waiting,
        Phase::Completed => State::Completed,
        Phase::Failed => State::Failed,
        Phase::Cancelled => State::Cancelled,
    }
}

/// Returns the refusal of a request that was denied. `missing` is the refusal if the job or agent does not exist.
pub(crate) fn denied(why: &runtime::Denied, missing: fn() -> Refusal) -> Refusal {
    match why {
        runtime::Denied::NotFound => missing(),
        runtime::Denied::Refused(refused) => Refusal::conflict(refused.to_string(), "GET the job to see how it is"),
        runtime::Denied::NotEnded(job) => Refusal::conflict(
            format!("the job is {} and has not ended", job.phase().name()),
            "wait for its outcome, or cancel it first",
        ),
        runtime::Denied::Closed => Refusal::stopping(),
        runtime::Denied::Lost => Refusal::ended(),
        runtime::Denied::Fault(error) => tried(error, DONE_OR_NOT),
        runtime::Denied::NotTried(error) => fault(error),
    }
}

/// The store failed. The log says how, callers are only told the kind of fault.
pub(crate) fn fault(error: &Fault) -> Refusal {
    tracing::error!(error = %error, "a request could not be carried out");
    let message = format!("the store cannot be used at present: {}", reason(error));
    let refusal = Refusal::unavailable(message, "nothing was done; send it again later, and see the server's log");
    if matches!(error, Fault::Full { .. }) { refusal.over(Limit::StoreBytes) } else { refusal }
}

/// Returns what is wrong with the store, without its place.
pub(crate) fn reason(error: &Fault) -> &'static str {
    match error {
        Fault::Newer { .. } => "a later version wrote it",
        Fault::NotOurs { .. } => "it is not a store",
        Fault::Damaged { .. } => "it is damaged",
        Fault::InUse { .. } => "another process uses it",
        Fault::Full { .. } => "the disk or its configured size is full",
        Fault::NotWritable { .. } => "it cannot be written",
        Fault::Unwritable { .. } => "it does not take this",
        Fault::Lost { .. } => "it was moved or replaced, or another process has taken it over",
        Fault::Broken { .. } => "it could not be read or written",
    }
}
