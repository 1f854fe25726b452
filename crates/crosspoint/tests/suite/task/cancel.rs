//! Cancelling work that an agent of the task contract has: the agent is told until it has heard.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::json;

use crate::support::server::{Server, until};
use crate::support::task_agent::{Reply, TaskAgent};

#[test]
fn an_agent_that_fails_is_told_again_until_it_takes_it() {
    let failures = AtomicUsize::new(0);
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "cancel" if failures.fetch_add(1, Ordering::Relaxed) < 2 => Reply::Json(500, json!({"detail": "busy"})),
        _ => Reply::Kept,
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    server.cancel(&id);
    assert_eq!(server.job(&id)["state"], "cancelled", "the job does not wait for its agent");
    let last = agent.awaited("cancel", 3);
    assert_eq!((last.id.as_str(), &last.body), (id.as_str(), &json!({})));
    until("it is said", || server.log().contains("the agent has heard that its work is cancelled").then_some(()));
    assert_eq!(agent.asked("cancel").len(), 3, "and then no more");
}

#[test]
fn an_agent_that_cannot_be_connected_to_is_told_when_it_is_back() {
    let agent = TaskAgent::start();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    let address = agent.address();
    drop(agent);
    until("the agent is gone", || TcpStream::connect(address).is_err().then_some(()));
    server.cancel(&id);
    assert_eq!(server.job(&id)["state"], "cancelled");
    until("it was tried", || server.log().contains("it is told again").then_some(()));
    let back = TaskAgent::at(address, |_| Reply::Kept);
    let told = back.awaited("cancel", 1);
    assert_eq!(told.id, id);
}

#[test]
fn an_agent_that_knows_is_told_once() {
    for status in [200, 404, 409, 410] {
        let agent = TaskAgent::answering(move |call| match &*call.what {
            "cancel" => Reply::Json(status, json!({})),
            _ => Reply::Kept,
        });
        let mut server = Server::configured(&agent.configuration("helper", ""));
        let id = server.begin("helper");
        agent.awaited("look", 1);
        server.cancel(&id);
        agent.awaited("cancel", 1);
        server.stop();
        assert_eq!(agent.asked("cancel").len(), 1, "{status}");
        assert!(!server.log().contains("it is told again"), "{status}");
    }
}

#[test]
fn a_cancellation_that_was_not_heard_is_told_again_after_a_kill() {
    let hanging = Arc::new(AtomicBool::new(true));
    let hangs = hanging.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "cancel" if hangs.load(Ordering::Relaxed) => Reply::Hang,
        _ => Reply::Kept,
    });
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    server.cancel(&id);
    let first = agent.awaited("cancel", 1);
    server.kill();
    hanging.store(false, Ordering::Relaxed);
    server.restart();
    let second = agent.awaited("cancel", 2);
    assert_eq!(
        (&second.id, second.request.header("traceparent")),
        (&id, first.request.header("traceparent")),
        "in the same span"
    );
    assert_eq!(server.job(&id)["state"], "cancelled");
}

/// Work that the agent itself ended needs no cancellation, also not after a start.
#[test]
fn an_agent_that_ended_its_work_is_not_told() {
    let agent = TaskAgent::answering(|call| match &*call.what {
        "post" => Reply::Json(200, json!({"id": call.body["id"], "status": "cancelled"})),
        _ => Reply::Kept,
    });
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    assert_eq!(server.ended(&id)["state"], "cancelled");
    let other = server.begin("helper");
    server.ended(&other);
    server.kill();
    server.restart();
    let third = server.begin("helper");
    server.ended(&third);
    assert!(agent.asked("cancel").is_empty());
}

/// A stop gives the agent its first chance to hear, and does not wait for the others.
#[test]
fn a_stop_does_not_wait_for_an_agent_that_does_not_hear() {
    let told: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = told.clone();
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "cancel" => {
            noted.lock().expect("nobody panicked").push(Instant::now());
            Reply::Json(503, json!({}))
        }
        _ => Reply::Kept,
    });
    let mut server =
        Server::configured(&format!("[server]\ndrain_seconds = 600\n{}", agent.configuration("helper", "")));
    let id = server.begin("helper");
    agent.awaited("look", 1);
    server.cancel(&id);
    agent.awaited("cancel", 2);
    // It would go on for ten minutes, which is as long as the drain: the test would not end in time.
    assert!(server.stop().success());
    assert!(told.lock().expect("nobody panicked").len() < 20);
}
