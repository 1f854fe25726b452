//! What the message door refuses: as an `error` of the contract, with its code and its context, and nothing of it is
//! done.

use std::io::{BufReader, Write};
use std::{fs, thread};

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::run::examples::valid;
use crate::support::documents::faultless;
use crate::support::message_post::ENDPOINT;
use crate::support::message_sender::{PRINTED, Said, asking, sample};
use crate::support::program::root;
use crate::support::server::{Answer, Server, head};

fn printed() -> Value {
    serde_json::from_str(PRINTED).expect("it is JSON")
}

/// Removes a member, by its pointer.
fn without(document: &Value, pointer: &str) -> Value {
    let mut document = document.clone();
    let (place, name) = pointer.rsplit_once('/').expect("a pointer");
    document.pointer_mut(place).and_then(Value::as_object_mut).expect("an object").remove(name).expect("it is there");
    document
}

fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    *document.pointer_mut(pointer).expect("it is there") = value;
    document
}

/// 5003: the message names what is wrong, and so does its context.
#[track_caller]
fn invalid(said: &Said, field: Option<&str>, clause: &str) {
    assert_eq!((said.status, said.code()), (400, Some(5003)), "{:?}", said.answer);
    let context = said.context();
    assert_eq!(context["validation_error"], said.message(), "{context}");
    assert_eq!((context["field_name"].as_str(), &context["clause"]), (field, &json!(clause)), "{context}");
    assert!(context["hint"].is_string() && context["repeat"] == "never", "{context}");
}

#[test]
fn a_message_without_a_field_of_the_envelope_is_5003_and_names_the_field() {
    let server = Server::configured(&sample("echo", "run_playbook", ""));
    for field in [
        "protocol_version",
        "message_id",
        "from_agent",
        "to_agent",
        "timestamp",
        "trace_id",
        "request_id",
        "type",
        "payload",
    ] {
        let request = without(&printed(), &format!("/{field}"));
        let said = server.say(&request);
        invalid(&said, Some(field), "MSG-1");
        let hint = said.context()["hint"].as_str().expect("a hint");
        assert!(hint.starts_with(&format!("Add \"{field}\": ")), "{hint}");
        valid("message.error", &said.answer.body);
        for id in ["request_id", "trace_id"].into_iter().filter(|id| *id != field) {
            assert_eq!(said.document[id], request[id], "{id}, {field} is missing: {}", said.document);
        }
        if !["from_agent", "to_agent"].contains(&field) {
            assert_eq!(
                (&said.document["from_agent"], &said.document["to_agent"]),
                (&json!("infra"), &json!("orchestrator"))
            );
        }
    }
    for field in ["task_id", "work_type"] {
        let said = server.say(&without(&printed(), &format!("/payload/{field}")));
        invalid(&said, Some(&format!("payload.{field}")), "MSG-103");
    }
    assert_eq!(server.job_count(), 0);
}

#[test]
fn a_field_of_the_wrong_type_or_value_is_5003_and_names_the_field() {
    let server = Server::configured(&sample("echo", "run_playbook", ""));
    for (pointer, value, clause) in [
        ("/message_id", json!("7"), "MSG-1.3"),
        ("/request_id", json!(7), "MSG-1.3"),
        ("/trace_id", json!("not a uuid"), "MSG-1.3"),
        ("/from_agent", json!("Infra"), "MSG-1.4"),
        ("/to_agent", json!("someone"), "MSG-1.4"),
        ("/timestamp", json!("yesterday"), "MSG-2"),
        ("/payload", json!([]), "MSG-102"),
        ("/payload/task_id", json!("t-1"), "MSG-1.3"),
        ("/payload/work_type", json!(""), "MSG-104"),
        ("/payload/parameters", json!([1]), "MSG-3"),
        ("/payload/hints", json!("fast"), "MSG-3"),
        ("/payload/hints/max_duration_seconds", json!("300"), "MSG-105"),
        ("/payload/hints/max_memory_mb", json!(-1), "MSG-105"),
        ("/x_custom_fields", json!(null), ""),
    ] {
        let said = server.say(&with(&printed(), pointer, value));
        if clause.is_empty() {
            // Quick work may have ended before it is answered.
            assert!(matches!(said.status, 200 | 202), "null reads as absent: {:?}", said.answer);
            continue;
        }
        let field = pointer[1..].replace('/', ".");
        invalid(&said, Some(&field), clause);
        assert_eq!(said.context()["at"], pointer);
    }
    let other = server.say(&with(&printed(), "/type", json!("work_order")));
    invalid(&other, Some("type"), "MSG-101");
}

#[test]
fn what_is_no_json_or_no_object_is_5003_with_generated_ids() {
    let server = Server::start();
    for (body, clause) in [
        ("", "ALL-101"),
        ("work_request", "ALL-101"),
        ("{\"type\": \"work_request\",", "ALL-101"),
        ("[]", "ALL-108"),
        ("null", "ALL-108"),
    ] {
        let said = server.message("", &[], body);
        invalid(&said, None, clause);
        let warnings = &said.document["x_custom_fields"]["x_crosspoint"]["warnings"];
        assert_eq!(warnings[0], "request_id was generated: none could be read from the request", "{}", said.document);
    }
    let not_text = server.request("POST", ENDPOINT, &[], b"{\"type\": \"\xff\"}");
    assert_eq!(not_text.json()["payload"]["error_context"]["clause"], "ALL-102", "{not_text:?}");
    // What came before the cut is echoed.
    let cut = &PRINTED[..PRINTED.find("\"payload\"").expect("it is there")];
    let said = server.message("", &[], cut);
    invalid(&said, None, "ALL-101");
    assert_eq!(said.document["request_id"], printed()["request_id"]);
    let twice = PRINTED.replacen("\"payload\"", "\"type\": \"work_request\", \"payload\"", 1);
    invalid(&server.message("", &[], &twice), Some("type"), "ALL-103");
}

#[test]
fn all_that_is_wrong_is_said_in_one_go() {
    let server = Server::start();
    let mut request = without(&without(&printed(), "/message_id"), "/payload/task_id");
    request["timestamp"] = json!(7);
    let said = server.say(&request);
    assert!(said.message().ends_with("(one of 3 errors)"), "{}", said.message());
    assert_eq!(said.context()["findings"].as_array().map(Vec::len), Some(3), "{}", said.context());
}

#[test]
fn unknown_work_is_5006_with_the_works_that_there_are() {
    let server = Server::configured(&(sample("echo", "run_playbook", "") + &sample("ask", "approve", "")));
    let request = asking("nobody_does_this", &json!({}));
    let said = server.say(&request);
    assert_eq!((said.status, said.code()), (400, Some(5006)), "{:?}", said.answer);
    valid("message.error", &said.answer.body);
    said.answers(&request);
    let context = said.context();
    assert_eq!(context["work_type_requested"], "nobody_does_this", "{context}");
    assert_eq!(context["supported_types"], json!(["approve", "run_playbook"]), "{context}");
    assert_eq!((&context["repeat"], &context["field_name"]), (&json!("never"), &Value::Null), "{context}");
    let slip = server.say(&asking("run_playbok", &json!({})));
    assert_eq!(slip.context()["hint"], "did you mean run_playbook? known works: approve, run_playbook");
}

#[test]
fn work_that_no_agent_of_the_addressed_type_takes_is_5006() {
    let server = Server::configured(&sample("echo", "run_playbook", ""));
    let said = server.say(&with(&printed(), "/to_agent", json!("desktop")));
    assert_eq!((said.status, said.code()), (400, Some(5006)), "{:?}", said.answer);
    let context = said.context();
    assert_eq!((&context["at"], &context["clause"]), (&json!("/to_agent"), &json!("MSG-18")), "{context}");
    assert_eq!(context["work_type_requested"], "run_playbook", "{context}");
    assert_eq!(context["hint"], "agents of these types take it: infra", "{context}");
}

#[test]
fn an_id_that_is_no_uuid_is_carried_and_the_refusal_says_so() {
    let said = Server::start().say(&with(&printed(), "/request_id", json!("r-1")));
    invalid(&said, Some("request_id"), "MSG-1.3");
    let carried = &said.document["x_custom_fields"]["x_crosspoint"];
    let warning = "request_id was generated: that of the request is no UUID, and is carried";
    assert_eq!((&carried["request_id"], &carried["warnings"]), (&json!("r-1"), &json!([warning])), "{carried}");
}

#[test]
fn polls_and_registrations_have_no_id_that_could_be_missed() {
    let server = Server::start();
    let poll = server.get("/api/agent/messages?agent=missing");
    let context = &poll.json()["payload"]["error_context"];
    assert_eq!((poll.status, &context["field_name"], &context["clause"]), (404, &json!("agent"), &json!("MSG-14")));
    assert!(context["hint"].as_str().is_some_and(|hint| hint.contains("/api/v1/callers")), "{context}");
    for answer in [poll, server.post("/api/agent/register", "{}")] {
        assert!(!answer.text().contains("was generated"), "{answer:?}");
    }
}

#[test]
fn a_version_that_is_a_number_is_told_from_none() {
    let said = Server::start().say(&with(&printed(), "/protocol_version", json!(1.0)));
    assert_eq!((said.status, said.code()), (400, Some(5006)), "{:?}", said.answer);
    assert!(said.message().ends_with("the other side gives none as a text"), "{}", said.message());
    assert_eq!(said.context()["hint"], "Write \"protocol_version\": \"1.0\", as a string.");
}

#[test]
fn a_message_in_another_version_is_5006_with_the_versions_of_both_sides() {
    let server = Server::configured(&sample("echo", "run_playbook", ""));
    for kind in ["work_request", "work_status", "work_result", "error"] {
        let request = with(&with(&printed(), "/protocol_version", json!("2.0")), "/type", json!(kind));
        let said = server.say(&request);
        assert_eq!((said.status, said.code()), (400, Some(5006)), "{kind}: {:?}", said.answer);
        assert!(said.message().contains("1.0") && said.message().contains("2.0"), "{}", said.message());
        assert_eq!(said.context()["work_type_requested"], "run_playbook", "{}", said.context());
        assert_eq!(said.document["protocol_version"], "1.0", "{}", said.document);
        said.answers(&request);
    }
    assert_eq!(server.job_count(), 0);
}

#[test]
fn too_many_jobs_are_5005_with_429_and_come_again_later() {
    let server = Server::configured(&(sample("ask", "approve", "") + "[limits]\njobs = 1\n"));
    let first = asking("approve", &json!({}));
    assert_eq!(server.say(&first).status, 202);
    let request = asking("approve", &json!({}));
    let said = server.say(&request);
    assert_eq!((said.status, said.code()), (429, Some(5005)), "{:?}", said.answer);
    valid("message.error", &said.answer.body);
    said.answers(&request);
    let context = said.context();
    assert_eq!(context["limit_name"], "jobs", "{context}");
    assert_eq!((&context["available"], &context["required"]), (&json!(0), &json!(1)), "{context}");
    assert_eq!((said.answer.header("retry-after"), &context["repeat"]), (Some("1"), &json!("safe")), "{context}");
    assert_eq!(server.say(&first).status, 202, "a repeat is no new job");
}

#[test]
fn a_body_that_is_too_large_or_never_comes_is_refused_in_the_same_shape() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\nbody_seconds = 1\n");
    let large = server.say(&asking("echo", &json!({"x": "x".repeat(2000)})));
    assert_eq!((large.status, large.code()), (413, Some(5003)), "{:?}", large.answer);
    assert_eq!(large.context()["repeat"], "never", "{}", large.context());
    let mut stream = server.connect();
    stream.write_all((head("POST", ENDPOINT, &[], 100) + "{").as_bytes()).expect("it can be sent");
    let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
    faultless(&answer.body, Kind::MessageError);
    let payload = answer.json()["payload"].clone();
    assert_eq!((answer.status, &payload["error_code"]), (408, &json!(5001)), "{payload}");
    assert_eq!(payload["error_context"]["repeat"], "safe", "{payload}");
}

#[test]
fn a_wrong_method_an_unknown_path_and_a_wrong_query_are_refused_as_errors() {
    let server = Server::start();
    let said = |method: &str, path: &str| {
        let answer = server.request(method, path, &[], b"");
        faultless(&answer.body, Kind::MessageError);
        (answer.status, answer.json()["payload"]["error_code"].clone(), answer)
    };
    for (method, path) in [
        ("GET", ENDPOINT),
        ("PUT", ENDPOINT),
        ("DELETE", "/api/agent/register"),
        ("GET", "/api/agent/register"),
        ("POST", "/api/agent/messages"),
    ] {
        let (status, code, answer) = said(method, path);
        assert_eq!((status, code), (405, json!(5003)), "{method} {path}");
        assert!(answer.header("allow").is_some(), "{answer:?}");
    }
    for path in ["/api/agent", "/api/agent/", "/api/agent/nothing", "/api/agent/message/more"] {
        assert_eq!(said("GET", path).0, 404, "{path}");
    }
    for query in ["wait=soon", "wait=-1", "weight=3", "wait=100000000"] {
        let said = server.message(&format!("?{query}"), &[], PRINTED);
        assert_eq!((said.status, said.code()), (400, Some(5003)), "{query}: {:?}", said.answer);
        assert_eq!(said.document["request_id"], printed()["request_id"], "{query}");
    }
    for query in ["", "?agent=", "?agent=a&max=0", "?agent=a&max=1001", "?agent=a&wait=x", "?agent=a&more=1"] {
        assert_eq!(said("GET", &format!("/api/agent/messages{query}")).0, 400, "{query}");
    }
    assert_eq!(said("GET", "/api/agent/messages?agent=missing").0, 404);
    let key = server.message("", &[("idempotency-key", "é")], PRINTED);
    assert_eq!((key.status, &key.context()["clause"]), (400, &json!("ALL-1")), "{:?}", key.answer);
    assert_eq!(server.job_count(), 0);
}

/// Every broken request of the message contract in the corpus.
fn broken() -> Vec<Vec<u8>> {
    let directory = fs::read_dir(root().join("testdata/broken/message")).expect("it is there");
    let documents = directory.map(|entry| fs::read(entry.expect("an entry").path()).expect("it can be read"));
    let is_request = |document: &Vec<u8>| {
        serde_json::from_slice::<Value>(document).is_ok_and(|value| value["type"] == "work_request")
    };
    documents.filter(is_request).collect()
}

#[test]
fn a_flood_of_broken_messages_is_refused_one_by_one_and_others_are_served() {
    let server = Server::configured(&sample("echo", "good", ""));
    let broken = broken();
    assert!(broken.len() > 10, "{}", broken.len());
    thread::scope(|scope| {
        for flood in 0..2 {
            let (server, broken) = (&server, &broken);
            scope.spawn(move || {
                for document in broken {
                    // Every other document is cut off.
                    let end = if flood == 0 { document.len() } else { document.len() * 2 / 3 };
                    let answer = server.request("POST", ENDPOINT, &[], &document[..end]);
                    faultless(&answer.body, Kind::MessageError);
                    // A clause that is a warning breaks nothing, but no agent takes this work.
                    assert_eq!(answer.status, 400, "{answer:?}");
                }
            });
        }
        for n in 0..20 {
            let said = server.outcome_of(&asking("good", &json!({"n": n})));
            assert_eq!(said.payload()["output"], format!("{{\"n\":{n}}}"));
        }
    });
    assert_eq!(server.job_count(), 20);
}
