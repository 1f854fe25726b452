//! A caller with a backlog neither shuts the others out nor makes them wait for the end of it.

use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::support::programs::bash;
use crate::support::server::{Answer, Server, head, until};
use crate::support::tokens::{self, with};

#[test]
fn the_backlog_of_a_caller_does_not_hold_up_the_job_of_another() {
    // A job ends when it takes the file `go`, so that each step is the test's.
    let server =
        Server::configured(&bash("slow", "until rm go 2>/dev/null; do sleep 0.01; done; echo '{}'", "concurrency = 1"));
    let go = || {
        fs::write(server.directory().join("go"), "").expect("it can be written");
        until("a job takes it", || (!server.directory().join("go").exists()).then_some(()));
    };
    let admin = tokens::closed(&server);
    let (busy, calm) = (tokens::caller(&server, &admin, "busy"), tokens::caller(&server, &admin, "calm"));
    let sent = |token: &str, priority: &str| {
        let body = json!({"work": "slow", "priority": priority}).to_string();
        let job = with(&server, Some(token), "POST", "/api/v1/jobs", &body).json();
        format!("/api/v1/jobs/{}", job["id"].as_str().expect("an id"))
    };
    let backlog: Vec<String> = (0..100).map(|_| sent(&busy, "urgent")).collect();
    let patient = sent(&calm, "low");
    let ended = |path: &str, token: &str| with(&server, Some(token), "GET", &format!("{path}?wait=60"), "").json();
    go();
    assert_eq!(ended(&backlog[0], &busy)["state"], "completed");
    go();
    assert_eq!(ended(&patient, &calm)["state"], "completed", "it is the second that is done");
}

#[test]
fn a_caller_that_has_its_share_is_refused_and_the_others_are_not() {
    let server = Server::configured("[limits]\njobs = 100\njobs_per_work = 6\njobs_per_caller = 3\n");
    let admin = tokens::closed(&server);
    let (busy, calm) = (tokens::caller(&server, &admin, "busy"), tokens::caller(&server, &admin, "calm"));
    let ask = json!({"work": "ask"}).to_string();
    for _ in 0..3 {
        assert_eq!(with(&server, Some(&busy), "POST", "/api/v1/jobs", &ask).status, 202);
    }
    let refused = with(&server, Some(&busy), "POST", "/api/v1/jobs", &ask);
    let hint = refused.json()["error"]["hint"].to_string();
    assert!(refused.status == 429 && hint.contains("[limits] jobs_per_caller"), "{refused:?}");
    assert_eq!(with(&server, Some(&calm), "POST", "/api/v1/jobs", &ask).status, 202);
}

#[test]
fn a_caller_cannot_fill_the_room_of_a_work_that_has_little() {
    let server = Server::configured("[limits]\njobs_per_work = 6\n");
    let admin = tokens::closed(&server);
    let (busy, calm) = (tokens::caller(&server, &admin, "busy"), tokens::caller(&server, &admin, "calm"));
    let ask = json!({"work": "ask"}).to_string();
    let sent = |token: &str| with(&server, Some(token), "POST", "/api/v1/jobs", &ask).status;
    assert_eq!([sent(&busy), sent(&busy), sent(&busy), sent(&busy)], [202, 202, 202, 429]);
    assert_eq!(sent(&calm), 202);
}

/// How many bodies were refused for lack of room.
fn bodies_refused(server: &Server, admin: &str) -> usize {
    let text = with(server, Some(admin), "GET", "/metrics", "").text();
    let name = "crosspoint_refusals_total{limit=\"bodies_bytes\"} ";
    text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0)
}

#[test]
fn slow_bodies_of_one_caller_leave_room_for_those_of_others() {
    let server = Server::configured("[limits]\nbody_bytes = 100000\nbodies_bytes = 400000\n");
    let admin = tokens::closed(&server);
    let (mallory, victim) = (tokens::caller(&server, &admin, "mallory"), tokens::caller(&server, &admin, "victim"));
    let bearer = format!("Bearer {mallory}");
    let slow = head("POST", "/api/v1/jobs", &[("authorization", &bearer)], 100_000) + &"x".repeat(90_000);
    let held: Vec<TcpStream> = (0..9)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(slow.as_bytes()).expect("it can be sent");
            stream
        })
        .collect();
    // All but one have no room, and the one is never whole.
    until("the others are refused", || (bodies_refused(&server, &admin) >= 8).then_some(()));
    let body = json!({"work": "echo", "input": "x".repeat(90_000)}).to_string();
    let done = with(&server, Some(&victim), "POST", "/api/v1/jobs?wait=60", &body);
    assert_eq!((done.status, &done.json()["state"]), (200, &json!("completed")));
    drop(held);
}

#[test]
fn without_a_good_token_only_the_beginning_of_a_body_is_read() {
    let server = Server::start();
    tokens::closed(&server);
    for path in ["/api/agent/message", "/api/agent/register"] {
        // The announced length is enough.
        let mut stream = server.connect();
        stream.write_all(head("POST", path, &[], 10 << 20).as_bytes()).expect("it can be sent");
        let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
        assert_eq!((answer.status, &answer.json()["type"]), (401, &json!("error")), "{answer:?}");
        // No length is announced, and the end never comes.
        let mut stream = server.connect();
        let bearer = "authorization: Bearer 0123456789abcdef0123456789abcdef";
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{bearer}\r\ntransfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it can be sent");
        stream.write_all(format!("11170\r\n{}\r\n", "x".repeat(70_000)).as_bytes()).expect("it can be sent");
        let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}
