//! ALL-11: JSON that readers disagree on is judged once, when it comes, and every door reports the same of it. In the
//! output of a program, or in the text of a bridge response, it is just text.

use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_contracts::json::WRAPPING_LEVELS_MAX;
use serde_json::{Value, json};

use super::super::agents::Kind;
use super::super::cell::{Cell, Fails, Verdict, shortened};
use super::super::doors::{Door, Order, shallow};
use super::failures::clauses;

/// Deepest nesting that is allowed.
const LEVELS_MAX: usize = 127;

pub(super) fn a_name_twice(cell: &Cell<'_>) -> Verdict {
    unreadable(cell, r#"{"a":1,"a":2}"#)
}

pub(super) fn a_name_twice_within(cell: &Cell<'_>) -> Verdict {
    unreadable(cell, r#"{"b":[{"a":1,"\u0061":2}]}"#)
}

pub(super) fn levels_128(cell: &Cell<'_>) -> Verdict {
    too_deep(cell, LEVELS_MAX + 1)
}

pub(super) fn levels_400(cell: &Cell<'_>) -> Verdict {
    too_deep(cell, 400)
}

/// A document with as many levels as allowed is accepted, although the documents written around it have more.
pub(super) fn levels_127(cell: &Cell<'_>) -> Verdict {
    let wrapped = nested(levels_within(cell.kind, LEVELS_MAX));
    if cell.kind.is_function() {
        let outputs = serde_json::from_str(&shallow(&wrapped)).expect("it is JSON");
        return ends_with(cell, &raw(cell, &wrapped), &outputs);
    }
    if cell.kind.is_message() || cell.kind.is_workflow() {
        // What nests stands beside the text.
        let order = raw(cell, &wrapped);
        let text = shallow(&order.input.to_string());
        return ends_with(cell, &order, &as_text(cell, &text));
    }
    let (order, given) = match cell.kind.like() {
        Kind::Builtin => {
            let order = deep_input(cell, LEVELS_MAX);
            let given = shallow(&order.input.to_string());
            (order, given)
        }
        Kind::Exec
        | Kind::Joined
        | Kind::Run
        | Kind::Task
        | Kind::Bridge
        | Kind::Pushed
        | Kind::Pulled
        | Kind::Program
        | Kind::Service
        | Kind::Function(_) => (raw(cell, &wrapped), shallow(&wrapped)),
    };
    let outputs: Value = serde_json::from_str(&given).expect("it is JSON");
    let expected = if cell.kind == Kind::Bridge { as_text(cell, &given) } else { outputs };
    ends_with(cell, &order, &expected)
}

fn too_deep(cell: &Cell<'_>, levels: usize) -> Verdict {
    if cell.kind != Kind::Builtin {
        return unreadable(cell, &nested(levels_within(cell.kind, levels)));
    }
    if cell.door == Door::Bridge {
        return Verdict::NotHere("a prompt is a text, and nests nothing");
    }
    // A built-in agent returns its input, so the caller's document is judged.
    let view = cell.submit(&deep_input(cell, levels)).refused();
    let code = match cell.door {
        Door::Native | Door::Workflow => "invalid",
        Door::Sync | Door::Stream => "VALIDATION_ERROR",
        Door::Task | Door::Bridge => "INVALID_INPUT",
        Door::Message | Door::Callback => "5003",
    };
    assert_eq!((view.status, view.code.as_deref()), (400, Some(code)), "{}", shortened(&view));
    Verdict::Right
}

fn unreadable(cell: &Cell<'_>, given: &str) -> Verdict {
    let order = raw(cell, given);
    if cell.kind.is_function() {
        return judged_at_home(cell, &order);
    }
    match cell.kind.like() {
        Kind::Builtin => Verdict::NotHere("a built-in agent gives what it gets, which was judged at the door"),
        // A program ends its line with a line feed.
        Kind::Exec | Kind::Joined => ends_with(cell, &order, &as_text(cell, &shallow(&format!("{given}\n")))),
        Kind::Bridge => ends_with(cell, &order, &as_text(cell, &shallow(given))),
        Kind::Run | Kind::Task | Kind::Pushed | Kind::Pulled | Kind::Program | Kind::Service | Kind::Function(_) => {
            let fails = Fails { failure: Failure::BrokenContract, repeat: Repeat::Unknown, own: None, message: None };
            let (_, view) = cell.fails(&order, cell.submit(&order), &fails);
            let answer = view.details["answer"].as_str().unwrap_or_default();
            assert!(answer.contains(&shallow(given)), "the answer is kept: {}", shortened(&view));
            Verdict::Right
        }
    }
}

/// A function that returns what no reader would take has failed, and its answer says so in its contract.
fn judged_at_home(cell: &Cell<'_>, order: &Order) -> Verdict {
    let fails = Fails { failure: Failure::AgentFailed, repeat: Repeat::Never, own: None, message: None };
    let (job, _) = cell.fails(order, cell.submit(order), &fails);
    assert!(clauses(&job).is_empty(), "its document is in order: {job}");
    Verdict::Right
}

fn ends_with(cell: &Cell<'_>, order: &Order, outputs: &Value) -> Verdict {
    let (_, view) = cell.ended(order, cell.submit(order));
    assert_eq!((view.state.as_str(), view.status), ("completed", 200), "{}", shortened(&view));
    assert_eq!(view.outputs, *outputs, "{}", shortened(&view));
    Verdict::Right
}

/// What a door shows of an agent that returned a text. Requesters of a bridge look for JSON in it.
fn as_text(cell: &Cell<'_>, text: &str) -> Value {
    match (cell.door, cell.kind) {
        (Door::Bridge | Door::Message | Door::Callback | Door::Workflow, _) => {
            serde_json::from_str(text).expect("it is JSON to some")
        }
        (Door::Native, kind) if kind.gives_text() => json!(text),
        (Door::Native | Door::Sync | Door::Stream | Door::Task, _) => json!({"output": text}),
    }
}

/// An object of this many levels.
fn nested(levels: usize) -> String {
    format!("{{\"deep\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

/// Number of levels of the outputs, if the agent's whole document has `levels`.
fn levels_within(kind: Kind, levels: usize) -> usize {
    match kind {
        Kind::Builtin | Kind::Exec | Kind::Joined | Kind::Bridge => levels,
        Kind::Run | Kind::Task | Kind::Program | Kind::Service => levels - 1,
        // Within `x_custom_fields`.
        Kind::Pushed | Kind::Pulled => levels - 2,
        // Whatever the contract is, there is room for what is around the outputs.
        Kind::Function(_) => levels - WRAPPING_LEVELS_MAX,
    }
}

/// An order that makes the agent return this as its outputs.
fn raw(cell: &Cell<'_>, given: &str) -> Order {
    let mut order = cell.order("raw");
    order.input["raw"] = json!(given);
    order
}

/// An order whose document has this many levels.
fn deep_input(cell: &Cell<'_>, levels: usize) -> Order {
    let mut order = cell.order("echo");
    // The document and the input are around it, and in some contracts a payload or a task.
    let around = if cell.door.is_message() || cell.door == Door::Workflow { 3 } else { 2 };
    order.input["deep"] = (1..levels - around).fold(json!([]), |inner, _| json!([inner]));
    order
}
