//! The server was down for longer than a job's time: results that were reached meanwhile are fetched, not thrown away.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::puller::Puller;
use crate::support::server::Server;
use crate::support::task_agent::{TaskAgent, completed};
use crate::task::agent::ended;

/// Lets time pass with no server running, which is what this test is about.
fn be_away() {
    thread::sleep(Duration::from_millis(1_500));
}

#[test]
fn a_task_that_ended_while_the_server_was_away_past_its_time_is_fetched() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", "total_seconds = 1\n"));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    server.kill();
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    be_away();
    server.restart();
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"a": 1}), &json!(1)), "{job}");
    assert!(agent.asked("cancel").is_empty(), "nobody stopped it");
}

#[test]
fn the_callers_own_limit_does_not_run_while_the_server_is_away() {
    let agent = TaskAgent::start();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let wish = json!({"work": "helper", "limits": {"seconds": 1}});
    let id = server.submit(&wish.to_string())["id"].as_str().expect("an id").to_owned();
    agent.awaited("look", 1);
    server.kill();
    agent.stands(&id, completed(&json!(id), &json!({"a": 1})));
    be_away();
    server.restart();
    assert_eq!(ended(&server, &id)["outcome"]["outputs"], json!({"a": 1}));
}

#[test]
fn a_worker_that_finished_while_the_server_was_away_past_its_time_is_heard() {
    let mut server = Server::start();
    let mut worker = Puller::new("dig", 1);
    let terms = json!({"work": ["dig"], "concurrency": 1, "lease_seconds": 5, "total_seconds": 1});
    assert_eq!(worker.join(&server, terms.clone()).status, 200);
    let id = server.submit(r#"{"work":"dig"}"#)["id"].clone();
    worker.take_some(&server, 1);
    server.kill();
    be_away();
    server.restart();
    assert_eq!(worker.join(&server, terms).status, 200);
    assert_eq!(worker.finish(&server, &id, 1), "taken");
    let job = server.ended(id.as_str().expect("an id"));
    assert_eq!((&job["outcome"]["outputs"]["by"], &job["attempts"]), (&json!(worker.session), &json!(1)), "{job}");
}
