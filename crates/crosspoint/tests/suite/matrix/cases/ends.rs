//! Ends that nobody gave: agents that die, fall silent or are not there, and callers who stop what they wanted.

use crosspoint_contracts::failure::{Failure, Repeat};

use super::super::agents::{Kind, Purpose};
use super::super::cell::{Cell, Fails, Verdict};
use super::failures::clauses;

fn fails(failure: Failure, repeat: Repeat) -> Fails {
    Fails { failure, repeat, own: None, message: None }
}

/// The agent is told, as far as its contract can.
pub(super) fn cancel(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("hold");
    let handle = cell.submit(&order);
    handle.sees_progress(cell.step());
    handle.cancel();
    cell.fails(&order, handle, &fails(Failure::Cancelled, Repeat::Never));
    if cell.kind != Kind::Builtin {
        cell.until_seen("told");
    }
    Verdict::Right
}

/// A question that nobody needs to answer any more.
pub(super) fn cancel_while_it_asks(cell: &Cell<'_>) -> Verdict {
    if cell.kind == Kind::Run {
        return Verdict::NotHere("a run agent has no way to ask");
    }
    let order = cell.order("ask");
    let handle = cell.submit(&order);
    handle.sees_question();
    handle.cancel();
    cell.fails(&order, handle, &fails(Failure::Cancelled, Repeat::Never));
    if matches!(cell.kind, Kind::Exec | Kind::Task) {
        cell.until_seen("told");
    }
    Verdict::Right
}

/// RUN-7 and its like: what has begun and is gone may have been done.
pub(super) fn death(cell: &Cell<'_>) -> Verdict {
    let (purpose, expected) = match cell.kind {
        Kind::Builtin => return Verdict::NotHere("a built-in agent dies with the server"),
        Kind::Exec => (Purpose::Plain, fails(Failure::AgentFailed, Repeat::Never)),
        // The connection is lost before the terminal event.
        Kind::Run => (Purpose::Plain, fails(Failure::Unavailable, Repeat::Unknown)),
        // Polls are not answered any more.
        Kind::Task => (Purpose::Quiet, fails(Failure::Timeout, Repeat::Unknown)),
    };
    let order = cell.order_for(purpose, "die");
    let handle = cell.submit(&order);
    handle.sees_progress(cell.step());
    cell.release();
    let (job, view) = cell.fails(&order, handle, &expected);
    if cell.kind == Kind::Run {
        assert_eq!(clauses(&job), ["RUN-7"], "it is on record: {job}");
    }
    if cell.kind == Kind::Exec {
        assert_eq!(view.details["signal"], 9, "{}", view.document);
    }
    Verdict::Right
}

pub(super) fn silence(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("silent");
    cell.fails(&order, cell.submit(&order), &fails(Failure::Timeout, Repeat::Unknown));
    if cell.kind != Kind::Builtin {
        assert_eq!(cell.seen("new").len(), 1, "what may have begun is not begun again");
    }
    Verdict::Right
}

/// ALL-3: work that surely never began is tried again, by the same id and in a span of its own.
pub(super) fn busy(cell: &Cell<'_>) -> Verdict {
    match cell.kind {
        Kind::Builtin => return Verdict::NotHere("a built-in agent is never busy"),
        Kind::Exec => return Verdict::NotHere("a program that starts has begun"),
        Kind::Run | Kind::Task => {}
    }
    let order = cell.order("again");
    let (job, _) = cell.succeeds(&order, cell.submit(&order), &order.input);
    assert_eq!(job["attempts"], 2, "{job}");
    let seen = cell.seen("new");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].id, seen[1].id);
    assert_ne!(seen[0].trace, seen[1].trace);
    Verdict::Right
}

pub(super) fn nobody(cell: &Cell<'_>) -> Verdict {
    if cell.kind == Kind::Builtin {
        return Verdict::NotHere("a built-in agent is where the server is");
    }
    let order = cell.order_for(Purpose::Away, "echo");
    cell.fails(&order, cell.submit(&order), &fails(Failure::Unavailable, Repeat::Safe));
    Verdict::Right
}
