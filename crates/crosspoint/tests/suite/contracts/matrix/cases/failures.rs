//! The closed list of failures: each that an agent of a kind can report, as each door shows it.

use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::{bridge, message, run};
use serde_json::{Value, json};

use super::super::agents::message::OWN_CODE as OWN_NUMBER;
use super::super::agents::{Kind, OWN_CODE, Purpose, Way};
use super::super::cell::{Cell, Fails, Verdict};
use super::super::doors::{Door, Order, fetch};
use crate::support::server::until;

const MESSAGE: &str = "It is \"too salty\", ä.";

/// Has an agent fail like this, if it can.
fn given(cell: &Cell<'_>, failure: Failure) -> Verdict {
    let asked = match cell.kind {
        Kind::Builtin => Ok(builtin(cell, failure)),
        Kind::Exec | Kind::Joined => exec(cell, failure),
        Kind::Run => Ok(of_run(cell, failure)),
        Kind::Task => of_task(cell, failure),
        Kind::Bridge if failure == Failure::BrokenContract => return mended(cell),
        Kind::Bridge => Ok(of_bridge(cell, failure)),
        Kind::Pushed | Kind::Pulled => Ok(of_message(cell, failure)),
        Kind::Program | Kind::Service => of_workflow(cell, failure),
        Kind::Function(way) => of_function(cell, way, failure),
    };
    match asked {
        Err(reason) => Verdict::NotHere(reason),
        Ok((order, fails)) => {
            let (job, view) = cell.fails(&order, cell.submit(&order), &fails);
            if failure == Failure::BrokenContract && !matches!(cell.kind.like(), Kind::Builtin | Kind::Exec) {
                let name = match cell.kind {
                    kind if kind.is_message() => "msg",
                    kind if kind.is_workflow() => "wf",
                    kind => kind.name(),
                };
                let contract = format!("{}-", name.to_uppercase());
                assert!(clauses(&job).iter().any(|clause| clause.starts_with(&contract)), "it is on record: {job}");
            }
            if cell.kind.like() == Kind::Exec && failure == Failure::AgentFailed {
                assert_eq!(view.details["exit_code"], 3, "{}", view.document);
            }
            Verdict::Right
        }
    }
}

/// The recorded clauses that were broken.
pub(super) fn clauses(job: &Value) -> Vec<String> {
    let violations = job["violations"].as_array().cloned().unwrap_or_default();
    violations.iter().map(|violation| violation["clause"].as_str().expect("a clause").to_owned()).collect()
}

/// What becomes of a failure that an agent reported in its contract: its `unauthenticated` is about our token (RUN-5).
fn reported(failure: Failure, own: Option<&str>) -> Fails {
    if failure == Failure::Unauthenticated {
        return Fails { repeat: Repeat::Never, ..fails(Failure::Unavailable, own) };
    }
    fails(failure, own)
}

/// What the contract's list says of a failure.
fn fails(failure: Failure, own: Option<&str>) -> Fails {
    let repeat = failure.repeat(Dispatched::Yes);
    Fails { failure, repeat, own: own.map(str::to_owned), message: Some(MESSAGE) }
}

fn builtin(cell: &Cell<'_>, failure: Failure) -> (Order, Fails) {
    let mut order = cell.order("fail");
    order.input["failure"] = json!(failure.name());
    order.input["message"] = json!(MESSAGE);
    (order, fails(failure, None))
}

const ALL_A_PROGRAM_HAS: &str = "a program has an exit code, and what is done to it";

fn exec(cell: &Cell<'_>, failure: Failure) -> Result<(Order, Fails), &'static str> {
    let ours = Fails { message: None, ..fails(failure, None) };
    match failure {
        Failure::AgentFailed => {
            let mut order = cell.order("fail");
            order.input["message"] = json!(MESSAGE);
            Ok((order, ours))
        }
        // Part of the work is done, and a repeat would use as much again.
        Failure::ResourceLimit => {
            Ok((cell.order_for(Purpose::Strict, "flood"), Fails { repeat: Repeat::Never, ..ours }))
        }
        Failure::BrokenContract => Ok((cell.order_for(Purpose::Strict, "ask"), ours)),
        Failure::Timeout
        | Failure::Unavailable
        | Failure::Invalid
        | Failure::Unauthenticated
        | Failure::Unsupported
        | Failure::Cancelled
        | Failure::Delegation
        | Failure::Conflict
        | Failure::Internal => Err(ALL_A_PROGRAM_HAS),
    }
}

fn of_run(cell: &Cell<'_>, failure: Failure) -> (Order, Fails) {
    if failure == Failure::BrokenContract {
        return (cell.order("break"), Fails { message: None, ..fails(failure, None) });
    }
    let (code, status) = if failure == Failure::AgentFailed { (OWN_CODE, 200) } else { run::failure::write(failure) };
    (failing(cell, &json!(code), &json!({"status": status})), reported(failure, Some(code)))
}

fn of_task(cell: &Cell<'_>, failure: Failure) -> Result<(Order, Fails), &'static str> {
    let (code, recoverable) = match failure {
        Failure::Timeout => ("TIMEOUT", true),
        Failure::Unavailable => ("AGENT_UNAVAILABLE", true),
        Failure::Invalid => ("MISSING_REQUIRED_FIELD", true),
        Failure::Unauthenticated => ("UNAUTHENTICATED", true),
        Failure::ResourceLimit => ("RATE_LIMITED", true),
        Failure::Unsupported => ("CAPABILITY_NOT_FOUND", false),
        Failure::AgentFailed => ("MCP_NOT_CONNECTED", true),
        Failure::Cancelled => ("CANCELLED", false),
        Failure::Delegation => ("TASK_GRAPH_CYCLE", false),
        Failure::Conflict => return Err("a task's code for it says invalid"),
        Failure::BrokenContract => {
            return Ok((cell.order("break"), Fails { message: None, ..fails(failure, None) }));
        }
        Failure::Internal => ("INTERNAL_ERROR", true),
    };
    let fails = reported(failure, Some(code));
    // A cancelled task has no error, so there is no place for the message.
    let message = fails.message.filter(|_| failure != Failure::Cancelled);
    Ok((failing(cell, &json!(code), &json!({"recoverable": recoverable})), Fails { message, ..fails }))
}

fn of_bridge(cell: &Cell<'_>, failure: Failure) -> (Order, Fails) {
    let (status, code) = bridge::failure::write(failure);
    let code = if failure == Failure::AgentFailed { OWN_CODE } else { code };
    (failing(cell, &json!(code), &json!({"status": status.word()})), reported(failure, Some(code)))
}

/// Every failure but the agent's own has a code. What may be repeated is, by the same agent (MSG-5).
fn of_message(cell: &Cell<'_>, failure: Failure) -> (Order, Fails) {
    if failure == Failure::BrokenContract {
        return (cell.order("break"), Fails { message: None, ..fails(failure, None) });
    }
    let code = message::failure::write(failure).unwrap_or(OWN_NUMBER);
    // One of the two kinds has a code of its own for it, the other none.
    let own = (cell.kind == Kind::Pulled).then(|| code.to_string());
    (failing(cell, &json!(code), &json!({})), reported(failure, own.as_deref()))
}

/// The contract has no words for failures. The status of a service says some, and what is done to a program others.
fn of_workflow(cell: &Cell<'_>, failure: Failure) -> Result<(Order, Fails), &'static str> {
    let ours = Fails { message: None, ..fails(failure, None) };
    let status = match (failure, cell.kind) {
        (Failure::BrokenContract, _) => return Ok((cell.order("break"), ours)),
        (Failure::ResourceLimit, Kind::Program) => {
            return Ok((cell.order_for(Purpose::Strict, "flood"), Fails { repeat: Repeat::Never, ..ours }));
        }
        (Failure::AgentFailed, _) => 200,
        (Failure::Invalid, Kind::Service) => 400,
        (Failure::Unauthenticated, Kind::Service) => 401,
        (Failure::Unsupported, Kind::Service) => 404,
        (_, _) => return Err("an envelope has no word for it"),
    };
    Ok((failing(cell, &Value::Null, &json!({"status": status})), reported(failure, None)))
}

/// A function fails in its own words. What else it can say is said for it.
fn of_function(cell: &Cell<'_>, way: Way, failure: Failure) -> Result<(Order, Fails), &'static str> {
    let ours = Fails { message: None, ..fails(failure, None) };
    match failure {
        Failure::AgentFailed => Ok((failing(cell, &json!(OWN_CODE), &json!({})), fails(failure, Some(OWN_CODE)))),
        // Nothing was done, and it is tried again until there are no more attempts.
        Failure::ResourceLimit => {
            let order = failing(cell, &json!(OWN_CODE), &json!({"again": true}));
            // Callers also get the agent's own word for it.
            let repeat = if cell.door == Door::Native { Repeat::Unknown } else { Repeat::Safe };
            Ok((order, Fails { repeat, ..fails(failure, None) }))
        }
        Failure::Unsupported if way == Way::Pulled => Err("who asks for work says which"),
        Failure::Unsupported => Ok((cell.order_for(Purpose::Strict, "echo"), ours)),
        Failure::Unauthenticated if way == Way::Pulled => Err("who asks for work is not called"),
        Failure::Unauthenticated => {
            Ok((cell.order_for(Purpose::Locked, "echo"), Fails { message: None, ..reported(failure, None) }))
        }
        Failure::BrokenContract => Err("a function's answers are written for it, and break no contract"),
        Failure::Timeout
        | Failure::Unavailable
        | Failure::Invalid
        | Failure::Cancelled
        | Failure::Delegation
        | Failure::Conflict
        | Failure::Internal => Err("a function says that the work failed, or that it may be tried again"),
    }
}

/// A person may answer in files, make mistakes and mend them: the job goes on waiting, and the mistake is recorded.
fn mended(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("break");
    let handle = cell.submit(&order);
    let path = format!("/api/v1/jobs/{}", handle.job_id());
    let job = until("the mistake is on record", || {
        let job = fetch(cell.world.address, &path).json();
        (!clauses(&job).is_empty()).then_some(job)
    });
    assert_eq!((clauses(&job), &job["state"]), (vec!["BRIDGE-1.2".to_owned()], &json!("running")), "{job}");
    cell.release();
    let (job, _) = cell.succeeds(&order, handle, &order.input);
    assert_eq!(job["attempts"], 1, "{job}");
    assert_eq!(cell.seen("new").len(), 1, "it is not asked again");
    Verdict::Right
}

fn failing(cell: &Cell<'_>, code: &Value, more: &Value) -> Order {
    let mut order = cell.order("fail");
    order.input["code"] = code.clone();
    order.input["message"] = json!(MESSAGE);
    for (name, value) in more.as_object().into_iter().flatten() {
        order.input[name] = value.clone();
    }
    order
}

macro_rules! cases {
    ($($name:ident: $failure:ident,)*) => {
        $(pub(super) fn $name(cell: &Cell<'_>) -> Verdict {
            given(cell, Failure::$failure)
        })*
    };
}

cases! {
    agent_failed: AgentFailed,
    invalid: Invalid,
    unauthenticated: Unauthenticated,
    resource_limit: ResourceLimit,
    unsupported: Unsupported,
    cancelled: Cancelled,
    delegation: Delegation,
    conflict: Conflict,
    broken_contract: BrokenContract,
    internal: Internal,
    timeout: Timeout,
    unavailable: Unavailable,
}
