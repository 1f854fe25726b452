//! What agents of the run contract answer, and what it leads to: every status and body, every shape of a stream.

use serde_json::{Value, json};

use crate::run::agent::{clauses, failure, id, serving};
use crate::support::run_agent::held_streams;
use crate::support::scripted_agent::{Request, ScriptedAgent, event};
use crate::support::server::{Server, until};

#[test]
fn two_megabytes_come_through_as_they_are() {
    let text: String = "ä\n\"\u{1F600}".repeat(200_000);
    let given = json!({"text": text});
    let (_service, server) = serving("", move |asked| asked.stream(given.clone()));
    let job = server.done("far", &json!({}));
    assert!(job["outcome"]["outputs"]["text"] == json!(text), "it is another text");
}

#[test]
fn more_than_it_may_say_is_no_use_to_repeat() {
    let service = ScriptedAgent::start(|asked, connection| match asked.path.as_str() {
        "/small/agents/run/stream" => connection.json(404, &json!({})),
        "/small/agents/run/sync" => connection.json(200, &asked.response(json!({"text": "x".repeat(5_000)}))),
        _ => connection.events(asked.stream(json!({"text": "x".repeat(5_000)}))),
    });
    let other = service.far("output_bytes = 4096").replace("far", "sync").replace("\"\nout", "/small\"\nout");
    let server = Server::configured(&(service.far("output_bytes = 4096") + &other));
    for work in ["far", "sync"] {
        let job = server.done(work, &json!({}));
        assert_eq!(failure(&job), ("resource_limit", "never"), "{job}");
        assert_eq!(clauses(&job), ["ALL-145"]);
    }
    assert!(service.paths().contains(&"/small/agents/run/sync".to_owned()));
}

/// What a status and a body lead to: code, repeat, clauses.
type Row = (u16, fn(&Request) -> Value, Result<(), (&'static str, &'static str)>, &'static [&'static str]);

fn failed(asked: &Request, code: &str) -> Value {
    json!({"request_id": asked.id(), "status": "error", "ok": false, "outputs": {}, "artifacts": [], "provenance": {},
        "usage": {}, "warnings": [], "error": {"code": code, "message": "no"}})
}

const ROWS: &[Row] = &[
    (400, |asked| failed(asked, "UNSUPPORTED_TASK_TYPE"), Err(("unsupported", "never")), &[]),
    (400, |asked| failed(asked, "VALIDATION_ERROR"), Err(("invalid", "never")), &[]),
    (400, |asked| failed(asked, "OWN"), Err(("agent_failed", "never")), &[]),
    (400, |asked| failed(asked, "TASK_FAILED"), Err(("agent_failed", "never")), &[]),
    (
        400,
        |asked| json!({"request_id": asked.id(), "ok": false, "outputs": {}}),
        Err(("invalid", "never")),
        &["RUN-3.9"],
    ),
    (422, |_| json!({"detail": []}), Err(("invalid", "never")), &[]),
    (401, |_| json!({}), Err(("unavailable", "never")), &[]),
    (403, |asked| failed(asked, "FORBIDDEN"), Err(("unavailable", "never")), &[]),
    (400, |asked| failed(asked, "UNAUTHENTICATED"), Err(("unavailable", "never")), &[]),
    (200, |asked| asked.response(json!({})), Ok(()), &["RUN-122"]),
    (408, |_| json!({}), Err(("unavailable", "unknown")), &[]),
    (429, |_| json!({}), Err(("resource_limit", "safe")), &[]),
    (503, |_| json!({}), Err(("unavailable", "safe")), &[]),
    (503, |asked| failed(asked, "TASK_FAILED"), Err(("agent_failed", "never")), &[]),
    (503, |asked| asked.response(json!({})), Ok(()), &["RUN-5.3"]),
    (500, |asked| asked.response(json!({})), Ok(()), &["RUN-5.3"]),
    (500, |asked| failed(asked, "TASK_FAILED"), Err(("agent_failed", "never")), &["RUN-5.3"]),
    (500, |_| json!("Internal Server Error"), Err(("agent_failed", "never")), &[]),
    (200, |asked| asked.response(json!({})), Ok(()), &["RUN-122"]),
    (200, |asked| failed(asked, "TIMEOUT"), Err(("timeout", "unknown")), &["RUN-122"]),
    (200, |asked| json!({"request_id": asked.id(), "success": true, "data": {}}), Ok(()), &["RUN-122", "RUN-3.7"]),
    (
        200,
        |_| json!({"request_id": "another", "status": "ok", "outputs": {}}),
        Err(("broken_contract", "unknown")),
        &["RUN-122", "RUN-9"],
    ),
    (
        200,
        |asked| json!({"request_id": asked.id(), "status": "ok"}),
        Err(("broken_contract", "unknown")),
        &["RUN-122", "RUN-3.2"],
    ),
    (204, |_| Value::Null, Err(("broken_contract", "unknown")), &["RUN-122", "ALL-101"]),
    (302, |_| json!({}), Err(("broken_contract", "unknown")), &["RUN-102", "RUN-103", "RUN-3.2"]),
];

#[test]
fn every_status_and_body_has_one_meaning() {
    let service = ScriptedAgent::start(|asked, connection| {
        let row = asked.json()["inputs"]["row"].as_u64().expect("a row") as usize;
        let (status, body, ..) = ROWS[row];
        connection.json(status, &body(asked))
    });
    let server = Server::configured(&service.far(""));
    for (row, (status, _, expected, rules)) in ROWS.iter().enumerate() {
        let job = server.done("far", &json!({"row": row}));
        // Five unavailable answers in a row would open the breaker, and there are fewer.
        match expected {
            Ok(()) => assert_eq!(job["state"], "completed", "{row} {status}: {job}"),
            Err(expected) => assert_eq!(failure(&job), *expected, "{row} {status}: {job}"),
        }
        let mut found = clauses(&job);
        let mut rules = rules.to_vec();
        found.sort_unstable();
        rules.sort_unstable();
        assert_eq!(found, rules, "{row} {status}: {job}");
    }
}

#[test]
fn the_first_good_terminal_event_counts_and_the_rest_is_on_record() {
    let (_service, server) = serving("", |asked| {
        let lacking = event("final", &json!({"status": "ok"}));
        let late = event("progress", &json!({"percent": 1})) + &event("done", &asked.response(json!({"n": 2})));
        asked.started() + &lacking + &event("complete", &asked.response(json!({"n": 1}))) + &late
    });
    let id = id(&server.submit(r#"{"work":"far"}"#));
    assert_eq!(server.ended(&id)["outcome"]["outputs"], json!({"n": 1}));
    let job = until("it is on record", || Some(server.job(&id)).filter(|job| clauses(job).contains(&"RUN-6.2")));
    for clause in ["RUN-106", "RUN-107", "RUN-109"] {
        assert!(clauses(&job).contains(&clause), "{job}");
    }
}

#[test]
fn what_comes_long_after_the_outcome_is_on_record_and_the_stream_is_left() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far(""));
    let id = server.begin("far");
    let call = calls.next();
    call.say(call.request.stream(json!({"n": 1})));
    assert_eq!(server.ended(&id)["outcome"]["outputs"], json!({"n": 1}));
    call.say(event("final", &call.request.response(json!({"n": 2}))));
    until("it is on record", || clauses(&server.job(&id)).contains(&"RUN-6.2").then_some(()));
    call.closed();
    until("that it was not closed, too", || clauses(&server.job(&id)).contains(&"RUN-6.3").then_some(()));
    assert_eq!(server.job(&id)["outcome"]["outputs"], json!({"n": 1}));
}

#[test]
fn a_stream_without_an_outcome_is_a_broken_contract() {
    let (_service, server) = serving("", |asked| {
        asked.started()
            + &event("final", &json!({"request_id": "another", "task_type": "far", "status": "ok", "outputs": {}}))
    });
    let job = server.done("far", &json!({}));
    assert_eq!(failure(&job), ("broken_contract", "unknown"), "{job}");
    assert_eq!(clauses(&job), ["RUN-9", "RUN-7"]);
}

#[test]
fn the_result_of_an_agent_that_dies_in_mid_stream_is_unknown() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far(""));
    let id = server.begin("far");
    let call = calls.next();
    call.say(call.request.started() + &event("progress", &json!({"percent": 1})));
    until("it has begun", || Some(server.job(&id)).filter(|job| job["progress"]["percent"] == 1.0));
    call.die();
    let job = server.ended(&id);
    assert_eq!(failure(&job), ("unavailable", "unknown"), "{job}");
    assert_eq!(clauses(&server.job(&id)), ["RUN-7"]);
}

#[test]
fn a_last_event_without_its_empty_line_is_the_outcome_all_the_same() {
    let (_service, server) = serving("", |asked| asked.stream(json!({"n": 1})).trim_end().to_owned());
    let job = server.done("far", &json!({}));
    assert_eq!((&job["outcome"]["outputs"], clauses(&job)), (&json!({"n": 1}), vec!["RUN-8.3"]), "{job}");
}

#[test]
fn events_of_another_content_type_are_events() {
    let service =
        ScriptedAgent::start(|asked, connection| connection.whole(200, "text/plain", asked.stream(json!({}))));
    let server = Server::configured(&service.far(""));
    let job = server.done("far", &json!({}));
    assert_eq!((&job["state"], clauses(&job)), (&json!("completed"), vec!["RUN-122"]), "{job}");
}
