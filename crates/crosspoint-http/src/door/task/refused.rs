//! The refusals of the task door, in the codes of its contract (TASK-6).

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::job::State;
use crosspoint_contracts::json::Value;
use crosspoint_contracts::task::Status;
use crosspoint_exchange::backend::Denied;
use crosspoint_exchange::refusal::Refusal;

use crate::json_body;

/// Makes a refusal name this task.
pub(crate) fn of(id: &str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| refusal.of_request(Some(id.to_owned()))
}

pub(crate) fn no_such_task(id: Option<&str>) -> Refusal {
    let hint =
        "poll with the id that was sent, percent-encoded; tasks that have ended are kept for [store] retention_days";
    let refusal = Refusal::not_found("no task has this id", hint).coded("INVALID_FIELD_VALUE").field("id");
    refusal.clause("TASK-4.2").of_request(id.map(str::to_owned))
}

/// Returns why a task was not changed.
pub(crate) fn denied(why: Denied, id: &str) -> Refusal {
    let refusal = match why {
        Denied::NotFound => no_such_task(Some(id)),
        Denied::Ended(state) => {
            let message = format!("the task has ended as {}", status_word(state));
            Refusal::untimely(message, "a finished task never changes: GET it to see its result").clause("TASK-3.2")
        }
        Denied::NotWaiting(state) => untimely(format!("the task is {} and waits for no input", status_word(state))),
        Denied::NotShown => {
            let hint = "GET the task, and answer the question that it shows";
            Refusal::untimely("the question was not shown to anyone yet; read the task first", hint).clause("TASK-4.3")
        }
        Denied::WaitsForOperator => untimely("the task waits for an operator, not for input".to_owned()),
        Denied::Refused(refusal) => refusal,
    };
    of(id)(refusal)
}

fn untimely(message: String) -> Refusal {
    Refusal::untimely(message, "GET the task, and answer while its status is input_required").clause("TASK-4.3")
}

/// Returns the contract's word for the state of a task.
pub(crate) fn status_word(state: State) -> &'static str {
    let status = match state {
        State::Queued => Status::Pending,
        State::Running => Status::InProgress,
        State::Waiting => Status::InputRequired,
        State::Completed => Status::Completed,
        State::Failed => Status::Failed,
        State::Cancelled => Status::Cancelled,
    };
    status.word()
}

/// Reads `{"input": any}` (TASK-4.3).
pub(crate) fn input(document: &Bytes) -> Result<Body, Refusal> {
    const HINT: &str = r#"send {"input": "your answer"}"#;
    let input = || {
        let tape = json_body::scan(document)?;
        let input = json_body::object(&tape, HINT)?.get("input").map(Value::span);
        let missing = || Refusal::invalid("`input` is missing", HINT).coded("MISSING_REQUIRED_FIELD").at("/input");
        let (start, end) = input.ok_or_else(|| missing().field("input"))?;
        Ok(Body::trusted(document.slice(start..end)))
    };
    input().map_err(|refusal: Refusal| refusal.clause("TASK-4.3"))
}
