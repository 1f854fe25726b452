//! Why the task door refuses, in the codes of its contract (TASK-6).

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::json::Value;
use crosspoint_contracts::task::{Status, failure};
use crosspoint_contracts::{Finding, Report};
use crosspoint_engine::content::Body;
use crosspoint_engine::core::Rejected;
use crosspoint_engine::job::{Job, Phase, State};
use crosspoint_engine::machine::Refused;
use crosspoint_engine::runtime::{Denied, NewJob, Unaccepted};

use crate::passage::incoming::{names_in, one_of_all};
use crate::server::App;
use crate::server::refusal::Refusal;
use crate::server::submit::{self, NAME_BYTES_MAX};

/// The refusal of a request about this task.
pub(super) fn of(id: &str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| refusal.of_request(Some(id.to_owned()))
}

/// The refusal of this document: its id is that of the request, where it can be read.
pub(super) fn of_document(refusal: Refusal, document: &Bytes) -> Refusal {
    let [id] = names_in(document, ["id"]);
    refusal.of_request(id)
}

/// The document is no task.
pub(super) fn malformed(report: Report) -> Refusal {
    // A circle is told of only where nothing else is wrong: the rest must be mended first.
    let told = report.findings.iter().min_by_key(|finding| failure::of_finding(finding).0 == Failure::Delegation);
    let Some(Finding { clause, pointer, message, hint, .. }) = told.cloned() else { return Refusal::internal() };
    let (failure, code) = told.map(failure::of_finding).unwrap_or((Failure::Invalid, "INVALID_INPUT"));
    let message = format!("{message}{}", one_of_all(&report));
    let is_circle = failure == Failure::Delegation;
    let refusal = if is_circle { Refusal::delegation(message, hint) } else { Refusal::invalid(message, hint) };
    let field = pointer.trim_start_matches('/').replace('/', ".");
    let refusal = refusal.coded(code).clause(clause.id).at(pointer).because(report);
    if field.is_empty() { refusal } else { refusal.field(field) }
}

/// An id is compared, shown and logged whole.
pub(super) fn check_id(id: Option<&str>) -> Result<(), Refusal> {
    if id.is_some_and(|id| id.len() > NAME_BYTES_MAX) {
        return Err(submit::too_long("/id").coded("INVALID_FIELD_VALUE").field("id"));
    }
    Ok(())
}

pub(super) fn no_such_task(id: Option<&str>) -> Refusal {
    let hint =
        "poll with the id that was sent, percent-encoded; tasks that have ended are kept for [store] retention_days";
    let refusal = Refusal::not_found("no task has this id", hint).coded("INVALID_FIELD_VALUE").field("id");
    refusal.clause("TASK-4.2").of_request(id.map(str::to_owned))
}

/// What of a request must be known to say why it became no job.
pub(super) struct Wanted {
    id: String,
    work: Arc<str>,
}

impl Wanted {
    pub(super) fn of(new: &NewJob) -> Wanted {
        Wanted { id: new.request_id.as_deref().unwrap_or_default().to_owned(), work: new.work.clone() }
    }

    pub(super) fn unaccepted(&self, app: &App, why: &Unaccepted) -> Refusal {
        let refusal = match why {
            Unaccepted::Conflict(job) => conflict(if job.request.work == self.work { "payload" } else { "type" }),
            Unaccepted::Rejected(Rejected::UnknownWork) => {
                Refusal::unaccepted(app, why).coded("CAPABILITY_NOT_FOUND").at("/type").field("type")
            }
            Unaccepted::Rejected(Rejected::UnknownAgent) => {
                let refusal = Refusal::unaccepted(app, why).coded("AGENT_NOT_FOUND").clause("TASK-1.5");
                refusal.at("/routing/target").field("routing.target")
            }
            Unaccepted::Rejected(Rejected::NotItsWork) => {
                let hint = "leave `routing.target` out, or GET /api/v1/agents for who takes what";
                let refusal = Refusal::unsupported("the target does not take tasks of this type", hint);
                refusal.coded("CAPABILITY_NOT_FOUND").clause("TASK-122").at("/type").field("type")
            }
            Unaccepted::Rejected(Rejected::Full { .. })
            | Unaccepted::Overloaded
            | Unaccepted::Closed
            | Unaccepted::Lost
            | Unaccepted::Fault(_)
            | Unaccepted::NotTried(_) => Refusal::unaccepted(app, why),
        };
        of(&self.id)(refusal)
    }
}

/// TASK-5.
fn conflict(field: &'static str) -> Refusal {
    let message = format!("this id, or this Idempotency-Key, is that of a task with another `{field}`");
    let hint = "use a new id for another task; the one that there is goes on as it is";
    Refusal::conflict(message, hint).coded("INVALID_FIELD_VALUE").clause("TASK-5").at(format!("/{field}")).field(field)
}

/// Why a wish about a task was not granted.
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

/// The contract's word for how a task is. One that waits for an operator goes on for its caller (ALL-13).
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
