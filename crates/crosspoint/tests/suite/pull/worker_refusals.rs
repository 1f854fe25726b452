//! Workers whose server refuses, for now or for good: a temporary refusal is waited out, and a lasting one ends the job
//! but not the worker.

use serde_json::json;

use crate::support::program::{crosspoint, transcript};
use crate::support::programs::violations;
use crate::support::scripted_agent::{After, ScriptedAgent};
use crate::support::server::{Server, until};
use crate::support::tokens;
use crate::support::workers::Worker;

#[test]
fn what_the_server_does_not_take_of_a_program_that_runs_fails_the_job_once() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\n");
    let script = r#"echo >> started; printf '@crosspoint {"ask": {"prompt": "%05000d"}}\n' 0; sleep 1000"#;
    let more = ["--ask", "--lease-seconds", "5"];
    let worker = Worker::joined(&server, "choose", &more, &["bash", "-c", script]);
    let job = server.begin("choose");
    let ended = server.ended(&job);
    assert_eq!(ended["outcome"]["failure"]["code"], "resource_limit", "{ended}");
    assert_eq!(ended["attempts"], 1);
    worker.says("failed");
    let starts = std::fs::read_to_string(server.directory().join("started")).expect("it was started");
    assert_eq!(starts.lines().count(), 1);
}

#[test]
fn an_outcome_that_the_server_does_not_take_is_replaced_by_one_that_says_so() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\n");
    let _done = Worker::joined(&server, "much", &[], &["bash", "-c", r#"printf '{"a": "%03000d"}' 0"#]);
    let _failed = Worker::joined(&server, "fails", &[], &["bash", "-c", "printf %03000d 0 >&2; exit 3"]);
    for work in ["much", "fails"] {
        let ended = server.ended(&server.begin(work));
        assert_eq!(ended["outcome"]["failure"]["code"], "resource_limit", "{ended}");
        assert_eq!(ended["attempts"], 1);
    }
}

#[test]
fn rules_that_a_program_breaks_are_shown_with_its_job() {
    let server = Server::start();
    let script = r"echo '@crosspoint {nothing}'; echo '@crosspoint {nothing}'; echo '{}'";
    let _worker = Worker::joined(&server, "sloppy", &[], &["sh", "-c", script]);
    let done = server.done("sloppy", &json!({}));
    assert_eq!(done["state"], "completed", "{done}");
    assert_eq!(violations(&done).len(), 1, "each rule once: {done}");
    assert_eq!(done["violations"][0]["clause"], "exec");
}

#[test]
fn a_worker_begun_anew_with_other_work_waits_for_the_lease_of_the_one_that_was_killed() {
    let server = Server::start();
    let mut dead = Worker::joined(&server, "dig", &["--lease-seconds", "5"], &["cat"]);
    dead.kill();
    let more = ["--lease-seconds", "5"];
    let worker = Worker::start_as(&server, "dig", "fill", &more, &["cat"]);
    worker.says("if they are dead");
    worker.says("has joined");
    assert_eq!(worker.said().matches("if they are dead").count(), 1, "once");
    assert_eq!(server.ended(&server.begin("fill"))["state"], "completed");
    // Sessions that are alive still block the name.
    let url = server.url();
    let other = ["agent", "dig", "--work", "dig", "--lease-seconds", "5", "--server", &url, "--", "cat"];
    let said = transcript(&mut crosspoint(&other));
    assert!(said.starts_with("exit 2\n") && said.contains("for other work"), "{said}");
}

#[test]
fn a_worker_that_is_told_to_come_again_does() {
    const STATUSES: [u16; 3] = [429, 408, 429];
    let refusing = ScriptedAgent::start(|request, connection| {
        // A worker that comes once more finds no answer.
        let Some(status) = STATUSES.get(request.turn) else { return After::Close };
        connection.send(format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
        After::Close
    });
    let server = Server::start();
    let mut worker = Worker::start(&server, "shout", &["--server", &refusing.url()], &["cat"]);
    until("it comes", || (refusing.requests().len() >= STATUSES.len()).then_some(()));
    worker.says("it is waited for");
    drop(refusing);
    worker.signal("INT");
    worker.signal("INT");
    until("it ends", || worker.said().contains("leaving").then_some(()));
    worker.kill();
}

#[test]
fn while_a_program_takes_its_time_to_end_the_server_is_not_asked_without_pause() {
    let server = Server::start();
    let script = "trap '' TERM; echo up; while true; do sleep 0.1; done";
    let worker = Worker::joined(&server, "stubborn", &["--grace-seconds", "3"], &["bash", "-c", script]);
    let job = server.begin("stubborn");
    until("it runs", || {
        server.get(&format!("/api/v1/jobs/{job}/events?follow=false")).text().contains("up").then_some(())
    });
    server.cancel(&job);
    worker.says("stopped");
    let metrics = server.get("/metrics").text();
    let line =
        metrics.lines().find(|line| line.starts_with("crosspoint_http_requests_total") && line.contains("/take"));
    let asked: f64 = line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("a number");
    assert!(asked < 50.0, "a slow machine asks less often still: {asked}");
}

/// The operator replaces the token of a worker that runs: the worker goes on with the one that is in the file now.
#[test]
fn a_worker_whose_token_was_replaced_reads_the_file_again() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let file = server.data().join("token");
    let first = tokens::agent(&server, &admin, "dig");
    std::fs::write(&file, first).expect("it can be written");
    let worker = Worker::joined(&server, "dig", &[], &["cat"]);
    let rotate = || {
        let body = r#"{"overlap_seconds": 3600}"#;
        let answer = tokens::with(&server, Some(&admin), "POST", "/api/v1/tokens/dig/rotate", body).json();
        answer["token"].as_str().expect("a token").to_owned()
    };
    std::fs::write(&file, rotate()).expect("it can be written");
    // The first token is useless now, and the second one is the former.
    rotate();
    let body = r#"{"work": "dig", "input": {"depth": 3}}"#;
    let job = tokens::with(&server, Some(&admin), "POST", "/api/v1/jobs?wait=60", body).json();
    assert_eq!(job["outcome"]["outputs"], json!({"depth": 3}), "{job} {}", worker.said());
}
