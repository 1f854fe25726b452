//! The two levels of a bridge response, and the input of a request.

use crosspoint_contracts::{Contract, Inner, Options, bridge};

use crate::translation::to;

fn response(inner_json_text: &str) -> String {
    let encoded = serde_json::to_string(inner_json_text).expect("a string can be encoded");
    format!(
        r#"{{"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "status": "success",
"response": {encoded}, "error_message": null, "error_type": null,
"created_at": "2025-11-24T14:22:45+00:00", "duration_seconds": 1.0, "metadata": {{}}}}"#
    )
}

fn findings(source: &str, inner: Inner) -> Vec<(&'static str, usize, usize)> {
    let report = crosspoint_contracts::read(source.as_bytes(), &Options { inner, ..Options::default() }).report;
    report.findings.iter().map(|finding| (finding.clause.id, finding.line, finding.column)).collect()
}

#[test]
fn inner_and_envelope_errors_are_told_apart() {
    let good = response("{\"sections\": [\"é\"]}");
    assert_eq!(findings(&good, Inner::Json), []);
    let inner_broken = response("{\"a\": [1,]}");
    assert_eq!(findings(&inner_broken, Inner::Any), []);
    // `"response": "` is 13 columns wide; each escaped quote before the place adds one.
    assert_eq!(findings(&inner_broken, Inner::Json), [("BRIDGE-5.2", 2, 13 + 2 + "{\"a\": [1,]".len())]);
    let envelope_broken = &good[..good.len() - 1];
    assert_eq!(
        findings(envelope_broken, Inner::Json),
        [("ALL-101", 3, envelope_broken.lines().last().map_or(0, str::len) + 1)]
    );
}

#[test]
fn inner_text_may_be_anything_unless_json_is_asked_for() {
    for text in ["# Markdown", "<xml/>", "", "plain"] {
        assert_eq!(findings(&response(text), Inner::Any), []);
        assert_eq!(findings(&response(text), Inner::Json).len(), 1, "{text:?}");
    }
}

#[test]
fn limits_bind_drivers_not_validation() {
    let over_any_driver_limit = response(&"x".repeat(11 << 20));
    assert_eq!(findings(&over_any_driver_limit, Inner::Any), []);
}

#[test]
fn inner_json_that_readers_refuse_or_misread_is_found() {
    for inner in ["\u{feff}{}", r#"{"a": 1, "a": 2}"#, r#"{"a": "\ud800"}"#] {
        let found = findings(&response(inner), Inner::Json);
        assert_eq!(found.iter().map(|(clause, ..)| *clause).collect::<Vec<_>>(), ["BRIDGE-5.2"], "{inner}");
    }
}

/// A hundred thousand flaws in a text of escapes: minutes if each place were searched for from the start.
#[test]
fn many_flaws_of_inner_json_are_placed_in_one_walk() {
    let inner = format!("{{{}\"b\": 0}}", "\"a\": 0,\n".repeat(200_000));
    let source = response(&inner);
    let report =
        crosspoint_contracts::read(source.as_bytes(), &Options { inner: Inner::Json, ..Options::default() }).report;
    assert_eq!(report.findings.len() + report.unlisted, 199_999);
    let second = &report.findings[1];
    assert_eq!(&source[second.span.0..second.span.0 + 5], r#"\"a\""#);
}

#[test]
fn a_misnamed_output_is_known_in_any_spelling() {
    let clauses = |members: &str| {
        let source = response("x").replace("\"response\"", members);
        findings(&source, Inner::Any).into_iter().map(|(clause, ..)| clause).collect::<Vec<_>>()
    };
    assert_eq!(clauses(r#""result""#), ["BRIDGE-2"]);
    assert_eq!(clauses(r#""Result""#), ["BRIDGE-2"]);
    assert_eq!(clauses(r#""response": null, "result""#), ["BRIDGE-3.2", "BRIDGE-2"]);
    assert_eq!(clauses(r#""result": 1, "response""#), ["BRIDGE-1.3"], "beside a response it is only a further field");
}

fn asking(members: &str) -> String {
    format!(r#"{{"request_id": "r", "version": "1.0", "agent_name": "a"{members}}}"#)
}

fn input(document: &str) -> Option<String> {
    bridge::input(document.as_bytes())
}

#[test]
fn the_input_of_a_request_is_prompt_and_context_in_one() {
    let given = |members| input(&asking(members));
    assert_eq!(given(r#", "prompt": "Größe \u00e9\n""#).as_deref(), Some(r#"{"prompt":"Größe \u00e9\n"}"#));
    let both = r#", "context": {"a": [1.0, 1e400]}, "model": "m", "prompt": "p""#;
    assert_eq!(given(both).as_deref(), Some(r#"{"prompt":"p","context":{"a": [1.0, 1e400]}}"#));
    assert_eq!(given(r#", "prompt": "", "context": {}"#).as_deref(), Some(r#"{"prompt":"","context":{}}"#));
    // A prompt that looks like JSON is a text all the same.
    assert_eq!(given(r#", "prompt": "{\"a\": 1}""#).as_deref(), Some(r#"{"prompt":"{\"a\": 1}"}"#));
}

#[test]
fn what_is_no_request_has_no_input() {
    assert_eq!(input(""), None);
    assert_eq!(input(&asking("")), None, "there is no prompt");
    assert_eq!(input(&response("{}")), None);
}

#[test]
fn an_input_that_was_carried_is_what_it_was_and_nothing_of_ours_is_in_it() {
    for inputs in [r#"{"files":["a.rs"],"n":1.0}"#, r#"{"prompt":"p","context":{"c":1}}"#, r#"{"prompt":"p"}"#, "{}"] {
        let run = format!(
            r#"{{"request_id": "r", "task_type": "t", "stage_id": "s", "mode": "LIVE", "inputs": {inputs}, "budgets": {{"tokens": 5}}}}"#
        );
        let there = to(Contract::Bridge, run.as_bytes()).expect("requests go everywhere");
        assert!(there.text().contains("x_crosspoint"), "something is carried: {}", there.text());
        assert_eq!(input(there.text()).as_deref(), Some(inputs), "{}", there.text());
    }
}
