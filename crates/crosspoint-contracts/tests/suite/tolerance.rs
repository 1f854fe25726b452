//! ALL-11: what may be wrong with a document, and what that costs.
//!
//! Two sets are told apart by one table, `Exchange::needs`: the members that an outcome can be lost by, and all others.

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::exchange::{Exchange, Is, Lack, Needs};
use crosspoint_contracts::job::{Event, Home, State};
use crosspoint_contracts::translate::{read_response, write};
use crosspoint_contracts::{Contract, Kind, Options, read, read_jobs, schema};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::changes::{self, changed};
use crate::corpus::{self, Case};
use crate::translation::{fresh, value};

/// The golden responses of agents, on work that has ended and on work that goes on.
fn responses() -> Vec<(Case, Value)> {
    let kinds = [
        Kind::BridgeResponse,
        Kind::WorkflowOutput,
        Kind::WorkStatus,
        Kind::WorkResult,
        Kind::MessageError,
        Kind::TaskResponse,
        Kind::RunResponse,
    ];
    // A heartbeat is about no work.
    let is_answer = |case: &Case| kinds.contains(&case.kind()) && !case.stem().contains("heartbeat");
    let golden = corpus::golden().into_iter().filter(is_answer);
    golden.map(|case| (serde_json::from_slice(&case.bytes).expect("it is JSON"), case)).map(|(a, b)| (b, a)).collect()
}

fn exchange(case: &Case) -> &'static Exchange {
    case.kind().contract().exchange()
}

fn pointer(path: &str) -> String {
    format!("/{path}")
}

/// Whether a place is one that an outcome needs, is inside it, or has it inside.
fn is_needed(needs: &Needs, place: &str) -> bool {
    let marks = needs.marks.iter().map(|mark| mark.path);
    let all = marks.chain(needs.outputs.iter().copied()).chain(needs.ids.iter().copied()).map(pointer);
    let inside = |one: &str, other: &str| one == other || one.starts_with(&format!("{other}/"));
    all.into_iter().any(|needed| inside(place, &needed) || inside(&needed, place))
}

/// What an answer says that an outcome is made of.
fn outcome(kind: Kind, document: &Value) -> Result<(Option<State>, Vec<Option<String>>), Lack> {
    let text = document.to_string();
    let job = read_response(kind, text.as_bytes()).job?;
    let held = [Home::Outputs, Home::Text, Home::Question].map(|home| job.get(home).map(|held| held.get().to_owned()));
    assert!(!matches!(job.event(), Event::Requested), "{kind} is no request: {text}");
    Ok((job.state(), held.to_vec()))
}

/// What the outcome must be made of, whatever else is changed. A summary is the message of a failure, so it is no
/// output of one.
fn same(kind: Kind, original: &Value, changed: &Value, place: &str) {
    let (wanted, found) = (outcome(kind, original), outcome(kind, changed));
    let is_question = place.starts_with("/inputRequest") || place.contains("x_crosspoint");
    match (wanted, found) {
        (Ok((state, _)), Ok((found, _))) if is_question => assert_eq!(state, found, "{kind} {place}: {changed}"),
        (wanted, found) => assert_eq!(wanted, found, "{kind} {place}: {changed}"),
    }
}

#[test]
fn nothing_but_id_mark_and_output_costs_an_outcome() {
    let mut compared = 0;
    for (case, document) in responses() {
        let needs = &exchange(&case).needs;
        for (place, changed) in changes::all(&document).into_iter().filter(|(place, _)| !is_needed(needs, place)) {
            same(case.kind(), &document, &changed, &place);
            compared += 1;
        }
    }
    assert!(compared > 5_000, "only {compared} answers were compared");
}

/// On the connection that carried the request, an answer without an id is an answer to it.
#[test]
fn a_missing_id_costs_nothing() {
    for (case, document) in responses() {
        for id in exchange(&case).needs.ids {
            for replacement in [None, Some(json!(null)), Some(json!(5)), Some(json!({}))] {
                let Some(changed) = changed(&document, &pointer(id), replacement.as_ref()) else { continue };
                same(case.kind(), &document, &changed, id);
            }
        }
    }
}

#[test]
fn a_missing_mark_or_output_costs_the_outcome() {
    for (case, document) in responses() {
        let (kind, needs) = (case.kind(), &exchange(&case).needs);
        let mut unmarked = document.clone();
        for mark in needs.marks {
            unmarked = changed(&unmarked, &pointer(mark.path), None).unwrap_or(unmarked);
        }
        assert_eq!(outcome(kind, &unmarked), Err(Lack::Mark), "{}", case.path.display());
        let completed = outcome(kind, &document).expect("it is golden").0 == Some(State::Completed);
        for replacement in [None, Some(json!(null)), Some(json!(5)), Some(json!([]))] {
            let mut empty = document.clone();
            for output in needs.outputs {
                empty = changed(&empty, &pointer(output), replacement.as_ref()).unwrap_or(empty);
            }
            let lacks = outcome(kind, &empty).err();
            assert_eq!(lacks, completed.then_some(Lack::Output), "{}: {empty}", case.path.display());
        }
    }
}

/// The table covers what agents answer: each contract has a mark for success and one for failure.
#[test]
fn every_contract_can_say_how_it_went() {
    for contract in Contract::ALL {
        let needs = &contract.exchange().needs;
        let means = |state: State| needs.marks.iter().any(|mark| mark.means == state);
        assert!(means(State::Completed) && means(State::Failed) && !needs.outputs.is_empty(), "{}", contract.name());
        assert!(needs.marks.iter().all(|mark| !matches!(mark.is, Is::Word(""))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, failure_persistence: None, ..Default::default() })]

    /// Several changes at once, at random.
    #[test]
    fn any_number_of_changes_elsewhere_costs_nothing(
        which in any::<proptest::sample::Index>(),
        all in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>()), 1..6),
    ) {
        let mut cases = responses();
        let (case, original) = cases.swap_remove(which.index(cases.len()));
        let needs = &exchange(&case).needs;
        let mut document = original.clone();
        let mut said_places = String::new();
        for (place, replacement) in all {
            let places: Vec<String> =
                changes::places(&document).into_iter().filter(|place| !is_needed(needs, place)).collect();
            if places.is_empty() {
                continue;
            }
            let place = place.get(&places);
            said_places.push_str(place);
            let replacements = changes::replacements();
            document = changed(&document, place, replacement.get(&replacements).as_ref()).unwrap_or(document);
        }
        let is_question = said_places.contains("/inputRequest") || said_places.contains("x_crosspoint");
        same(case.kind(), &original, &document, if is_question { "/inputRequest" } else { "" });
    }
}

/// What a caller gives as input or as a limit, which is never guessed.
const INPUTS: &[(Kind, &[&str])] = &[
    (Kind::RunRequest, &["/inputs", "/budgets"]),
    (Kind::TaskRequest, &["/payload", "/retryPolicy", "/context/priority"]),
    (Kind::BridgeRequest, &["/context", "/timeout_seconds"]),
    (Kind::WorkRequest, &["/payload/parameters", "/payload/hints"]),
    (Kind::WorkflowInput, &["/task/params"]),
];

fn inputs_of(kind: Kind) -> &'static [&'static str] {
    INPUTS.iter().find(|(of, _)| *of == kind).map_or(&[], |(_, inputs)| *inputs)
}

/// The places of members that a document may leave out, according to its schema. A part of an open object is anybody's.
fn optional_places(kind: Kind, document: &Value) -> Vec<String> {
    let schema = schema::of(kind);
    let mut found = Vec::new();
    optional_within(&schema, &schema, document, "", &mut found);
    found
}

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
        Some(target) => root.pointer(target).expect("a reference leads somewhere"),
        None => schema,
    }
}

fn optional_within(root: &Value, schema: &Value, document: &Value, above: &str, found: &mut Vec<String>) {
    let schema = resolved(root, schema);
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    for (name, value) in document.as_object().into_iter().flatten() {
        let Some(inner) = schema["properties"].get(name) else { continue };
        let place = format!("{above}/{name}");
        if !required(name) {
            found.push(place.clone());
        }
        optional_within(root, inner, value, &place, found);
    }
}

/// Members that the schema lets a document leave out, and that another member demands: the result of a completed task,
/// the output of a success in v1.0.
const DEMANDED: &[&str] = &[
    "/result",
    "/error",
    "/outputs",
    "/data",
    "/status",
    "/ok",
    "/success",
    "/payload/exit_code",
    "/payload/output",
    "/payload/resources_used",
    "/payload/error_context",
    "/payload/context",
];

/// A wrong type in an optional member is a warning, and the document comes back unchanged from every contract.
#[test]
fn an_optional_member_of_any_type_is_at_most_a_warning() {
    let mut compared = 0;
    for case in corpus::golden().into_iter().filter(|case| case.kind() != Kind::RunStream) {
        let kind = case.kind();
        let document: Value = serde_json::from_slice(&case.bytes).expect("golden documents are JSON");
        let inputs = inputs_of(kind);
        let is_input = |place: &str| inputs.iter().any(|input| place.starts_with(input));
        for place in optional_places(kind, &document).iter().filter(|place| !DEMANDED.contains(&place.as_str())) {
            for replacement in [json!(null), json!(true), json!({"a": 1}), json!(["x"]), json!(1.5)] {
                let right = std::mem::discriminant(document.pointer(place).unwrap_or(&Value::Null));
                let is_right = std::mem::discriminant(&replacement) == right;
                if is_right || (is_input(place) && !replacement.is_null()) {
                    continue;
                }
                let Some(changed) = changed(&document, place, Some(&replacement)) else { continue };
                let text = changed.to_string();
                let report = read(text.as_bytes(), &Options { kind: Some(kind), ..Options::default() }).report;
                // A number of the right type may still be out of its bounds.
                let errors: Vec<&str> = (report.findings.iter())
                    .filter(|finding| finding.level == Level::Error && !replacement.is_number())
                    .map(|finding| finding.clause.id)
                    .collect();
                assert_eq!(errors, Vec::<&str>::new(), "{kind} {place}: {text}");
                if report.is_valid() && !case.stem().contains("loose") && kind != Kind::WorkStatus {
                    comes_back(kind, &changed);
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "only {compared} documents were compared");
}

/// Members kept by ALL-11 are unchanged when a document has been to any other contract and is back.
fn comes_back(kind: Kind, document: &Value) {
    let text = document.to_string();
    let (_, jobs) = read_jobs(text.as_bytes(), &Options { kind: Some(kind), ..Options::default() });
    let [job] = &jobs[..] else { return };
    // The law is about requests and terminal results.
    if job.state().is_some_and(|state| !state.is_ended()) {
        return;
    }
    for contract in Contract::ALL {
        let Ok(there) = write(job, contract, &fresh()) else { continue };
        let options = Options { kind: Some(there.kind), ..Options::default() };
        let (_, jobs) = read_jobs(there.text().as_bytes(), &options);
        let [job] = &jobs[..] else { panic!("{kind} by way of {}: {}", contract.name(), there.text()) };
        let back = write(job, kind.contract(), &fresh()).expect("it comes back");
        assert_eq!(value(back.text()), *document, "{kind} by way of {}: {}", contract.name(), there.text());
    }
}

#[test]
fn input_and_limits_of_the_wrong_type_are_refused() {
    for (kind, inputs) in INPUTS {
        let full = corpus::golden().into_iter().find(|case| case.kind() == *kind && case.stem().ends_with("-full"));
        let full: Value = serde_json::from_slice(&full.expect("there is a full one").bytes).expect("it is JSON");
        for input in *inputs {
            let wrong = if full.pointer(input).expect("it is full").is_number() { json!("60") } else { json!(60) };
            for wrong in [wrong, json!("x"), json!([])] {
                let text = changed(&full, input, Some(&wrong)).expect("the place is there").to_string();
                let report = read(text.as_bytes(), &Options { kind: Some(*kind), ..Options::default() }).report;
                assert!(!report.is_valid(), "{kind} {input}: {text}");
            }
        }
    }
    let asap = br#"{"id": "1", "type": "t", "payload": {}, "context": {"priority": "asap"}}"#;
    assert!(!read(asap, &Options::default()).report.is_valid());
}

/// Messages of the shapes that agents of other people send (`testdata/wild/message`), and what must come of each.
#[test]
fn messages_as_they_are_out_there() {
    let directory = corpus::testdata().join("wild/message");
    let expected = std::fs::read(directory.join("expected.json")).expect("it can be read");
    let expected: serde_json::Map<String, Value> = serde_json::from_slice(&expected).expect("it is JSON");
    assert!(expected.len() >= 5);
    for (name, expected) in expected {
        let bytes = std::fs::read(directory.join(format!("{name}.json"))).expect("it can be read");
        let kind = Kind::from_name(expected["kind"].as_str().expect("a kind")).expect("there is such a kind");
        let response = read_response(kind, &bytes);
        let job = response.job.unwrap_or_else(|lack| panic!("{name}: {lack:?}"));
        let state = job.state().expect("it has ended").name();
        assert_eq!(expected["outcome"], state, "{name}");
        let found = |home: Home| job.get(home).map_or(Value::Null, |held| value(held.get()));
        for (member, home) in [("text", Home::Text), ("failure", Home::Failure), ("message", Home::Message)] {
            if let Some(wanted) = expected.get(member) {
                assert_eq!(found(home), *wanted, "{name} {member}");
            }
        }
        for (level, member) in [(Level::Error, "errors"), (Level::Warning, "warnings")] {
            let mut clauses: Vec<&str> = (response.report.findings.iter())
                .filter(|finding| finding.level == level)
                .map(|finding| finding.clause.id)
                .collect();
            clauses.sort_unstable();
            clauses.dedup();
            assert_eq!(json!(clauses), expected[member], "{name}");
        }
    }
}
