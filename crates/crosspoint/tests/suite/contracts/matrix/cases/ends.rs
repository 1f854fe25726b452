//! Ends that no agent reported: agents that die, fall silent or are absent, and callers that cancel.

use std::collections::BTreeSet;
use std::fs;

use crosspoint_contracts::failure::{Failure, Repeat};
use serde_json::json;

use super::super::agents::{Kind, Purpose};
use super::super::cell::{Cell, Fails, Verdict};
use super::super::doors::{Door, fetch};
use super::super::ledger::Seen;
use super::failures::clauses;
use crate::support::bridge_caller::{new_id, request};
use crate::support::bridge_directory::{Directory, REQUEST};
use crate::support::server::until;

fn fails(failure: Failure, repeat: Repeat) -> Fails {
    Fails { failure, repeat, own: None, message: None }
}

/// The agent is told, if its contract has a way to.
pub(super) fn cancel(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("hold");
    let handle = cell.submit(&order);
    cell.under_way(&handle);
    handle.cancel();
    cell.fails(&order, handle, &fails(Failure::Cancelled, Repeat::Never));
    if is_told(cell.kind) {
        cell.until_seen("told");
    }
    Verdict::Right
}

/// Whether the agent is told that the work is not wanted any more. In the contracts of run and workflow the connection
/// just ends; a function goes on, because the same request may come again.
fn is_told(kind: Kind) -> bool {
    let by_connection = matches!(kind.like(), Kind::Run | Kind::Service);
    kind != Kind::Builtin && !(kind.is_function() && by_connection)
}

/// Why an agent cannot ask questions, if it cannot.
pub(super) fn cannot_ask(kind: Kind) -> Option<&'static str> {
    match kind.like() {
        Kind::Builtin | Kind::Exec | Kind::Joined | Kind::Task | Kind::Pushed | Kind::Pulled | Kind::Function(_) => {
            None
        }
        Kind::Run => Some("a run agent has no way to ask"),
        Kind::Bridge => Some("an agent of the bridge contract has no way to ask"),
        Kind::Program | Kind::Service => Some("an agent of the workflow contract has no way to ask"),
    }
}

/// A question that no longer needs an answer.
pub(super) fn cancel_while_it_asks(cell: &Cell<'_>) -> Verdict {
    if let Some(reason) = cannot_ask(cell.kind) {
        return Verdict::NotHere(reason);
    }
    let order = cell.order("ask");
    let handle = cell.submit(&order);
    handle.sees_question();
    handle.cancel();
    cell.fails(&order, handle, &fails(Failure::Cancelled, Repeat::Never));
    if is_told(cell.kind) {
        cell.until_seen("told");
    }
    Verdict::Right
}

/// RUN-7 and the like: work that has begun before its agent is gone may have been done.
pub(super) fn death(cell: &Cell<'_>) -> Verdict {
    if cell.kind.is_message() && cell.door == Door::Bridge {
        return Verdict::NotHere("a requester's time is how long the agent may be silent");
    }
    let (purpose, expected) = match cell.kind.like() {
        Kind::Builtin => return Verdict::NotHere("a built-in agent dies with the server"),
        Kind::Exec | Kind::Joined | Kind::Program => (Purpose::Plain, fails(Failure::AgentFailed, Repeat::Never)),
        // The connection is lost before the terminal event, or the answer.
        Kind::Run | Kind::Service => (Purpose::Plain, fails(Failure::Unavailable, Repeat::Unknown)),
        // Polls are not answered any more.
        Kind::Task => (Purpose::Quiet, fails(Failure::Timeout, Repeat::Unknown)),
        Kind::Bridge => return Verdict::NotHere("an agent of the bridge contract gives no sign of life"),
        Kind::Pushed | Kind::Pulled | Kind::Function(_) => return comes_back(cell),
    };
    let purpose = if cell.kind.is_function() { Purpose::Dying } else { purpose };
    let order = cell.order_for(purpose, "die");
    let handle = cell.submit(&order);
    cell.under_way(&handle);
    cell.release();
    let (job, view) = cell.fails(&order, handle, &expected);
    if cell.kind.like() == Kind::Run {
        assert_eq!(clauses(&job), ["RUN-7"], "it is on record: {job}");
    }
    if matches!(cell.kind.like(), Kind::Exec | Kind::Program) {
        assert_eq!(view.details["signal"], 9, "{}", view.document);
    }
    Verdict::Right
}

/// MSG-5: an agent of the message contract does no request twice, so work that it may have begun is sent again to the
/// same agent, which knows it by its id.
fn comes_back(cell: &Cell<'_>) -> Verdict {
    let is_function = cell.kind.is_function();
    let order = if is_function { cell.order_for(Purpose::Dying, "die") } else { cell.order("die") };
    let handle = cell.submit(&order);
    handle.sees_progress(cell.step());
    cell.release();
    let (job, _) = cell.succeeds(&order, handle, &order.input);
    assert_eq!(job["attempts"], 2, "{job}");
    sent_again(&cell.seen("new"), 2);
    Verdict::Right
}

/// MSG-5.2: every attempt has the same request id and trace, and a message id of its own.
fn sent_again(seen: &[Seen], times: usize) {
    let of = |name: &str| seen.iter().map(|seen| seen.document[name].to_string()).collect::<BTreeSet<String>>();
    let counts = (seen.len(), of("request_id").len(), of("trace_id").len(), of("message_id").len());
    assert_eq!(counts, (times, 1, 1, times), "{seen:?}");
}

pub(super) fn silence(cell: &Cell<'_>) -> Verdict {
    let mut order = cell.order("silent");
    // Its total time ends it.
    let has_requesters_time = cell.kind == Kind::Bridge || cell.kind.is_message() || cell.kind.is_workflow();
    let is_limited = cell.door == Door::Bridge && has_requesters_time;
    if is_limited {
        // A request that does not say how long its requester waits means two minutes (BRIDGE-110), whatever the agent's
        // time is.
        order.members = vec![("timeout_seconds", json!(2))];
    }
    let (job, _) = cell.fails(&order, cell.submit(&order), &fails(Failure::Timeout, Repeat::Unknown));
    let gets_all = matches!(cell.kind, Kind::Pushed | Kind::Pulled);
    if gets_all && !is_limited {
        // MSG-5: four attempts in all, and then the agent is told that nobody waits any more (MSG-19).
        assert_eq!(job["attempts"], 4, "{job}");
        sent_again(&cell.seen("new"), 4);
    } else if cell.kind != Kind::Builtin {
        // A requester's time counts from the request on, and may be over before a slow machine has begun.
        let begun = cell.seen("new").len();
        assert!(begun == 1 || (is_limited && begun == 0), "what may have begun is not begun again: {begun}");
    }
    if has_requesters_time && is_told(cell.kind) {
        // Nobody waits any more, so no agent is to begin it or to go on with it.
        cell.until_seen("told");
    }
    Verdict::Right
}

/// ALL-3: work that certainly never began is tried again, under the same id and in a span of its own.
pub(super) fn busy(cell: &Cell<'_>) -> Verdict {
    match cell.kind.like() {
        Kind::Builtin => return Verdict::NotHere("a built-in agent is never busy"),
        Kind::Exec | Kind::Joined | Kind::Program => return Verdict::NotHere("a program that starts has begun"),
        Kind::Bridge => return occupied(cell),
        Kind::Run | Kind::Task | Kind::Pushed | Kind::Pulled | Kind::Service | Kind::Function(_) => {}
    }
    let order = cell.order("again");
    let (job, _) = cell.succeeds(&order, cell.submit(&order), &order.input);
    assert_eq!(job["attempts"], 2, "{job}");
    let seen = cell.seen("new");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].id, seen[1].id);
    if cell.kind.is_message() {
        sent_again(&seen, 2);
    }
    if cell.kind.like() != Kind::Pulled {
        assert_ne!(seen[0].trace, seen[1].trace);
    }
    Verdict::Right
}

/// A directory has one place: while another request is there, ours waits, and nothing was begun.
fn occupied(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("again");
    let directory = cell.agent_directory(&order);
    Directory::at(&directory).leave(REQUEST, &request(&new_id(), "another", "A question of another program."));
    let handle = cell.submit(&order);
    let path = format!("/api/v1/jobs/{}", handle.job_id());
    until("it says that it waits", || {
        let step = &fetch(cell.world.address, &path).json()["progress"]["step"];
        step.as_str().filter(|step| step.contains("another program's")).map(|_| ())
    });
    assert!(cell.seen("new").is_empty(), "the other's request is not touched");
    fs::remove_file(directory.join(REQUEST)).expect("it is still there");
    let (job, _) = cell.succeeds(&order, handle, &order.input);
    assert_eq!(job["attempts"], 1, "{job}");
    assert_eq!(cell.seen("new").len(), 1);
    Verdict::Right
}

pub(super) fn away(cell: &Cell<'_>) -> Verdict {
    if cell.kind == Kind::Builtin {
        return Verdict::NotHere("a built-in agent is where the server is");
    }
    if matches!(cell.kind.like(), Kind::Pulled) || cell.kind == Kind::Joined {
        return comes_later(cell);
    }
    let order = cell.order_for(Purpose::Away, "echo");
    cell.fails(&order, cell.submit(&order), &fails(Failure::Unavailable, Repeat::Safe));
    Verdict::Right
}

/// ALL-6: work for an agent that has not asked for any yet waits, and says why.
fn comes_later(cell: &Cell<'_>) -> Verdict {
    let order = cell.order_for(Purpose::Away, "echo");
    let handle = cell.submit(&order);
    let path = format!("/api/v1/jobs/{}", handle.job_id());
    let job = fetch(cell.world.address, &path).json();
    let reason = job["stuck"]["reason"].as_str().unwrap_or_default();
    assert!(job["state"] == "queued" && reason.contains("is away"), "{job}");
    cell.come();
    let (job, _) = cell.succeeds(&order, handle, &order.input);
    assert_eq!(job["attempts"], 1, "{job}");
    Verdict::Right
}
