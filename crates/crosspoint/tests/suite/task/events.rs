//! The events of a task: its present state, each change, and the end.

use std::io::{BufRead, BufReader, Read, Write};

use serde_json::json;

use crate::support::server::{Answer, Server, chunk, head};
use crate::support::task_caller::{events, request};
use crate::task::door::ONE;

/// Begins to follow, and returns the stream after its head.
fn follow(server: &Server, path: &str) -> BufReader<std::net::TcpStream> {
    let mut stream = server.connect();
    stream.write_all(head("GET", path, &[], 0).as_bytes()).expect("it can be sent");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("it is answered");
    }
    reader
}

/// The next event; `None` at the end of the stream.
fn next(stream: &mut BufReader<std::net::TcpStream>) -> Option<(u32, String, serde_json::Value)> {
    let bytes = chunk(stream).expect("the stream is whole")?;
    Some(events(&String::from_utf8(bytes).expect("it is UTF-8")).remove(0))
}

#[test]
fn every_change_is_told_and_the_last_event_is_the_end() {
    let server = Server::configured(ONE);
    server.post("/api/v1/agents/one/drain", "");
    server.submit_task("", &request("t", "w", &json!({"seconds": 1.5})));
    let mut stream = follow(&server, "/tasks/t/events");
    assert_eq!(next(&mut stream).expect("as it stands").1, "pending");
    server.post("/api/v1/agents/one/drain", r#"{"drained":false}"#);
    let mut all = Vec::new();
    while let Some(event) = next(&mut stream) {
        all.push(event);
    }
    let names: Vec<&str> = all.iter().map(|(_, name, _)| name.as_str()).collect();
    let (last, before) = names.split_last().expect("there are events");
    assert_eq!(*last, "completed");
    assert!(!before.is_empty() && before.iter().all(|name| *name == "in_progress"), "{names:?}");
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "their numbers grow");
    let percents: Vec<f64> =
        all.iter().filter_map(|(.., task)| task["metadata"]["x_crosspoint"]["percent"].as_f64()).collect();
    assert!(!percents.is_empty() && percents.is_sorted(), "{percents:?}");
    let steps = all.iter().filter(|(.., task)| task["metadata"]["x_crosspoint"]["step"].is_string());
    assert!(steps.count() > 0);
    assert!(all.windows(2).all(|pair| pair[0].2 != pair[1].2), "nothing is told twice");
    let (_, _, end) = all.last().expect("an end");
    assert_eq!(end["result"], json!({"seconds": 1.5}));
    assert_eq!(*end, server.poll("t").document);
}

#[test]
fn a_caller_that_comes_back_goes_on_where_it_was() {
    let server = Server::start();
    server.submit_task("?wait=60", &request("t", "ask", &json!({"prompt": "?"})));
    let mut stream = follow(&server, "/tasks/t/events");
    let (number, name, task) = next(&mut stream).expect("as it stands");
    assert_eq!((name.as_str(), &task["inputRequest"]["prompt"]), ("input_required", &json!("?")));
    drop(stream);
    // Nothing has happened since, so the first event is the next thing that happens.
    let mut stream = follow(&server, &format!("/tasks/t/events?after={number}"));
    server.task("POST", "/tasks/t/input?wait=60", &[], r#"{"input":"yes"}"#);
    let mut names = Vec::new();
    while let Some((later, name, _)) = next(&mut stream) {
        assert!(later > number);
        names.push(name);
    }
    assert_eq!(names.last().map(String::as_str), Some("completed"), "{names:?}");
    assert!(!names.contains(&"input_required".to_owned()), "{names:?}");
    let whole = server.get("/tasks/t/events").text();
    let [(end, name, _)] = &events(&whole)[..] else { panic!("of what has ended there is one event: {whole}") };
    assert_eq!(name, "completed");
    let last = end.to_string();
    let nothing = server.request("GET", "/tasks/t/events", &[("last-event-id", &last)], b"");
    assert_eq!((nothing.status, nothing.text().as_str()), (200, ""));
    let wrong = server.task("GET", "/tasks/t/events", &[("last-event-id", "x")], "");
    assert_eq!((wrong.status, &wrong.document["id"]), (400, &json!("t")));
    let unknown = server.task("GET", "/tasks/nothing/events", &[], "");
    assert_eq!((unknown.status, &unknown.document["error"]["details"]["field"]), (404, &json!("id")));
}

#[test]
fn a_look_without_following_ends_with_the_task_as_it_stands() {
    let server = Server::start();
    server.submit_task("", &request("t", "slow_echo", &json!({"seconds": 600})));
    let look = events(&server.get("/tasks/t/events?follow=false").text());
    assert_eq!(look.len(), 1);
    server.task("POST", "/tasks/t/cancel", &[], "");
    let look = events(&server.get("/tasks/t/events?follow=false").text());
    assert_eq!(look[0].1, "cancelled");
}

#[test]
fn when_the_server_stops_streams_and_waits_end_and_the_task_goes_on() {
    let mut server = Server::start();
    server.submit_task("?wait=60", &request("t", "ask", &json!({})));
    server.submit_task("", &request("s", "slow_echo", &json!({"seconds": 600})));
    let mut stream = follow(&server, "/tasks/t/events");
    assert_eq!(next(&mut stream).expect("as it stands").1, "input_required");
    let mut waiting = server.connect();
    waiting.write_all(head("GET", "/tasks/s?wait=300", &[], 0).as_bytes()).expect("it can be sent");
    // The wait may not have begun yet, which makes no difference to the result.
    server.signal("TERM");
    assert!(next(&mut stream).is_none(), "no end is told of what has not ended");
    let answer = Answer::read(&mut BufReader::new(waiting)).expect("it is answered");
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("in_progress")));
    let refused = server.task("POST", "/tasks", &[], &request("late", "echo", &json!({})));
    assert_eq!((refused.status, &refused.document["error"]["code"]), (503, &json!("AGENT_UNAVAILABLE")));
    assert_eq!(
        (&refused.document["id"], &refused.document["error"]["details"]["repeat"]),
        (&json!("late"), &json!("safe"))
    );
    server.signal("TERM");
    server.wait();
    server.restart();
    assert_eq!(server.settled("t").word(), "input_required");
}

#[test]
fn a_request_for_the_head_alone_gets_no_events() {
    let server = Server::start();
    server.submit_task("?wait=60", &request("t", "echo", &json!({})));
    let job = server.job_of_task("t")["id"].as_str().expect("an id").to_owned();
    for path in ["/tasks/t/events".to_owned(), format!("/api/v1/jobs/{job}/events")] {
        let mut stream = server.connect();
        stream.write_all(head("HEAD", &path, &[], 0).as_bytes()).expect("it can be sent");
        let mut answer = String::new();
        BufReader::new(stream).read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/event-stream"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }
}
