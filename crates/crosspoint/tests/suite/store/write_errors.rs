//! Writes that fail, and later do not: the system forbids the server to write beyond a limit in any file.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::server::{Server, until};

/// A server that gets an error for writes beyond the limit, instead of being killed.
fn start() -> Server {
    let mut server = Server::with("[server]\ndrain_seconds = 1\n", &["--log", "off"]);
    server.kill();
    server.start_by(&["bash", "-c", r#"trap "" XFSZ; exec "$0" "$@""#]);
    server.restart();
    server
}

/// Sets how large the server's files may become.
fn limit(server: &Server, bytes: &str) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &server.pid().to_string(), &format!("--fsize={bytes}:")]);
    assert!(prlimit.status().is_ok_and(|status| status.success()), "the limit was set");
}

fn log_bytes(server: &Server) -> u64 {
    fs::metadata(server.data().join("jobs.db-wal")).expect("the log is there").len()
}

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

/// Submits until a write fails, and returns the accepted jobs.
fn submit_until_refused(server: &Server) -> Vec<String> {
    let body = json!({"work": "echo", "input": "x".repeat(20_000)}).to_string();
    let mut accepted = Vec::new();
    loop {
        let answer = server.post("/api/v1/jobs", &body);
        if answer.status == 503 {
            assert_eq!(answer.json()["error"]["code"], "unavailable", "{answer:?}");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            return accepted;
        }
        assert!([200, 202].contains(&answer.status), "{answer:?}");
        accepted.push(id(&answer.json()));
        assert!(accepted.len() < 1_000, "it must come to an end");
    }
}

fn is_failing(server: &Server) {
    let ready = server.get("/health/ready");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("failing")), "{ready:?}");
    assert!(ready.json()["reason"].is_string(), "{ready:?}");
}

#[test]
fn writes_that_fail_stop_new_work_and_nothing_that_was_taken_is_lost_when_they_work_again() {
    let server = start();
    let ask = id(&server.submit(r#"{"work":"ask"}"#));
    let slow = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":1}}"#));
    server.in_state(&ask, "waiting");
    limit(&server, &(log_bytes(&server) + 200_000).to_string());
    let accepted = submit_until_refused(&server);
    is_failing(&server);
    assert_eq!(server.job(&ask)["state"], "waiting", "what is there can be read");
    assert_eq!(server.get(&format!("/api/v1/jobs/{slow}/document")).status, 200);
    let listed = server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(listed, Some(accepted.len() + 2));
    assert_eq!(server.post(&format!("/api/v1/jobs/{ask}/answer"), r#"{"input":1}"#).status, 503);
    limit(&server, "unlimited");
    until("it is ready again", || (server.get("/health/ready").status == 200).then_some(()));
    for id in accepted.iter().chain([&slow]) {
        let job = server.ended(id);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job}");
    }
    assert_eq!(server.post(&format!("/api/v1/jobs/{ask}/answer"), r#"{"input":1}"#).status, 200);
    assert_eq!(server.ended(&ask)["outcome"]["outputs"], json!({"answer": 1}));
}

#[test]
fn a_server_that_cannot_write_can_be_stopped_and_its_next_start_has_everything() {
    let mut server = start();
    let ask = id(&server.submit(r#"{"work":"ask"}"#));
    let slow = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":0.5}}"#));
    server.in_state(&ask, "waiting");
    limit(&server, &(log_bytes(&server) + 100_000).to_string());
    let accepted = submit_until_refused(&server);
    is_failing(&server);
    let status = server.stop();
    assert_eq!(status.code(), Some(0), "{status}");
    server.start_by(&[]);
    server.restart();
    for id in accepted.iter().chain([&slow]) {
        assert_eq!(server.ended(id)["state"], "completed");
    }
    server.in_state(&ask, "waiting");
    assert_eq!(server.post(&format!("/api/v1/jobs/{ask}/answer"), r#"{"input":1}"#).status, 200);
    assert_eq!(server.ended(&ask)["outcome"]["outputs"], json!({"answer": 1}));
    let listed = server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(listed, Some(accepted.len() + 2), "what was refused is not there");
}
