//! The workflow door: what callers of the contract get.

use serde_json::{Value, json};

use crate::support::envelopes::{envelope, kept, output, program};
use crate::support::server::Server;
use crate::support::tokens::{self, with};

/// An agent that keeps what it was given, and answers with a file.
fn validator(answer: &str) -> Server {
    let server = Server::configured(&program("validator", "cat > seen; cat answer", "work = [\"validate\"]"));
    std::fs::write(server.directory().join("answer"), answer).expect("it can be written");
    server
}

fn seen(server: &Server) -> Value {
    serde_json::from_str(&server.said_in("seen")).expect("it is JSON")
}

#[test]
fn the_printed_envelopes_work_as_printed() {
    let (input, printed) = (kept("input-printed.json"), kept("output-printed.json"));
    let server = validator(&printed);
    let answer = server.give("validator", &input);
    let (input, printed): (Value, Value) =
        (serde_json::from_str(&input).expect("JSON"), serde_json::from_str(&printed).expect("JSON"));
    assert_eq!((answer.status, answer.json()), (200, printed));
    let mut seen = seen(&server);
    let carried = seen.as_object_mut().and_then(|seen| seen.remove("x_crosspoint")).expect("what has no field");
    assert_eq!(seen, input, "context, paths, task and prior context are the agent's");
    let job = server.job_of(&answer);
    assert_eq!(carried, json!({"from": "workflow.input", "delegation_chain": ["crosspoint"]}));
    assert_eq!(
        (&job["door"], &job["work"], &job["agent"]),
        (&json!("workflow"), &json!("validate"), &json!("validator"))
    );
}

#[test]
fn artifacts_notes_and_the_recommendation_arrive_and_nothing_is_written() {
    let mut given = output(true, "Wrote the plan, and it is not good: ä.", "retry");
    given["artifacts"] = json!([
        {"path": "specs/plan.md", "operation": "create", "content": "# Plan\n"},
        {"path": "specs/spec.md", "operation": "update", "content": ""},
    ]);
    given["notes"] = json!(["Look at the edge cases", ""]);
    given["own"] = json!({"kept": [1.50, null]});
    let server = validator(&given.to_string());
    let answer = server.give("validator", &envelope("validate", &json!({})));
    assert_eq!((answer.status, answer.json()), (200, given));
    assert!(!server.directory().join("specs").exists(), "its artifacts are only carried");
    let job = server.job_of(&answer);
    let plan = json!({"name": "specs/plan.md", "type": "text/markdown", "content": "# Plan\n"});
    assert_eq!(job["outcome"]["artifacts"][0], plan, "{job}");
    assert_eq!(job["outcome"]["artifacts"][1]["operation"], "update", "{job}");
    assert_eq!(job["violations"], json!(null), "{job}");
}

/// WF-8.2, WF-3: a failure is an answer like any other.
#[test]
fn a_failure_is_an_output_that_says_so() {
    for (said, told) in [("retry", "retry"), ("escalate", "escalate"), ("proceed", "escalate")] {
        let server = validator(&output(false, "The spec is missing.", said).to_string());
        let answer = server.give("validator", &envelope("validate", &json!({})));
        let mut document = answer.json();
        document.as_object_mut().and_then(|document| document.remove("x_crosspoint"));
        assert_eq!((answer.status, document), (200, output(false, "The spec is missing.", told)), "{said}");
        let job = server.job_of(&answer);
        assert_eq!(job["outcome"]["failure"]["code"], "agent_failed", "{job}");
        assert_eq!(job["violations"].to_string().contains("WF-3.2"), said == "proceed", "{job}");
    }
}

#[test]
fn an_agent_without_a_contract_answers_with_a_sentence_and_its_object() {
    let server = Server::start();
    let answer = server.give("echo", &envelope("echo", &json!({"a": 1})));
    let document = answer.json();
    assert_eq!(
        (answer.status, &document["success"], &document["recommendation"]),
        (200, &json!(true), &json!("proceed"))
    );
    assert_eq!(document["x_crosspoint"]["outputs"], json!({"a": 1}), "{document}");
}

/// ALL-1.2: an envelope has no id, so that each is work of its own, unless the header says otherwise.
#[test]
fn every_envelope_is_new_work_without_a_key() {
    let server = Server::start();
    let (body, other) = (envelope("echo", &json!({"n": 1})), envelope("echo", &json!({"n": 2})));
    let place = |body: &str, key: Option<&str>| {
        let headers: Vec<(&str, &str)> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let answer = server.request("POST", "/agents/echo/envelope", &headers, body.as_bytes());
        (answer.status, answer.header("location").map(str::to_owned))
    };
    assert_ne!(place(&body, None), place(&body, None));
    let first = place(&body, Some("k"));
    assert_eq!((first.0, place(&body, Some("k"))), (200, first.clone()));
    assert_eq!(place(&other, Some("k")).0, 409, "the key is that of other work");
    assert_ne!(place(&body, Some("l")), first);
}

/// ALL-5.4.
#[test]
fn a_caller_that_has_waited_long_enough_is_told_so_and_may_join_again() {
    let server = Server::configured(
        "[server]\nsync_wait_seconds = 0.2\n[[agent]]\nname = \"person\"\ncontract = \"builtin\"\nrun = \"ask\"\n",
    );
    let body = envelope("person", &json!({"prompt": "Ship it?"}));
    let give = || server.request("POST", "/agents/person/envelope", &[("idempotency-key", "k")], body.as_bytes());
    let answer = give();
    let document = answer.json();
    assert_eq!(
        (answer.status, &document["success"], &document["recommendation"]),
        (504, &json!(false), &json!("retry"))
    );
    let details = &document["x_crosspoint"]["details"];
    assert_eq!((&details["clause"], &details["repeat"]), (&json!("ALL-5.4"), &json!("unknown")), "{document}");
    assert!(details["hint"].as_str().is_some_and(|hint| hint.contains("Idempotency-Key")), "{document}");
    let listed = server.get("/api/v1/jobs").json();
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1), "{listed}");
    let id = listed["jobs"][0]["id"].as_str().expect("an id").to_owned();
    server.in_state(&id, "waiting");
    server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "yes"}"#);
    server.ended(&id);
    assert_eq!(give().status, 200, "it joins what it began");
}

#[test]
fn a_caller_joins_and_sees_its_own_work_alone() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let (one, other) = (tokens::caller(&server, &admin, "one"), tokens::caller(&server, &admin, "other"));
    let body = envelope("echo", &json!({}));
    let give = |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", "same")];
        server.request("POST", "/agents/echo/envelope", &headers, body.as_bytes())
    };
    let places = [give(&one), give(&other)].map(|answer| answer.header("location").expect("a place").to_owned());
    assert_ne!(places[0], places[1], "keys of two callers never meet");
    assert_eq!(with(&server, Some(&one), "GET", &places[0], "").status, 200);
    assert_eq!(with(&server, Some(&other), "GET", &places[0], "").status, 404);
}
