//! The run door refuses in its own contract: one shape for every mistake, with the code, the clause and what to do.

use std::io::{BufReader, Write};

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::run_caller::{STREAM, SYNC, faultless, request};
use crate::support::server::{Answer, Server, head, until};

struct Refused {
    status: u16,
    code: &'static str,
    repeat: &'static str,
    clause: Option<&'static str>,
    at: Option<&'static str>,
    /// The id of the request, if it can be read.
    request_id: Option<&'static str>,
}

const INVALID: Refused =
    Refused { status: 400, code: "VALIDATION_ERROR", repeat: "never", clause: None, at: None, request_id: None };

#[track_caller]
fn held(answer: &Answer, refused: &Refused) -> Value {
    let document = answer.json();
    assert_eq!(answer.status, refused.status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "a refusal is no stream");
    faultless(&answer.body, Kind::RunResponse);
    assert_eq!((&document["status"], &document["ok"]), (&json!("error"), &json!(false)), "{document}");
    assert_eq!(document["outputs"], json!({}));
    let (error, details) = (&document["error"], &document["error"]["details"]);
    assert_eq!((&error["code"], &details["repeat"]), (&json!(refused.code), &json!(refused.repeat)), "{document}");
    assert!(error["message"].is_string() && details["hint"].is_string(), "{document}");
    assert_eq!(details["clause"].as_str(), refused.clause, "{document}");
    assert_eq!(details["at"].as_str(), refused.at, "{document}");
    // RUN-5.4: if the id could not be read, one is made up, and the answer says so.
    let id = document["request_id"].as_str().expect("there is one");
    let warnings = document["warnings"].to_string();
    match refused.request_id {
        Some(request_id) => assert_eq!((id, warnings.as_str()), (request_id, "[]")),
        None => assert!(id.len() == 36 && warnings.contains("request_id was generated"), "{document}"),
    }
    if [429, 503].contains(&answer.status) {
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    document
}

/// Requests with one mistake each, and how each is refused.
fn mistakes(long_stage: &str) -> Vec<(&str, Refused)> {
    let read = Some("r");
    vec![
        ("", Refused { clause: Some("ALL-101"), at: Some(""), ..INVALID }),
        ("what is this", Refused { clause: Some("ALL-101"), at: Some(""), ..INVALID }),
        (
            r#"{"request_id":"r","task_type":"echo""#,
            Refused { clause: Some("ALL-101"), at: Some(""), request_id: read, ..INVALID },
        ),
        ("[]", Refused { clause: Some("ALL-108"), at: Some(""), ..INVALID }),
        ("{}", Refused { clause: Some("RUN-2"), at: Some("/request_id"), ..INVALID }),
        (r#"{"task_type":"echo"}"#, Refused { clause: Some("RUN-2"), at: Some("/request_id"), ..INVALID }),
        (
            r#"{"request_id":"","task_type":"echo"}"#,
            Refused { clause: Some("RUN-2"), at: Some("/request_id"), ..INVALID },
        ),
        (
            r#"{"request_id":7,"task_type":"echo"}"#,
            Refused { clause: Some("RUN-2"), at: Some("/request_id"), ..INVALID },
        ),
        (
            r#"{"request_id":"r"}"#,
            Refused { clause: Some("RUN-2"), at: Some("/task_type"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":null}"#,
            Refused { clause: Some("RUN-2"), at: Some("/task_type"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":"echo","inputs":[]}"#,
            Refused { clause: Some("RUN-2.2"), at: Some("/inputs"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":"echo","inputs":"x"}"#,
            Refused { clause: Some("RUN-2.2"), at: Some("/inputs"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":"echo","budgets":{"timeout_ms":"60"}}"#,
            Refused { clause: Some("RUN-2.2"), at: Some("/budgets/timeout_ms"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":"echo","budgets":"60"}"#,
            Refused { clause: Some("RUN-2.2"), at: Some("/budgets"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":"echo","inputs":{"a":1,"a":2}}"#,
            Refused { clause: Some("ALL-103"), at: Some("/inputs/a"), request_id: read, ..INVALID },
        ),
        (
            r#"{"request_id":"r","task_type":"nobody"}"#,
            Refused {
                code: "UNSUPPORTED_TASK_TYPE",
                clause: Some("RUN-5"),
                at: Some("/task_type"),
                request_id: read,
                ..INVALID
            },
        ),
        (long_stage, Refused { at: Some("/stage_id"), request_id: read, ..INVALID }),
    ]
}

#[test]
fn every_mistake_is_refused_in_the_shape_of_the_contract() {
    let long = "x".repeat(513);
    let (long_id, long_stage) =
        (request(&long, "echo", &json!({})), format!(r#"{{"request_id":"r","task_type":"echo","stage_id":"{long}"}}"#));
    let read = Some("r");
    let cases = mistakes(&long_stage);
    let server = Server::start();
    for path in [SYNC, STREAM] {
        for (body, refused) in &cases {
            held(&server.post(path, body), refused);
        }
        let answer = server.post(path, &long_id);
        assert_eq!(
            (answer.status, &answer.json()["request_id"]),
            (400, &json!(long)),
            "it can be read, and is too long"
        );
        assert_eq!(answer.json()["error"]["details"]["at"], "/request_id");
        let bytes = server.request("POST", path, &[], b"{\"request_id\":\"r\",\"task_type\":\"\xff\"}");
        held(&bytes, &Refused { clause: Some("ALL-102"), at: Some(""), request_id: read, ..INVALID });
    }
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "nothing of it became a job");
}

#[test]
fn a_target_that_does_not_take_it_is_told_by_its_place_in_the_request() {
    let server = Server::start();
    let body = r#"{"request_id":"r","task_type":"echo","x_crosspoint":{"from":"task.request","target":"ask","filled":{"run":{}}}}"#;
    let (code, at) = ("UNSUPPORTED_TASK_TYPE", Some("/x_crosspoint/target"));
    let refused = Refused { code, clause: Some("ALL-6"), at, request_id: Some("r"), ..INVALID };
    let document = held(&server.post(SYNC, body), &refused);
    let hint = document["error"]["details"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("x_crosspoint.target") && !hint.contains("`agent`"), "{hint}");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let server = Server::start();
    let answer = server.post(SYNC, r#"{"request_id":"r","task_type":3,"inputs":[],"budgets":7,"mode":3}"#);
    let document =
        held(&answer, &Refused { clause: Some("RUN-2"), at: Some("/task_type"), request_id: Some("r"), ..INVALID });
    let findings = document["error"]["details"]["findings"].as_array().expect("a list").clone();
    let found: Vec<_> = findings.iter().map(|one| (one["clause"].as_str(), one["pointer"].as_str())).collect();
    let wanted = [("RUN-2", "/task_type"), ("RUN-2.2", "/inputs"), ("RUN-2.2", "/budgets")];
    assert_eq!(found, wanted.map(|(clause, pointer)| (Some(clause), Some(pointer))));
}

#[test]
fn of_ten_thousand_mistakes_or_warnings_a_few_are_told() {
    let server = Server::start();
    let many = |value: &str| {
        let members: Vec<String> = (0..10_000).map(|n| format!(r#""m{n}":{value}"#)).collect();
        format!(r#"{{"request_id":"r","task_type":"echo","inputs":{{{}}}}}"#, members.join(","))
    };
    let answer = server.post(SYNC, &many(r#"{"a":1,"a":2}"#));
    let document =
        held(&answer, &Refused { clause: Some("ALL-103"), at: Some("/inputs/m0/a"), request_id: Some("r"), ..INVALID });
    assert_eq!(document["error"]["details"]["findings"].as_array().map(Vec::len), Some(50));
    let message = document["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("(one of 10000 errors)"), "{message}");
    // Not every reader of JSON accepts the answer, so it is not checked against the description.
    let loose = many("1e999");
    let mut stream = server.connect();
    stream.write_all((head("POST", SYNC, &[], loose.len()) + &loose).as_bytes()).expect("it can be sent");
    let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
    let count = answer.text().matches("ALL-105: ").count();
    assert_eq!((answer.status, count), (200, 20));
}

#[test]
fn a_body_that_breaks_off_is_told_in_words_of_bodies() {
    let server = Server::start();
    for body in ["", r#"{"request_id":"r"#, r#"{"request_id":"r","#, r#"{"a":["#, r#"{} {}"#, "{\"a\":1,}"] {
        let details = server.post(SYNC, body).json()["error"]["details"].clone();
        let hint = details["hint"].as_str().expect("a hint").to_lowercase();
        assert!(!hint.contains("file") && !hint.contains("rename"), "{body}: {hint}");
        assert_eq!(details["clause"], "ALL-101");
    }
}

#[test]
fn a_key_that_cannot_be_used_is_refused() {
    let server = Server::start();
    let body = request("r", "echo", &json!({}));
    let answer = server.request("POST", SYNC, &[("idempotency-key", "\u{e9}")], body.as_bytes());
    held(&answer, &Refused { clause: Some("ALL-1"), request_id: Some("r"), ..INVALID });
    // A trace that cannot be read is ignored.
    assert_eq!(server.request("POST", SYNC, &[("traceparent", "nonsense")], body.as_bytes()).status, 200);
}

#[test]
fn another_method_and_another_path_are_refused_in_the_same_shape() {
    let server = Server::start();
    for path in [SYNC, STREAM] {
        for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let answer = server.request(method, path, &[], b"");
            assert_eq!(answer.header("allow"), Some("POST"));
            held(&answer, &Refused { status: 405, clause: Some("RUN-121"), ..INVALID });
        }
    }
    for path in ["/agents/run", "/agents/run/", "/agents/run/other"] {
        held(&server.post(path, "{}"), &Refused { status: 404, ..INVALID });
    }
    let elsewhere = server.post("/agents/runner", "{}");
    assert_eq!((elsewhere.status, &elsewhere.json()["error"]["code"]), (404, &json!("invalid")));
}

#[test]
fn too_much_and_too_slow_are_refused_in_the_same_shape() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\nbody_seconds = 1\njobs = 1\n");
    for path in [SYNC, STREAM] {
        let large = request("r", "echo", &json!({"text": "x".repeat(3000)}));
        held(&server.post(path, &large), &Refused { status: 413, ..INVALID });
        let mut slow = server.connect();
        slow.write_all((head("POST", path, &[], 100) + "{").as_bytes()).expect("it can be sent");
        let answer = Answer::read(&mut BufReader::new(slow)).expect("it is answered");
        held(&answer, &Refused { status: 408, code: "TIMEOUT", repeat: "safe", ..INVALID });
    }
    let ask = server.begin("ask");
    for path in [SYNC, STREAM] {
        let answer = server.post(path, &request("r", "echo", &json!({})));
        let limit = Refused { status: 429, code: "RESOURCE_LIMIT", repeat: "safe", request_id: Some("r"), ..INVALID };
        held(&answer, &limit);
    }
    server.cancel(&ask);
    assert_eq!(server.run_sync(&request("r", "echo", &json!({}))).status, 200, "nothing of it was done");
}

#[test]
fn a_store_that_is_full_is_told_in_the_same_shape() {
    // A run that just found room may have none for its outcome, and then its caller waits.
    let server = Server::configured("[server]\nsync_wait_seconds = 1\n[limits]\nstore_bytes = 1000000\n");
    let answer = until("it is full", || {
        let number = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is later").as_nanos().to_string();
        let answer = server.post(SYNC, &request(&number, "echo", &json!({"text": "x".repeat(100_000)})));
        (answer.status == 503).then_some((number, answer))
    });
    let (number, answer) = answer;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
    faultless(&answer.body, Kind::RunResponse);
    let document = answer.json();
    assert_eq!((&document["request_id"], &document["error"]["code"]), (&json!(number), &json!("AGENT_UNAVAILABLE")));
    assert_eq!(document["error"]["details"]["repeat"], "safe");
}
