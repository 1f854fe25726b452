//! What must pass through unchanged: repeated requests, unknown members, ids, traces.

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::agents::{Kind, own_members};
use super::super::cell::{Cell, Verdict};
use super::super::doors::{Door, Order, fetch};
use super::super::ledger::Seen;
use super::super::view::View;
use crate::support::bridge_caller::new_id;

/// ALL-1: a caller that repeats a request gets the same job, while it is under way and after its end. The agent gets it
/// once.
pub(super) fn repeat(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("progress");
    let first = cell.submit(&order);
    cell.under_way(&first);
    let joined = cell.submit(&order);
    assert_eq!(first.job_id(), joined.job_id());
    cell.release();
    let (job, view) = cell.succeeds(&order, first, &order.input);
    let (_, again) = cell.succeeds(&order, joined, &order.input);
    assert_eq!(view.document, again.document, "who joined gets the same");
    let (_, late) = cell.succeeds(&order, cell.submit(&order), &order.input);
    assert_eq!(view.document, late.document, "who comes late gets the same");
    assert_eq!(job["attempts"], 1, "{job}");
    if cell.kind != Kind::Builtin {
        assert_eq!(cell.seen("new").len(), 1, "the agent had it once");
    }
    Verdict::Right
}

/// ALL-1: the same key with another input is refused in the shape of the door, and the clause is named.
pub(super) fn conflict(cell: &Cell<'_>) -> Verdict {
    let order = cell.order("echo");
    cell.succeeds(&order, cell.submit(&order), &order.input);
    let mut other = order.clone();
    other.input["more"] = json!("other");
    let view = cell.submit(&other).refused();
    let code = match cell.door {
        Door::Native | Door::Workflow => "conflict",
        Door::Sync | Door::Stream => "CONFLICT",
        Door::Task => "INVALID_FIELD_VALUE",
        Door::Bridge => "request_conflict",
        Door::Message | Door::Callback => "5903",
    };
    // A file has no status.
    let status = if cell.door == Door::Bridge { 200 } else { 409 };
    assert_eq!((view.status, view.code.as_deref(), view.repeat.as_deref()), (status, Some(code), Some("never")));
    assert!(view.details["clause"].is_string(), "{}", view.document);
    if !matches!(cell.door, Door::Native | Door::Workflow) {
        assert_eq!(json!(view.id).to_string(), order.id);
    }
    if cell.kind != Kind::Builtin {
        assert_eq!(cell.seen("new").len(), 1, "the agent knows nothing of it");
    }
    Verdict::Right
}

/// Unknown members are kept with the document and go to the agent. Unknown members of the agent's answer come back: in
/// their place if the contract is the same, else carried.
pub(super) fn unknown_fields(cell: &Cell<'_>) -> Verdict {
    let speaks = !matches!(cell.kind.like(), Kind::Builtin | Kind::Exec);
    let mut order = cell.order(if speaks { "own" } else { "echo" });
    order.members = match cell.door {
        Door::Native => vec![("tenant", own_members())],
        Door::Sync | Door::Stream => vec![("tenant", own_members()), ("budgets", json!({"max_tokens": 5, "ä/~": [1]}))],
        Door::Task => vec![("tenant", own_members()), ("context", json!({"priority": "high", "ä/~": [1]}))],
        Door::Bridge => vec![("tenant", own_members()), ("model", json!("m-ä"))],
        Door::Message | Door::Callback => vec![("tenant", own_members()), ("x_custom_fields", json!({"ä/~": [1]}))],
        Door::Workflow => vec![("tenant", own_members()), ("prior_context", json!(["Spec complete", "ä"]))],
    };
    let (job, view) = cell.succeeds(&order, cell.submit(&order), &order.input);
    let kept = fetch(cell.world.address, &format!("/api/v1/jobs/{}/document", job["id"].as_str().expect("an id")));
    assert_eq!(kept.text(), cell.door.document(&order), "the document is kept as it came");
    if speaks {
        reached_the_agent(cell, &order, &cell.until_seen("new"));
    }
    // The answers of a function have the members of its contract.
    if speaks && !cell.kind.is_function() {
        came_back(cell, &view);
    }
    Verdict::Right
}

fn reached_the_agent(cell: &Cell<'_>, order: &Order, seen: &Seen) {
    let document = &seen.document;
    let carried = match cell.kind.like() {
        Kind::Run | Kind::Program | Kind::Service => &document["x_crosspoint"],
        Kind::Pushed | Kind::Pulled => &document["x_custom_fields"]["x_crosspoint"],
        Kind::Builtin | Kind::Exec | Kind::Joined | Kind::Task | Kind::Bridge | Kind::Function(_) => {
            &document["context"]["x_crosspoint"]
        }
    };
    match (cell.door, cell.kind.like()) {
        // Members that the native API does not know have no meaning.
        (Door::Native, _) => {}
        (Door::Sync | Door::Stream, Kind::Run)
        | (Door::Task, Kind::Task)
        | (Door::Message | Door::Callback, Kind::Pushed | Kind::Pulled) => {
            assert_eq!(document["tenant"], order.members[0].1, "{document}");
            let (name, block) = &order.members[1];
            for (member, value) in block.as_object().expect("an object") {
                assert_eq!(document[name][member], *value, "{name}.{member}: {document}");
            }
        }
        (Door::Sync | Door::Stream, _) => {
            let expected = json!({"/tenant": own_members(), "/budgets/max_tokens": 5, "/budgets/ä~1~0": [1]});
            assert_eq!(carried["fields"]["run"], expected, "{document}");
        }
        (Door::Task, _) => {
            let expected = json!({"/tenant": own_members(), "/context/ä~1~0": [1]});
            assert_eq!(carried["fields"]["task"], expected, "{document}");
            assert_eq!(carried["priority"], "high", "{document}");
        }
        (Door::Bridge, Kind::Bridge) | (Door::Workflow, Kind::Program | Kind::Service) => {
            order.members.iter().for_each(|(name, value)| assert_eq!(document[name], *value, "{name}: {document}"));
        }
        (Door::Bridge, _) => {
            assert_eq!(carried["fields"]["bridge"], json!({"/tenant": own_members()}), "{document}");
            assert_eq!(carried["model"], "m-ä", "{document}");
        }
        (Door::Workflow, _) => {
            assert_eq!(carried["fields"]["workflow"], json!({"/tenant": own_members()}), "{document}");
            assert_eq!(carried["notes"], order.members[1].1, "{document}");
        }
        (Door::Message | Door::Callback, _) => {
            let expected = json!({"/tenant": own_members(), "/x_custom_fields/ä~1~0": [1]});
            for (place, value) in expected.as_object().expect("an object") {
                assert_eq!(carried["fields"]["message"][place], *value, "{document}");
            }
        }
    }
}

fn came_back(cell: &Cell<'_>, view: &View) {
    let document = &view.document;
    let of_run = json!({
        "own": own_members(), "usage": {"tokens": 812}, "provenance": {"model": "m-1"}, "warnings": ["a little salty"],
        "grounding": {"chunks": [], "citations": ["Smith 2020"]},
    });
    let said = match (cell.door, cell.kind) {
        (Door::Native, _) => view.carried(Door::Native),
        (Door::Sync | Door::Stream, Kind::Run) | (Door::Task, Kind::Task) | (Door::Bridge, Kind::Bridge) => document,
        (Door::Message | Door::Callback, Kind::Pushed | Kind::Pulled) => document,
        (Door::Workflow, Kind::Program | Kind::Service) => document,
        (_, Kind::Program | Kind::Service) => {
            let carried = view.carried(cell.door);
            assert_eq!(carried["fields"]["workflow"], json!({"/own": own_members()}), "{document}");
            assert_eq!(carried["notes"], json!(["a little salty"]), "{document}");
            return;
        }
        (_, Kind::Pushed | Kind::Pulled) => {
            let fields = &view.carried(cell.door)["fields"]["message"];
            assert_eq!(
                (&fields["/own"], &fields["/x_custom_fields/cost"]),
                (&own_members(), &json!(812)),
                "{document}"
            );
            return;
        }
        (_, Kind::Bridge) => {
            let fields = &view.carried(cell.door)["fields"]["bridge"];
            assert_eq!(
                (&fields["/metadata/own"], &fields["/metadata/cost"]),
                (&own_members(), &json!(812)),
                "{document}"
            );
            return;
        }
        (_, Kind::Run) => {
            let fields = &view.carried(cell.door)["fields"]["run"];
            let expected = [
                ("/own", &of_run["own"]),
                ("/usage/tokens", &json!(812)),
                ("/provenance", &of_run["provenance"]),
                ("/warnings", &of_run["warnings"]),
                ("/grounding", &of_run["grounding"]),
            ];
            return expected.iter().for_each(|(place, value)| assert_eq!(fields[*place], **value, "{document}"));
        }
        (_, _) => {
            let fields = &view.carried(cell.door)["fields"]["task"];
            assert_eq!((&fields["/own"], &fields["/metadata/cost"]), (&own_members(), &json!(812)), "{document}");
            return;
        }
    };
    if cell.kind == Kind::Run {
        let members = of_run.as_object().expect("an object");
        members.iter().for_each(|(name, value)| assert_eq!(said[name], *value, "{name}: {document}"));
    } else if cell.kind == Kind::Bridge {
        let metadata = &said["metadata"];
        assert_eq!((&metadata["own"], &metadata["cost"]), (&own_members(), &json!(812)), "{document}");
    } else if cell.kind.is_workflow() {
        assert_eq!((&said["own"], &said["notes"]), (&own_members(), &json!(["a little salty"])), "{document}");
    } else if cell.kind.is_message() {
        assert_eq!((&said["own"], &said["x_custom_fields"]["cost"]), (&own_members(), &json!(812)), "{document}");
    } else {
        assert_eq!((&said["own"], &said["metadata"]["cost"]), (&own_members(), &json!(812)), "{document}");
    }
}

/// RUN-9, ALL-2: for any id in any spelling, the caller gets its own back.
pub(super) fn ids(cell: &Cell<'_>) -> Verdict {
    if cell.door == Door::Workflow {
        return Verdict::NotHere("an envelope has no id");
    }
    let mut order = cell.order("echo");
    order.id = match cell.door {
        // MSG-1.3: an id is a UUID there, which may be spelled in several ways.
        Door::Message | Door::Callback => json!(new_id().to_uppercase()).to_string().replacen('-', "\\u002d", 1),
        Door::Native | Door::Sync | Door::Stream | Door::Task | Door::Bridge | Door::Workflow => {
            format!(r#""\u0141ód\u017a/\ud83d\ude00 ä?%2F#\u00e9e\u0301\t\"q\\ {}""#, cell.name())
        }
    };
    let (job, _) = cell.succeeds(&order, cell.submit(&order), &order.input);
    let caller: Value = serde_json::from_str(&order.id).expect("JSON");
    assert_eq!(job["request_id"], caller);
    Verdict::Right
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// TASK-8: the trace goes on through the server, a span deeper.
pub(super) fn trace(cell: &Cell<'_>) -> Verdict {
    if cell.kind == Kind::Builtin {
        return Verdict::NotHere("a built-in agent is no hop");
    }
    if cell.door == Door::Bridge || (cell.kind == Kind::Bridge && !(cell.door == Door::Task || cell.door.is_message()))
    {
        return Verdict::NotHere("a file has no header for it");
    }
    if cell.kind == Kind::Bridge {
        by_the_block(cell);
        return Verdict::Right;
    }
    let mut order = cell.order("echo");
    order.headers = vec![("traceparent", format!("00-{TRACE}-{SPAN}-01"))];
    cell.succeeds(&order, cell.submit(&order), &order.input);
    goes_on(cell, &cell.until_seen("new"));
    if cell.door == Door::Task || cell.door.is_message() {
        goes_on(cell, &by_the_block(cell));
    }
    Verdict::Right
}

/// The trace block of a task, and the trace of an envelope, have the same rank as the header.
fn by_the_block(cell: &Cell<'_>) -> Seen {
    let mut order = cell.order("echo");
    let name = format!("{}-block", cell.name());
    order.input["cell"] = json!(name);
    if cell.door.is_message() {
        order.id = json!(new_id()).to_string();
        order.members = vec![("trace_id", json!(hyphenated(TRACE)))];
    } else {
        order.id = json!(name).to_string();
        order.members = vec![("observability", json!({"traceId": TRACE, "spanId": SPAN, "baggage": {"k": "v"}}))];
    }
    cell.succeeds(&order, cell.submit(&order), &order.input);
    let seen = cell.seen_as(&name, "new").pop().expect("the agent has seen it");
    if cell.door.is_message() {
        return seen;
    }
    let baggage = match cell.kind.like() {
        Kind::Task => &seen.document["observability"]["baggage"],
        Kind::Run | Kind::Program | Kind::Service => &seen.document["x_crosspoint"]["baggage"],
        Kind::Bridge => {
            let carried = &seen.document["context"]["x_crosspoint"];
            assert_eq!(carried["trace"], TRACE, "the same trace");
            assert!(carried["span"].as_str().is_some_and(|span| span != SPAN), "a span of its own: {carried}");
            &carried["baggage"]
        }
        Kind::Pushed | Kind::Pulled => &seen.document["x_custom_fields"]["x_crosspoint"]["baggage"],
        Kind::Builtin | Kind::Exec | Kind::Joined | Kind::Function(_) => return seen,
    };
    assert_eq!(*baggage, json!({"k": "v"}), "{}", seen.document);
    seen
}

fn hyphenated(trace: &str) -> String {
    Uuid::parse_str(trace).expect("it is as long as a UUID").to_string()
}

fn goes_on(cell: &Cell<'_>, seen: &Seen) {
    if cell.kind.is_message() {
        assert_eq!(seen.document["trace_id"], hyphenated(TRACE), "the same trace");
    }
    if cell.kind.like() == Kind::Pulled {
        // The answer to a poll has no header for it.
        return;
    }
    let parts: Vec<&str> = seen.trace.split('-').collect();
    let &["00", trace, span, "01"] = parts.as_slice() else { panic!("{:?} is no traceparent", seen.trace) };
    assert_eq!(trace, TRACE, "the same trace");
    assert!(span != SPAN && span.len() == 16, "a span of its own: {span}");
    if cell.kind.like() == Kind::Task {
        let block = &seen.document["observability"];
        assert_eq!((&block["traceId"], &block["spanId"]), (&json!(trace), &json!(span)), "the block says the same");
    }
}
