//! The bridge door refuses in its own contract: a response that is an error, with the rest in its metadata.

use std::io::{BufReader, Write};

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::bridge_caller::{BRIDGE, new_id, request, response};
use crate::support::documents::findings;
use crate::support::server::{Answer, Server, head};

/// What a refusal says besides the nine members.
#[track_caller]
fn refused(answer: &Answer, status: u16, error_type: &str, request_id: Option<&str>) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    let document = answer.json();
    assert!(
        findings(&answer.body, Kind::BridgeResponse).iter().all(|finding| finding.clause.id == "BRIDGE-4.5"),
        "nothing but the id may be loose: {document}"
    );
    assert_eq!(document["error_type"], error_type, "{document}");
    assert_eq!(document["response"], Value::Null);
    let carried = &document["metadata"]["x_crosspoint"];
    assert!(carried["details"]["hint"].is_string() && carried["details"]["repeat"].is_string(), "{document}");
    let id = document["request_id"].as_str().expect("there is one");
    match request_id {
        Some(request_id) => assert_eq!((id, &carried["warnings"]), (request_id, &Value::Null)),
        None => assert!(id.len() == 36 && carried["warnings"].to_string().contains("was generated"), "{document}"),
    }
    carried["details"].clone()
}

#[test]
fn every_mistake_is_told_with_its_clause_and_its_place() {
    let server = Server::start();
    let id = new_id();
    let good = request(&id, "echo", "p");
    for member in ["request_id", "version", "agent_name", "prompt"] {
        for value in [None, Some(json!(7))] {
            let mut broken = good.clone();
            match value {
                Some(value) => broken[member] = value,
                None => drop(broken.as_object_mut().expect("an object").remove(member)),
            }
            let known = (member != "request_id").then_some(id.as_str());
            let details = refused(&server.ask(&broken), 400, "invalid_request", known);
            assert_eq!((&details["at"], &details["repeat"]), (&json!(format!("/{member}")), &json!("never")));
            assert!(details["clause"].as_str().is_some_and(|clause| clause.starts_with("BRIDGE-")), "{details}");
            assert_eq!(details["findings"].as_array().map(Vec::len), Some(1));
        }
    }
    let mut newer = good.clone();
    newer["version"] = json!("2.0");
    let details = refused(&server.ask(&newer), 400, "invalid_request", Some(&id));
    assert_eq!((&details["clause"], &details["at"]), (&json!("BRIDGE-6.3"), &json!("/version")));
    for text in ["", "what is this", "[]", "{\"version\": \"1.0\"", "null"] {
        refused(&server.post(BRIDGE, text), 400, "invalid_request", None);
    }
    let cut = good.to_string();
    let cut = refused(&server.post(BRIDGE, &cut[..cut.len() - 1]), 400, "invalid_request", Some(&id));
    assert_eq!(cut["clause"], "ALL-101");
    let empty = refused(&server.ask(&request("", "echo", "p")), 400, "invalid_request", None);
    assert_eq!(empty["at"], "/request_id");
    let long = "x".repeat(513);
    let too_long = refused(&server.ask(&request(&long, "echo", "p")), 400, "invalid_request", Some(&long));
    assert_eq!(too_long["at"], "/request_id");
    let too_long = refused(&server.ask(&request(&id, &long, "p")), 400, "invalid_request", Some(&id));
    assert_eq!(too_long["at"], "/agent_name");
    assert_eq!(server.asked().len(), 0);
    assert_eq!(server.ask(&request(&"x".repeat(512), "echo", "p")).status, 200);
}

#[test]
fn work_that_no_agent_takes_and_wrong_queries_are_refused() {
    let server = Server::start();
    let id = new_id();
    let details = refused(&server.ask(&request(&id, "nobody", "p")), 400, "unsupported_work", Some(&id));
    assert_eq!((&details["clause"], &details["at"]), (&json!("BRIDGE-125"), &json!("/agent_name")));
    assert!(details["hint"].as_str().is_some_and(|hint| hint.contains("slow_echo")), "{details}");
    let good = request(&id, "echo", "p").to_string();
    let at = |query: &str| server.post(&format!("{BRIDGE}{query}"), &good);
    let details = refused(&at("?work=nobody"), 400, "unsupported_work", Some(&id));
    assert_eq!(details["at"], Value::Null);
    let long = format!("?work={}", "x".repeat(513));
    for query in ["?wait=x", "?wait=1e9", "?wait=-1", "?work=", "?agent=echo", &long] {
        refused(&at(query), 400, "invalid_request", Some(&id));
    }
    let key = server.request("POST", BRIDGE, &[("idempotency-key", "é")], good.as_bytes());
    refused(&key, 400, "invalid_request", Some(&id));
    let mut pinned = request(&id, "echo", "p");
    pinned["context"] = json!({"x_crosspoint": {"from": "task.request", "target": "nobody"}});
    let details = refused(&server.ask(&pinned), 400, "unsupported_work", Some(&id));
    assert_eq!(details["at"], "/context/x_crosspoint/target");
    refused(&server.request("DELETE", BRIDGE, &[], b""), 405, "invalid_request", None);
    refused(&server.get("/api/v1/bridge/more"), 404, "invalid_request", None);
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn what_is_loose_is_said_and_taken_all_the_same() {
    let server = Server::start();
    let answer = server.ask(&request("r-1", "echo", "p"));
    let document = answer.json();
    assert_eq!((answer.status, &document["request_id"]), (200, &json!("r-1")), "copied, whatever it is");
    let warnings = document["metadata"]["x_crosspoint"]["warnings"].to_string();
    assert!(warnings.contains("BRIDGE-4.5"), "{document}");
    assert_eq!(inner_prompt(&document), "p");
}

fn inner_prompt(document: &Value) -> String {
    let inner: Value = serde_json::from_str(document["response"].as_str().expect("a text")).expect("JSON");
    inner["prompt"].as_str().expect("a prompt").to_owned()
}

#[test]
fn limits_are_told_in_the_words_of_the_contract() {
    let server = Server::configured("[limits]\nbody_bytes = 1000\njobs = 1\nbody_seconds = 0.3\n");
    let large = server.ask(&request(&new_id(), "echo", &"x".repeat(2000)));
    let details = refused(&large, 413, "RequestTooLarge", None);
    assert_eq!(details["repeat"], "never");
    let first = server.post(BRIDGE, &request(&new_id(), "ask", "?").to_string());
    assert_eq!(first.status, 202, "{first:?}");
    let id = new_id();
    let full = server.ask(&request(&id, "echo", "p"));
    let details = refused(&full, 429, "resource_limit", Some(&id));
    assert_eq!((full.header("retry-after"), &details["repeat"]), (Some("1"), &json!("safe")));
    // A body that never comes.
    let mut stream = server.connect();
    stream.write_all((head("POST", BRIDGE, &[], 100) + "{").as_bytes()).expect("it can be sent");
    let late = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
    assert_eq!(response(&late)["status"], "timeout");
    refused(&late, 408, "timeout", None);
}
