//! The round trip does not work by merely carrying the original along.
//!
//! Two conditions: nothing that a contract has a field for is carried, and changing a mapped field shows in the
//! document that comes back.

use std::collections::BTreeSet;

use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::map::{Part, Row, Says, table, table_of};
use crosspoint_contracts::translate::write;
use crosspoint_contracts::{Contract, Kind, Options};
use serde_json::{Value, json};

use crate::translation::{fresh, job, lawful, to, value};

/// What a document carries: in the document itself, or in its one open object.
fn carried(document: &Value) -> Value {
    // Generated documents also have this key in places where it has no meaning.
    let ours =
        |object: &Value| Some(object.get("x_crosspoint")?.clone()).filter(|carried| carried["filled"].is_object());
    let inside = || document.as_object()?.values().find_map(ours);
    ours(document).or_else(inside).unwrap_or(Value::Null)
}

/// Rows of a kind that are written and whose member is present.
fn rows(kind: Kind, document: &Value) -> Vec<Row> {
    let text = document.to_string();
    let tape = Tape::scan(text.as_bytes()).expect("documents are JSON");
    let mut rows = table_of(kind, tape.root().expect("documents are not empty"));
    rows.retain(|row| matches!(row.says, Says::Homes(_)) && document.pointer(&row.pointer).is_some());
    rows
}

fn homes(row: &Row) -> &[Home] {
    match &row.says {
        Says::Homes(homes) => homes,
        Says::Always(_) | Says::LooseHomes(_) | Says::Artifacts | Says::ArtifactPart(_) | Says::Own => &[],
    }
}

/// Checks that nothing is carried for which the document has a field, unless another value stands in for it there.
fn assert_nothing_needless(kind: Kind, text: &str) {
    let document = value(text);
    let carried = carried(&document);
    let filled = &carried["filled"][kind.contract().name()];
    for row in rows(kind, &document) {
        let stands_in = filled.get(&row.pointer).is_some();
        for home in homes(&row).iter().take(1) {
            let Some(value) = carried.get(home.name()) else { continue };
            // An empty context, or one that contains the key itself, cannot be shown where things are carried.
            let hidden = *home == Home::PromptContext && (*value == json!({}) || value.get("x_crosspoint").is_some());
            assert!(stands_in || hidden, "{} is at {} and carried too: {text}", home.name(), row.pointer);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_is_carried_that_has_a_field((kind, document) in crate::documents::document()) {
        let bytes = document.to_string().into_bytes();
        let job = job(kind, &bytes);
        for contract in Contract::ALL.into_iter().filter(|contract| *contract != kind.contract()) {
            let there = write(&job, contract, &fresh()).expect("requests and results go everywhere");
            assert_nothing_needless(there.kind, there.text());
        }
    }
}

/// Other values for a member. At least one of them fits wherever the member may stand.
fn changes(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => vec![
            json!(format!("{text}-changed")),
            json!("11111111-2222-4333-8444-555555555555"),
            json!("2031-03-03T03:03:03Z"),
            json!("retry"),
            json!("escalate"),
            json!("urgent"),
            json!("research"),
            json!("infra"),
            json!("2032-03-03T03:03:03Z"),
            json!("22222222-2222-4333-8444-555555555555"),
            json!("low"),
            json!("failed"),
            json!("timeout"),
            json!("bytes 0-0 of 0"),
        ],
        Value::Number(number) => {
            vec![json!((number.as_f64().unwrap_or(0.0).round() as i64).wrapping_add(1).max(0)), json!(5903), json!(3)]
        }
        Value::Bool(value) => vec![json!(!value)],
        Value::Array(items) => vec![json!(items.iter().cloned().chain([json!("changed")]).collect::<Vec<_>>())],
        Value::Object(members) => {
            let mut members = members.clone();
            members.insert("changed".to_owned(), json!("x"));
            vec![Value::Object(members)]
        }
        Value::Null => vec![json!("changed")],
    }
}

/// A valid document that differs in one place from another.
fn changed(kind: Kind, document: &Value, pointer: &str) -> Option<Value> {
    let old = document.pointer(pointer)?;
    changes(old).into_iter().filter(|new| new != old).find_map(|new| {
        let mut other = document.clone();
        *other.pointer_mut(pointer)? = new;
        let text = other.to_string();
        let reading = crosspoint_contracts::read(text.as_bytes(), &Options { kind: Some(kind), ..Options::default() });
        reading.report.is_valid().then_some(other)
    })
}

/// Members that cannot be changed alone, because their document would contradict itself.
const BOUND: &[(&str, &str)] = &[
    ("/status", "a status goes with what else is there"),
    ("/ok", "it says what the status says"),
    ("/success", "it says what the status says"),
];

/// Changes every mapped field of a document's translation in turn, and returns the places of the changes. Panics if a
/// change does not show.
fn changes_shown(kind: Kind, original: &Value, contract: Contract) -> Vec<(Kind, String)> {
    let bytes = original.to_string().into_bytes();
    let there = write(&job(kind, &bytes), contract, &fresh()).expect("requests and results go everywhere");
    let document = value(there.text());
    let ours = rows(kind, original);
    let mut shown = Vec::new();
    for row in rows(there.kind, &document) {
        let bound = BOUND.iter().any(|(pointer, _)| *pointer == row.pointer);
        // An object that only carries is not mapped.
        let object = document.pointer(&row.pointer).and_then(Value::as_object);
        let only_carries = object.is_some_and(|object| object.keys().eq(["x_crosspoint"]));
        // A made-up value stands for nothing. A value that could not be expressed exactly stands for what is carried.
        let carried_there = carried(&document);
        let filled = carried_there["filled"][contract.name()].get(&row.pointer).is_some();
        let made_up = filled && homes(&row).iter().all(|home| carried_there.get(home.name()).is_none());
        let our_row = ours.iter().find(|our| homes(our).iter().any(|home| homes(&row).contains(home)));
        let Some(our_row) = our_row.filter(|_| !bound && !only_carries && !made_up) else { continue };
        let other = changed(there.kind, &document, &row.pointer)
            .unwrap_or_else(|| panic!("nothing else fits at {} of {document}", row.pointer));
        let back = write(&owned_job(there.kind, &other), kind.contract(), &fresh()).expect("it still comes back");
        let returned = value(back.text());
        // A value that does not fit the field, such as a name that is no agent type, shows beside its stand-in.
        let stand_ins = &carried(&returned)["filled"][kind.contract().name()];
        let place = if stand_ins.get(&our_row.pointer).is_some() { "" } else { our_row.pointer.as_str() };
        // The word of one member may be that of two failures, which then differ in status: a timeout of the bridge
        // may have any `error_type`.
        let shows = returned.pointer(place) != original.pointer(place) || returned["status"] != original["status"];
        assert!(shows, "{} of {other} does not show at {} of {returned}", row.pointer, our_row.pointer);
        shown.push((there.kind, row.pointer));
    }
    shown
}

#[test]
fn changing_a_mapped_field_shows_in_what_comes_back() {
    let mut shown: BTreeSet<(Kind, Kind, String)> = BTreeSet::new();
    for case in lawful().into_iter().filter(|case| !case.stem().contains("loose")) {
        let original = value(&String::from_utf8(case.bytes.clone()).expect("golden documents are text"));
        for contract in Contract::ALL.into_iter().filter(|contract| *contract != case.kind().contract()) {
            let places = changes_shown(case.kind(), &original, contract).into_iter();
            shown.extend(places.map(|(kind, place)| (case.kind(), kind, place)));
        }
    }
    // Every two contracts share some fields, for requests and for results. A small contract may share none with one
    // other.
    let pairs: BTreeSet<(bool, Contract, Contract)> =
        shown.iter().map(|(ours, theirs, _)| (is_request(*ours), ours.contract(), theirs.contract())).collect();
    for (request, contract) in
        [true, false].into_iter().flat_map(|request| Contract::ALL.map(|contract| (request, contract)))
    {
        let out = pairs.iter().filter(|(sort, from, _)| *sort == request && *from == contract).count();
        let back = pairs.iter().filter(|(sort, _, to)| *sort == request && *to == contract).count();
        assert!(out.min(back) >= Contract::ALL.len() - 2, "{contract:?}: {pairs:?}");
    }
    assert!(shown.len() > 150, "only {} changes were seen", shown.len());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn changes_show_whatever_else_a_document_holds((kind, document) in crate::documents::document()) {
        for contract in Contract::ALL.into_iter().filter(|contract| *contract != kind.contract()) {
            changes_shown(kind, &document, contract);
        }
    }
}

fn owned_job(kind: Kind, document: &Value) -> Canonical<'static> {
    job(kind, document.to_string().as_bytes()).into_owned()
}

fn is_request(kind: Kind) -> bool {
    let parts: Vec<Part> =
        table(kind.contract()).into_iter().filter(|row| row.kind == kind).map(|row| row.part).collect();
    parts.contains(&Part::Request)
}

/// An artifact that is changed, added or removed on the way is changed, added or removed in what comes back.
#[test]
fn changed_artifacts_show_in_what_comes_back() {
    let response = json!({"id": "t", "status": "completed", "result": {}, "artifacts": [
        {"name": "a.md", "type": "text/x-own", "content": "one", "own": 1},
        {"name": "b.md", "type": "text/markdown", "content": "two"}]});
    let there = to(Contract::Workflow, response.to_string().as_bytes()).expect("results go everywhere");
    let mut output = value(there.text());
    output["artifacts"][0]["content"] = json!("changed");
    output["artifacts"][1] = json!({"path": "c.json", "operation": "create", "content": "new"});
    let back = to(Contract::Task, output.to_string().as_bytes()).expect("and come back");
    assert_eq!(
        value(back.text())["artifacts"],
        json!([{"name": "a.md", "type": "text/x-own", "content": "changed", "own": 1},
            {"name": "c.json", "type": "application/json", "content": "new"}])
    );
    let there = to(Contract::Run, response.to_string().as_bytes()).expect("results go everywhere");
    let mut answer = value(there.text());
    answer["artifacts"] = json!(["b.md", "new-id"]);
    let back = to(Contract::Task, answer.to_string().as_bytes()).expect("and come back");
    assert_eq!(
        value(back.text())["artifacts"],
        json!([{"name": "b.md", "type": "text/markdown", "content": "two"},
            {"name": "new-id", "type": "text/plain", "content": ""}])
    );
}

/// If a field that stood for something carried is removed, the carried value is removed with it.
#[test]
fn a_field_that_was_taken_away_stays_away() {
    let response = json!({"request_id": "r", "version": "1.0", "status": "success", "response": "x", "error_message": null,
        "error_type": null, "created_at": "2025-11-24T14:22:45+00:00", "duration_seconds": 1.0, "metadata": {}});
    let there = to(Contract::Task, response.to_string().as_bytes()).expect("results go everywhere");
    let mut task = value(there.text());
    task["metadata"].as_object_mut().expect("it is there").remove("duration_ms").expect("it stood there");
    let back = to(Contract::Bridge, task.to_string().as_bytes()).expect("and come back");
    assert_eq!(value(back.text())["duration_seconds"], json!(0.0));
}
