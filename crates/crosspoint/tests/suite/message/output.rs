//! What agents print that does not fit together, or is too much (MSG-9): the agent is told, it is on record, and the
//! outcome stands.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::message_post::{Posted, result, status};
use crate::support::misbehaving_agents::clauses;
use crate::support::server::Server;

/// A status with a chunk of output.
fn chunk(request: &Value, output: &str, place: &str) -> Value {
    let mut message = status(request, 50);
    message["payload"]["step"]["output"] = json!(output);
    message["payload"]["step"]["output_chunk"] = json!(place);
    message
}

/// The code of an error to an agent, and the request that it is about.
fn told(error: &Value) -> (&Value, &Value, &Value) {
    (&error["type"], &error["payload"]["error_code"], &error["request_id"])
}

#[test]
fn a_chunk_that_does_not_fit_is_refused_and_the_work_goes_on() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.takes(&chunk(&request, "abcde", "bytes 0-5 of 10"));
    for (output, place) in [
        ("abc", "bytes 5-10 of 10"),   // a length that is not END-START
        ("fghij", "bytes 5-10 of 12"), // a total that changes
        ("other", "bytes 0-5 of 10"),  // an overlap that differs
    ] {
        let answer = server.hears(&chunk(&request, output, place));
        assert_eq!(answer.status, 400, "{place}: {answer:?}");
        assert_eq!(told(&answer.json()), (&json!("error"), &json!(5003), &json!(id)), "{answer:?}");
    }
    server.takes(&chunk(&request, "fghij", "bytes 5-10 of 10"));
    server.takes(&result(&request, "done"));
    let job = server.job(&id);
    assert_eq!(job["state"], "completed", "{job:#}");
    assert_eq!(clauses(&job), ["MSG-9.3", "MSG-9.4"], "{job:#}");
}

#[test]
fn more_output_than_is_taken_is_refused_as_a_limit() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let body = json!({"work": "helper", "limits": {"output_bytes": 8}}).to_string();
    let id = server.submit(&body)["id"].as_str().expect("an id").to_owned();
    let request = agent.request(1);
    let answer = server.hears(&chunk(&request, "abcdefghij", "bytes 0-10 of 10"));
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(told(&answer.json()), (&json!("error"), &json!(5005), &json!(id)), "{answer:?}");
    let context = answer.json()["payload"]["error_context"].clone();
    let told = (&context["limit_name"], &context["available"], &context["required"]);
    assert_eq!(told, (&json!("output_bytes"), &json!(8), &json!(10)), "{answer:?}");
    server.takes(&result(&request, "done"));
    assert_eq!(clauses(&server.job(&id)), ["MSG-9.5"]);
}

#[test]
fn a_gap_that_shows_with_the_result_is_told_and_the_result_counts_once() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.takes(&chunk(&request, "abcde", "bytes 0-5 of 30"));
    let answer = server.hears(&result(&request, "the end"));
    assert_eq!(answer.status, 200, "it must not be sent again: {answer:?}");
    assert_eq!(told(&answer.json()), (&json!("error"), &json!(5003), &json!(id)), "{answer:?}");
    let job = server.job(&id);
    assert_eq!(job["state"], "completed", "{job:#}");
    assert_eq!(clauses(&job), ["MSG-9.4"], "{job:#}");
    assert!(job["outcome"]["outputs"]["truncated"].is_object(), "its text is not whole: {job:#}");
}

#[test]
fn a_chunk_in_the_answer_to_a_push_that_does_not_fit_is_told_by_another_message() {
    let agent = Posted::saying(|request| match request["type"].as_str() {
        Some("work_request") => chunk(request, "abc", "bytes 0-5 of 10"),
        Some(_) | None => json!({}),
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let error = agent.cancelled(1);
    assert_eq!(told(&error), (&json!("error"), &json!(5003), &json!(id)), "{error:#}");
    server.takes(&result(&agent.request(1), "done"));
    assert_eq!(clauses(&server.job(&id))[0], "MSG-9.3");
}

#[test]
fn more_plain_output_than_is_taken_is_refused_and_the_result_counts() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let body = json!({"work": "helper", "limits": {"output_bytes": 8}}).to_string();
    let id = server.submit(&body)["id"].as_str().expect("an id").to_owned();
    let request = agent.request(1);
    let printed = |output: &str, percent| {
        let mut message = status(&request, percent);
        message["payload"]["step"]["output"] = json!(output);
        message
    };
    server.takes(&printed("12345\n", 10));
    let answer = server.hears(&printed("67890\n", 20));
    assert_eq!((answer.status, &answer.json()["payload"]["error_code"]), (429, &json!(5005)), "{answer:?}");
    server.takes(&result(&request, "done"));
    let job = server.job(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["state"]), (&json!("done"), &json!("completed")), "{job:#}");
    assert_eq!(clauses(&job), ["MSG-9.5"]);
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}/output")).text(), "12345\n");
}

/// MSG-6.4: agents repeat themselves, with new ids and times. That is life, and no news.
#[test]
fn a_status_that_is_repeated_is_no_new_progress() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    let printed = |output: &str, place: &str| {
        let mut message = chunk(&request, output, place);
        message["payload"]["step"]["name"] = json!("output");
        message["payload"]["progress_percent"] = json!(0);
        message
    };
    server.takes(&printed("a\n", "bytes 0-2"));
    // Progress is shown ten times a second at most: repeats within that time would prove nothing.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) {
        server.takes(&status(&request, 50));
        server.takes(&printed("b\n", "bytes 2-4"));
    }
    let job = server.job(&id);
    let shown = (&job["progress"]["percent"], &job["progress"]["step"]);
    assert_eq!(shown, (&json!(50), &status(&request, 50)["payload"]["step"]["name"]), "{job:#}");
    server.takes(&status(&request, 60));
    server.takes(&result(&request, "done"));
    let events = server.get(&format!("/api/v1/jobs/{id}/events?follow=false")).text();
    assert_eq!(events.matches("event: progress").count(), 2, "{events}");
}
