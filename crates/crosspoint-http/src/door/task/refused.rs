//! The refusals of the task door, in the codes of its contract (TASK-6).

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::Value;
use crosspoint_contracts::task::Status;
use crosspoint_engine::job::{Job, Phase, State};
use crosspoint_engine::machine::Refused;
use crosspoint_engine::runtime::Denied;

use crate::server::refusal::Refusal;
use crate::server::submit;

/// Makes a refusal name this task.
pub(super) fn of(id: &str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| refusal.of_request(Some(id.to_owned()))
}

pub(super) fn no_such_task(id: Option<&str>) -> Refusal {
    let hint =
        "poll with the id that was sent, percent-encoded; tasks that have ended are kept for [store] retention_days";
    let refusal = Refusal::not_found("no task has this id", hint).coded("INVALID_FIELD_VALUE").field("id");
    refusal.clause("TASK-4.2").of_request(id.map(str::to_owned))
}

/// Returns the refusal of a request about a task that was denied.
pub(super) fn denied(why: &Denied, id: &str) -> Refusal {
    let refusal = match why {
        Denied::NotFound => no_such_task(Some(id)),
        Denied::Refused(Refused::Ended(phase)) => {
            let message = format!("the task has ended as {}", phase.name());
            Refusal::untimely(message, "a finished task never changes: GET it to see its result").clause("TASK-3.2")
        }
        Denied::Refused(Refused::NotWaiting(phase) | Refused::NotQueued(phase)) => {
            let message = format!("the task is {} and waits for no input", status_word(*phase));
            Refusal::untimely(message, "GET the task, and answer while its status is input_required").clause("TASK-4.3")
        }
        Denied::Refused(Refused::Poisoned | Refused::Aside | Refused::NotAside(_)) => {
            let message = "the task waits for an operator, not for input";
            Refusal::untimely(message, "GET the task, and answer while its status is input_required").clause("TASK-4.3")
        }
        Denied::NotEnded(_) | Denied::Closed | Denied::Lost | Denied::Fault(_) | Denied::NotTried(_) => {
            Refusal::denied(why, || no_such_task(None))
        }
    };
    of(id)(refusal)
}

/// The contract's word for the state of a task. For its caller, a task that waits for an operator goes on (ALL-13).
pub(super) fn status_of(job: &Job) -> &'static str {
    if matches!(job.state, State::Poisoned) { status_word(Phase::Running) } else { status_word(job.phase()) }
}

fn status_word(phase: Phase) -> &'static str {
    let status = match phase {
        Phase::Queued => Status::Pending,
        Phase::Running | Phase::Retrying => Status::InProgress,
        Phase::Waiting => Status::InputRequired,
        Phase::Completed => Status::Completed,
        Phase::Failed => Status::Failed,
        Phase::Cancelled => Status::Cancelled,
    };
    status.word()
}

/// Reads `{"input": any}` (TASK-4.3).
pub(super) fn input(document: &Bytes) -> Result<Body, Refusal> {
    const HINT: &str = r#"send {"input": "your answer"}"#;
    let input = || {
        let tape = submit::scan(document)?;
        let input = submit::object(&tape, HINT)?.get("input").map(Value::span);
        let missing = || Refusal::invalid("`input` is missing", HINT).coded("MISSING_REQUIRED_FIELD").at("/input");
        let (start, end) = input.ok_or_else(|| missing().field("input"))?;
        Ok(Body::trusted(document.slice(start..end)))
    };
    input().map_err(|refusal: Refusal| refusal.clause("TASK-4.3"))
}
