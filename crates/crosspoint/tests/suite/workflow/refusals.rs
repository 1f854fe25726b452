//! The workflow door refuses in its own contract, with the clause and what to do.

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::documents::faultless;
use crate::support::envelopes::envelope;
use crate::support::server::{Answer, Server};

const PLACE: &str = "/agents/echo/envelope";

/// Checks a refusal, and returns its details.
#[track_caller]
fn refused(answer: &Answer, status: u16) -> Value {
    let document = answer.json();
    assert_eq!(answer.status, status, "{answer:?}");
    faultless(&answer.body, Kind::WorkflowOutput);
    assert_eq!(document["success"], json!(false), "{document}");
    let carried = &document["x_crosspoint"];
    assert!(carried["request_id"].is_null() && carried["warnings"].is_null(), "envelopes have no id: {document}");
    carried["details"].clone()
}

#[test]
fn every_mistake_is_refused_with_its_clause_and_place() {
    let server = Server::start();
    let with = |pointer: &str, value: Value| {
        let mut document: Value = serde_json::from_str(&envelope("echo", &json!({}))).expect("JSON");
        *document.pointer_mut(pointer).expect("it is there") = value;
        document.to_string()
    };
    let without = |object: &str, name: &str| {
        let mut document: Value = serde_json::from_str(&envelope("echo", &json!({}))).expect("JSON");
        let found = document.pointer_mut(object).and_then(Value::as_object_mut).and_then(|object| object.remove(name));
        assert!(found.is_some(), "{object}/{name}");
        document.to_string()
    };
    let cases = [
        (String::new(), "ALL-101", ""),
        ("[]".to_owned(), "ALL-108", ""),
        (without("", "context"), "WF-101", "/context"),
        (without("/context", "feature_id"), "WF-1", "/context/feature_id"),
        (without("", "paths"), "WF-101", "/paths"),
        (without("", "task"), "WF-101", "/task"),
        (without("/task", "action"), "WF-101", "/task/action"),
        (without("/task", "params"), "WF-1.3", "/task/params"),
        (with("/context/iteration", json!(0)), "WF-1.2", "/context/iteration"),
        (with("/paths/spec", json!(7)), "WF-1.4", "/paths/spec"),
        (with("/task/params", json!([])), "WF-1.3", "/task/params"),
        (with("/task/action", json!(7)), "WF-105", "/task/action"),
    ];
    for (body, clause, at) in cases {
        let details = refused(&server.post(PLACE, &body), 400);
        assert_eq!((&details["clause"], &details["at"]), (&json!(clause), &json!(at)), "{body}");
        assert_eq!(details["repeat"], "never", "{body}");
    }
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "nothing of it became a job");
}

#[test]
fn an_agent_that_is_not_there_is_not_found_and_one_that_is_says_what_it_takes() {
    let server = Server::start();
    let details = refused(&server.post("/agents/nobody/envelope", &envelope("echo", &json!({}))), 404);
    assert_eq!(details["clause"], "ALL-6", "{details}");
    assert!(details["hint"].as_str().is_some_and(|hint| hint.contains("echo")), "{details}");
    for action in ["fail", "never heard of"] {
        let details = refused(&server.post(PLACE, &envelope(action, &json!({}))), 400);
        assert_eq!((&details["at"], &details["hint"]), (&json!("/task/action"), &json!("it takes echo")), "{details}");
    }
    // An escaped name is the name.
    let details = refused(&server.post("/agents/no%2Fbody/envelope", &envelope("echo", &json!({}))), 404);
    assert_eq!(details["clause"], "ALL-6", "{details}");
}

/// The run contract has paths that begin alike.
#[test]
fn refusals_have_the_shape_of_the_contract_whatever_the_agent_is_called() {
    let server = Server::configured(
        "[limits]\nbody_bytes = 2000\n[[agent]]\nname = \"run\"\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [\"echo\"]\n",
    );
    for name in ["run", "echo"] {
        let place = format!("/agents/{name}/envelope");
        refused(&server.post(&place, "{}"), 400);
        refused(&server.post(&place, &"x".repeat(3_000)), 413);
        let answer = server.request("PUT", &place, &[], b"{}");
        refused(&answer, 405);
        assert_eq!(answer.header("allow"), Some("POST"), "{answer:?}");
    }
    assert_eq!(server.post("/agents/run/envelope", &envelope("echo", &json!({}))).status, 200);
    let elsewhere = server.post("/agents/run/sync", "{}").json();
    assert_eq!(elsewhere["status"], "error", "the run door keeps its own shape: {elsewhere}");
}
