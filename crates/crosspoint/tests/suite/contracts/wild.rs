//! Answers of the shapes that agents of other people give, and what must come of each.
//!
//! `testdata/wild/<contract>/NAME.http` has the status, the content type and the body of an answer; `expected.json`
//! beside it says what its job ends with. `{{id}}` stands for the id of the request.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Level;
use serde_json::{Value, json};

use crate::support::bridge_agent::{human, inbox_of};
use crate::support::bridge_caller::new_id;
use crate::support::bridge_directory::{REQUEST, RESPONSE};
use crate::support::documents::findings;
use crate::support::envelopes::envelope;
use crate::support::message_agent::taken;
use crate::support::message_caller;
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent, answer};
use crate::support::server::Server;

fn directory(contract: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wild").join(contract)
}

/// What must come of each answer, by its name. Every file is named, and every name has its file.
fn expected(contract: &str) -> BTreeMap<String, Value> {
    let text = fs::read(directory(contract).join("expected.json")).expect("it can be read");
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&text).expect("it is JSON");
    let files = fs::read_dir(directory(contract)).expect("it can be listed");
    let mut names: Vec<String> = (files.map(|entry| entry.expect("it can be listed").path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "http"))
        .map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, expected.keys().cloned().collect::<Vec<_>>());
    expected
}

/// The first line of a case, and its body.
fn case(contract: &str, name: &str, id: &str) -> (String, String) {
    let path = directory(contract).join(format!("{name}.http"));
    let text = fs::read_to_string(path).expect("it can be read").replace("{{id}}", id);
    let (head, body) = text.split_once("\n\n").expect("a head, an empty line and a body");
    (head.to_owned(), body.to_owned())
}

/// Gives the answer of the agent's name, wherever it is asked for work.
fn script(contract: &'static str) -> impl Fn(&Request, &mut Connection) -> After {
    move |request, connection| {
        if request.method != "POST" {
            return connection.json(404, &json!({}));
        }
        if contract == "message" && request.work().is_none() {
            return taken(connection);
        }
        // An envelope has no id, and no path below its agent's.
        let id = request.json()[if contract == "task" { "id" } else { "request_id" }].clone();
        let (head, body) = case(contract, request.agent.trim_start_matches('/'), id.as_str().unwrap_or_default());
        let (status, content_type) = head.split_once(' ').expect("a status and a content type");
        // An agent that streams answers at both endpoints as it can.
        let is_stream = content_type == "text/event-stream";
        if contract == "run" && is_stream != request.path.ends_with("/stream") {
            return connection.json(404, &json!({}));
        }
        connection.send(answer(status.parse().expect("a status"), content_type, body));
        After::Keep
    }
}

/// The clauses that must be on record: those that the document breaks, and those that the exchange does.
fn wanted(expected: &Value, level: &str) -> Value {
    let mut clauses = Vec::new();
    for member in [format!("{level}s"), format!("exchange_{level}s")] {
        clauses.extend(expected[member].as_array().cloned().unwrap_or_default());
    }
    clauses.sort_by_key(ToString::to_string);
    json!(clauses)
}

/// The clauses that are on record about a job, of one level.
fn recorded(job: &Value, level: &str) -> Vec<String> {
    let all = job["violations"].as_array().cloned().unwrap_or_default();
    let of_level = all.iter().filter(|violation| violation["level"] == level);
    let mut clauses: Vec<String> =
        of_level.map(|violation| violation["clause"].as_str().expect("a text").to_owned()).collect();
    clauses.sort();
    clauses
}

/// Compares a job with what must come of it.
fn compare(name: &str, job: &Value, expected: &Value) {
    let outcome = &job["outcome"];
    assert_eq!(outcome["status"], expected["outcome"], "{name}: {job}");
    for level in ["error", "warning"] {
        assert_eq!(json!(recorded(job, level)), wanted(expected, level), "{name}: {job}");
    }
    let failure = &outcome["failure"];
    let is = |member: &str, found: &Value| {
        if let Some(wanted) = expected.get(member) {
            assert_eq!(found, wanted, "{name} {member}: {job}");
        }
    };
    is("outputs", &outcome["outputs"]);
    is("failure", &failure["code"]);
    is("message", &failure["message"]);
    let text = outcome.get("text").unwrap_or(&outcome["outputs"]);
    is("text", text);
    if let Some(words) = expected["words"].as_str() {
        assert!(failure["details"].to_string().contains(words), "{name}: the agent's words are in {failure}");
    }
}

fn agents_of_services(contract: &'static str) {
    let expected = expected(contract);
    let agent = ScriptedAgent::start_many(script(contract));
    let keys = "silence_seconds = 5\n";
    let toml: String = expected.keys().map(|name| agent.agent(contract, name, keys)).collect();
    let server = Server::configured(&toml);
    for (name, expected) in &expected {
        let body = json!({"work": name, "input": {"q": 1}, "limits": {"attempts": 1}}).to_string();
        // The answer to the submission shows the violations like any later one.
        let job = server.post("/api/v1/jobs?wait=30", &body).json();
        compare(name, &job, expected);
        let id = job["id"].as_str().expect("it has an id");
        let later = server.job(id);
        assert_eq!((&later["outcome"], &later["violations"]), (&job["outcome"], &job["violations"]), "{name}");
        same_contract_caller(&server, contract, name, expected);
    }
    // Words of agents are for their callers, and for no log.
    for words in ["vector store", "field required", "no such corpus", "no such host"] {
        assert!(!server.log().contains(words), "{words}");
    }
}

/// A caller of the same contract gets the outputs, in a document in which its contract's own validator finds no error.
fn same_contract_caller(server: &Server, contract: &str, name: &str, expected: &Value) {
    if contract == "message" {
        return message_caller(server, name, expected);
    }
    if contract == "workflow" {
        return workflow_caller(server, name, expected);
    }
    let (path, body, outputs) = match contract {
        "run" => ("/agents/run/sync", json!({"request_id": name, "task_type": name, "inputs": {"q": 2}}), "outputs"),
        "task" => ("/tasks?wait=30", json!({"id": name, "type": name, "payload": {"q": 2}}), "result"),
        other => panic!("{other} has no service"),
    };
    let answer = server.post(path, &body.to_string()).json();
    let kind = if contract == "run" { Kind::RunResponse } else { Kind::TaskResponse };
    let mut found = findings(answer.to_string().as_bytes(), kind);
    found.retain(|finding| finding.level == Level::Error);
    assert!(found.is_empty(), "{name}: {found:?} in {answer}");
    if expected["outcome"] == "completed" {
        assert_eq!(answer[outputs], expected["outputs"], "{name}: {answer}");
    } else if let (Some(given), "run") = (expected.get("outputs"), contract) {
        assert_eq!(answer["outputs"], *given, "{name}: {answer}");
    } else if let Some(given) = expected.get("outputs") {
        assert!(answer.to_string().contains(&given.to_string()), "what was given is carried, {name}: {answer}");
    }
    if let Some(message) = expected.get("message") {
        assert_eq!(answer["error"]["message"], *message, "{name}: {answer}");
    }
}

/// The same for messages, whose output is a text, and whose errors have numbers.
fn message_caller(server: &Server, name: &str, expected: &Value) {
    let request = message_caller::request(&new_id(), name, &json!({"q": 2}));
    let answer = server.message_result(&request);
    let payload = &answer["payload"];
    let said = if answer["type"] == "error" { &payload["error_message"] } else { &payload["output"] };
    if let Some(text) = expected.get("text").or_else(|| expected.get("message")) {
        assert_eq!(said, text, "{name}: {answer}");
    }
    let is_success = answer["type"] == "work_result" && payload["status"] == "success";
    assert_eq!(is_success, expected["outcome"] == "completed", "{name}: {answer}");
}

/// The same for envelopes, which say everything in their summary.
fn workflow_caller(server: &Server, name: &str, expected: &Value) {
    let answer = server.post(&format!("/agents/{name}/envelope"), &envelope(name, &json!({"q": 2}))).json();
    let mut found = findings(answer.to_string().as_bytes(), Kind::WorkflowOutput);
    found.retain(|finding| finding.level == Level::Error);
    assert!(found.is_empty(), "{name}: {found:?} in {answer}");
    assert_eq!(answer["success"] == true, expected["outcome"] == "completed", "{name}: {answer}");
    if let Some(text) = expected.get("outputs").or_else(|| expected.get("message")) {
        assert_eq!(answer["summary"], *text, "{name}: {answer}");
    }
}

#[test]
fn answers_of_workflow_agents() {
    agents_of_services("workflow");
}

#[test]
fn answers_of_message_agents() {
    agents_of_services("message");
}

#[test]
fn answers_and_streams_of_run_agents() {
    agents_of_services("run");
}

#[test]
fn answers_of_task_agents() {
    agents_of_services("task");
}

#[test]
fn files_of_bridge_agents() {
    let expected = expected("bridge");
    let server = Server::configured(&human("inbox", ""));
    let inbox = inbox_of(&server);
    for (name, expected) in &expected {
        let job = server.submit(&json!({"work": "human", "input": name}).to_string());
        let id = job["id"].as_str().expect("it has an id");
        inbox.until_there(REQUEST);
        inbox.leave(RESPONSE, &case("bridge", name, id).1);
        inbox.remove(REQUEST);
        compare(name, &server.ended(id), expected);
    }
}
