//! A stop that cannot wait for everything under way: attempts that are cut short are taken up by the next start.

use std::fs;

use serde_json::{Value, json};

use crate::support::server::{Server, until};

fn id(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}

/// Set by the environment, as services are configured.
const SHORT: [&str; 2] = ["env", "CROSSPOINT_SERVER_DRAIN_SECONDS=1"];

#[test]
fn an_attempt_that_outlasts_the_drain_is_cut_short_and_taken_up_by_the_next_start() {
    let mut server = Server::start();
    server.kill();
    server.start_by(&SHORT);
    server.restart();
    // Longer than any test waits: a stop that waited for it would fail the test.
    let slow = id(&server.submit(r#"{"work":"slow_echo","input":{"seconds":3000}}"#));
    let ask = id(&server.submit(r#"{"work":"ask"}"#));
    server.in_state(&slow, "running");
    server.in_state(&ask, "waiting");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    server.restart();
    let job = server.in_state(&slow, "running");
    assert_eq!(job["attempts"], 2, "{job}");
    server.in_state(&ask, "waiting");
    assert_eq!(server.post(&format!("/api/v1/jobs/{slow}/cancel"), "").json()["state"], "cancelled");
    let events = server.get(&format!("/api/v1/jobs/{slow}/events")).text();
    let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let turns: Vec<&str> = names.into_iter().filter(|name| !["progress", "output"].contains(name)).collect();
    assert_eq!(turns, ["accepted", "started", "interrupted", "started", "cancelled"]);
}

#[test]
fn what_was_cut_short_by_a_stop_comes_to_its_end() {
    let agent = |run: &str| {
        format!(
            "[server]\ndrain_seconds = 0.1\n[[agent]]\nname = \"it\"\ncontract = \"builtin\"\nrun = \"{run}\"\nwork = [\"w\"]\n"
        )
    };
    let mut server = Server::configured(&agent("slow_echo"));
    let slow = id(&server.submit(r#"{"work":"w","input":{"seconds":3000}}"#));
    server.in_state(&slow, "running");
    assert_eq!(server.stop().code(), Some(0), "{}", server.log());
    // The same agent, but faster.
    fs::write(server.data().with_file_name("crosspoint.toml"), agent("echo")).expect("it can be written");
    server.restart();
    let job = server.ended(&slow);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "{job}");
    assert_eq!(job["outcome"]["outputs"], json!({"seconds": 3000}));
    assert!(server.get(&format!("/api/v1/jobs/{slow}/events")).text().contains("event: interrupted"));
}

#[test]
fn work_that_waits_in_the_queue_is_not_begun_while_it_stops() {
    let mut server = Server::configured(
        "[server]\ndrain_seconds = 60\n[[agent]]\nname = \"one\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\n\
         work = [\"w\"]\nconcurrency = 1\n",
    );
    let first = id(&server.submit(r#"{"work":"w","input":{"seconds":1}}"#));
    let second = id(&server.submit(r#"{"work":"w","input":{"seconds":0}}"#));
    server.in_state(&first, "running");
    server.signal("TERM");
    until("it stops", || (server.try_request("GET", "/health/ready", &[], b"")?.status == 503).then_some(()));
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    server.restart();
    for id in [&first, &second] {
        let job = server.ended(id);
        assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(1)), "{job}");
    }
    let events = server.get(&format!("/api/v1/jobs/{second}/events")).text();
    assert!(!events.contains("event: interrupted"), "{events}");
}
