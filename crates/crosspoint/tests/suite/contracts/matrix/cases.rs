//! The cases, in the order of the table. Slow cases are the last.

#[path = "cases/ends.rs"]
mod ends;
#[path = "cases/failures.rs"]
mod failures;
#[path = "cases/kept.rs"]
mod kept;
#[path = "cases/unreadable.rs"]
mod unreadable;

use serde_json::json;

use super::agents::{self, Kind};
use super::cell::{Cell, Verdict};
use super::doors::Door;

pub(super) type Case = (&'static str, fn(&Cell<'_>) -> Verdict);

pub(super) static CASES: [Case; 33] = [
    ("success", success),
    ("progress", progress),
    ("2 MB of output", big),
    ("artifacts", artifacts),
    ("input required", input_required),
    ("repeat", kept::repeat),
    ("conflict", kept::conflict),
    ("unknown fields", kept::unknown_fields),
    ("non-ASCII ids", kept::ids),
    ("trace", kept::trace),
    ("cancel", ends::cancel),
    ("cancel while it asks", ends::cancel_while_it_asks),
    ("agent_failed", failures::agent_failed),
    ("invalid", failures::invalid),
    ("unauthenticated", failures::unauthenticated),
    ("resource_limit", failures::resource_limit),
    ("unsupported", failures::unsupported),
    ("cancelled", failures::cancelled),
    ("delegation", failures::delegation),
    ("conflict, said by it", failures::conflict),
    ("broken_contract", failures::broken_contract),
    ("a name twice", unreadable::a_name_twice),
    ("a name twice within", unreadable::a_name_twice_within),
    ("127 levels", unreadable::levels_127),
    ("128 levels", unreadable::levels_128),
    ("400 levels", unreadable::levels_400),
    ("internal", failures::internal),
    ("timeout, said by it", failures::timeout),
    ("unavailable, said by it", failures::unavailable),
    ("death on the way", ends::death),
    ("silence", ends::silence),
    ("busy at first", ends::busy),
    ("agent away", ends::away),
];

fn success(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("echo");
    cell.succeeds(&order, cell.submit(&order), &order.input);
    Verdict::Right
}

/// The caller sees the progress while the job is under way, in the way of its own contract.
fn progress(cell: &Cell<'_>) -> Verdict {
    if cell.door == Door::Sync {
        return Verdict::NotHere("a sync run is told of its end alone");
    }
    if cell.door == Door::Bridge {
        return Verdict::NotHere("files tell of the end alone");
    }
    if cell.door == Door::Workflow {
        return Verdict::NotHere("an envelope is answered at the end alone");
    }
    if cell.kind == Kind::Bridge {
        return Verdict::NotHere("an agent of the bridge contract tells nothing before the end");
    }
    if cell.kind.is_workflow() {
        return Verdict::NotHere("an agent of the workflow contract tells nothing before the end");
    }
    let order = cell.order("progress");
    let handle = cell.submit(&order);
    handle.sees_progress(cell.step());
    cell.release();
    cell.succeeds(&order, handle, &order.input);
    Verdict::Right
}

fn big(cell: &Cell<'_>) -> Verdict {
    if cell.door == Door::Bridge && cell.kind == Kind::Builtin {
        return Verdict::NotHere("a built-in agent gives what it gets, and a request is at most 1 MiB long");
    }
    let order = cell.order("big");
    let outputs = if cell.kind == Kind::Builtin { order.input.clone() } else { json!({"blob": agents::blob()}) };
    cell.succeeds(&order, cell.submit(&order), &outputs);
    Verdict::Right
}

/// ALL-10: every caller gets the name. The content is in its place if the contract has one, else carried.
fn artifacts(cell: &Cell<'_>) -> Verdict {
    if cell.kind == Kind::Builtin {
        return Verdict::NotHere("no built-in agent gives any");
    }
    let order = cell.order("artifacts");
    let (_, view) = cell.succeeds(&order, cell.submit(&order), &order.input);
    assert_eq!(view.artifacts, ["report.md"], "{}", view.document);
    let content = match cell.door {
        Door::Native => &view.document["outcome"]["artifacts"][0],
        Door::Task | Door::Workflow => &view.document["artifacts"][0],
        Door::Sync | Door::Stream | Door::Bridge | Door::Message | Door::Callback => {
            &view.carried(cell.door)["artifacts"][0]
        }
    };
    // A run agent returns names only.
    if cell.kind != Kind::Run {
        assert_eq!(content["content"], "# Report", "{}", view.document);
    }
    Verdict::Right
}

/// ALL-5: the question reaches every caller that can be asked, and the answer reaches the agent as it was given.
fn input_required(cell: &Cell<'_>) -> Verdict {
    if let Some(reason) = ends::cannot_ask(cell.kind) {
        return Verdict::NotHere(reason);
    }
    let order = cell.order("ask");
    let handle = cell.submit(&order);
    let question = handle.sees_question();
    assert_eq!(question["prompt"], "Which pan?", "{question}");
    if cell.kind != Kind::Builtin {
        assert_eq!(question["schema"], json!({"type": "string"}), "{question}");
    }
    let answer = json!({"pan": "wok", "ä": [1, null]});
    handle.answer(&answer);
    cell.succeeds(&order, handle, &json!({"answer": answer}));
    if cell.kind == Kind::Task {
        let given: Vec<_> = cell.seen("input").into_iter().map(|seen| seen.document).collect();
        assert_eq!(given, [json!({"input": answer})]);
    }
    if matches!(cell.kind, Kind::Pushed | Kind::Pulled) {
        let given: Vec<_> = cell.seen("input").into_iter().map(|seen| seen.document).collect();
        let [again] = given.as_slice() else { panic!("it is sent once: {given:?}") };
        assert_eq!(again["x_custom_fields"]["x_crosspoint"]["answer"], answer, "{again}");
        assert_eq!(cell.seen("new").len(), 1, "it is the same work");
    }
    Verdict::Right
}
