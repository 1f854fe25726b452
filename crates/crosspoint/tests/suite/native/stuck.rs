//! A job that does not move says why.

use std::fs;

use serde_json::Value;

use crate::support::server::Server;

const ONE_AT_A_TIME: &str = "[server]\ndrain_seconds = 0.1\n[[agent]]\nname = \"one\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\nwork = [\"w\"]\nconcurrency = 1\n";

/// Longer than any test waits.
const LONG: &str = r#"{"work":"w","input":{"seconds":3000}}"#;

/// No time at all.
const SHORT: &str = r#"{"work":"w","input":{"seconds":0}}"#;

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

fn why(server: &Server, id: &str) -> String {
    let job = server.job(id);
    assert!(job["stuck"]["since"].is_string(), "{job}");
    job["stuck"]["reason"].as_str().expect("there is a reason").to_owned()
}

#[test]
fn in_a_queue_it_is_told_how_many_are_ahead() {
    let server = Server::configured(ONE_AT_A_TIME);
    let busy = id(&server.submit(LONG));
    server.in_state(&busy, "running");
    let queued: Vec<String> = (0..3).map(|_| id(&server.submit(SHORT))).collect();
    let urgent = id(&server.submit(r#"{"work":"w","priority":"urgent"}"#));
    let busy_with = "; agent one is busy with 1 of 1";
    assert_eq!(why(&server, &urgent), format!("next in the queue{busy_with}"));
    assert_eq!(why(&server, &queued[0]), format!("1 job is ahead of it in the queue{busy_with}"));
    assert_eq!(why(&server, &queued[2]), format!("3 jobs are ahead of it in the queue{busy_with}"));
    let listed = server.get("/api/v1/jobs?state=queued").json();
    let reasons: Vec<&str> = listed["jobs"].as_array().expect("a list").iter().map(reason).collect();
    assert_eq!(reasons, vec![format!("in the queue{busy_with}"); 4]);
    server.post(&format!("/api/v1/jobs/{urgent}/cancel"), "");
    assert_eq!(why(&server, &queued[0]), format!("next in the queue{busy_with}"));
    assert!(server.job(&urgent)["stuck"].is_null(), "what has ended is not stuck");
}

fn reason(job: &Value) -> &str {
    job["stuck"]["reason"].as_str().expect("there is a reason")
}

#[test]
fn agents_that_are_no_longer_configured_are_named() {
    let mut server = Server::configured(ONE_AT_A_TIME);
    let busy = id(&server.submit(LONG));
    server.in_state(&busy, "running");
    let pinned = id(&server.submit(r#"{"work":"w","agent":"one","input":{"seconds":0}}"#));
    let free = id(&server.submit(SHORT));
    assert!(server.stop().success());
    let file = server.data().with_file_name("crosspoint.toml");
    fs::write(&file, "").expect("it can be written");
    server.restart();
    assert_eq!(why(&server, &free), "no agent takes w");
    assert_eq!(why(&server, &pinned), "agent one is not configured, or does not take w");
    // An absent agent cannot say whether it did the work.
    let cut_short = server.ended(&busy);
    assert_eq!(cut_short["outcome"]["failure"]["code"], "unavailable", "{cut_short}");
    assert_eq!(cut_short["outcome"]["failure"]["repeat"], "unknown", "{cut_short}");
    assert!(server.stop().success());
    fs::write(&file, ONE_AT_A_TIME).expect("it can be written");
    server.restart();
    for id in [&pinned, &free] {
        assert_eq!(server.ended(id)["state"], "completed");
    }
}

#[test]
fn failures_that_open_the_breaker_are_told_to_those_that_wait() {
    let server = Server::start();
    let failing = r#"{"work":"fail","input":{"failure":"unavailable"}}"#;
    for count in 0..5 {
        let agent = server.get("/api/v1/agents/fail").json();
        assert_eq!(agent["breaker"]["failures"], count, "{agent}");
        assert_eq!(server.post("/api/v1/jobs?wait=60", failing).json()["state"], "failed");
    }
    let breaker = server.get("/api/v1/agents/fail").json()["breaker"].clone();
    let until = breaker["until"].as_str().expect("it says until when");
    let job = id(&server.submit(r#"{"work":"fail"}"#));
    assert_eq!(why(&server, &job), format!("agent fail's breaker is open until {until}"));
    server.post("/api/v1/agents/fail/breaker", r#"{"state":"closed"}"#);
    assert_eq!(server.ended(&job)["outcome"]["failure"]["code"], "agent_failed");
}

#[test]
fn a_pause_between_attempts_says_what_failed_and_when_it_ends() {
    let server = Server::start();
    let body = r#"{"work":"fail","input":{"failure":"unavailable"},"limits":{"attempts":2}}"#;
    let id = id(&server.submit(body));
    let job = server.in_state(&id, "retrying");
    let said = reason(&job);
    assert!(said.starts_with("attempt 1 ended with unavailable; attempt 2 is due at 2"), "{said}");
}
