//! The message door of a server that stops, and of one whose store is full.

use serde_json::json;

use crate::support::message_post::pulling;
use crate::support::message_sender::{asking, sample};
use crate::support::server::{Server, until};

#[test]
fn a_server_that_stops_takes_no_new_work_and_says_so() {
    let agents = sample("slow_echo", "slow", "") + &pulling("puller", "");
    let mut server = Server::configured(&(agents + "[server]\ndrain_seconds = 60\n"));
    let request = asking("slow", &json!({"seconds": 2}));
    assert_eq!(server.say(&request).status, 202);
    server.signal("TERM");
    let refused = until("it stops", || {
        let answer =
            server.try_request("POST", "/api/agent/message", &[], asking("slow", &json!({})).to_string().as_bytes());
        answer.filter(|answer| answer.status == 503)
    });
    let said = refused.json();
    assert_eq!(said["payload"]["error_code"], 5002, "{said}");
    assert_eq!(said["payload"]["error_context"]["agent_id"], "orchestrator", "{said}");
    assert_eq!(said["payload"]["error_context"]["repeat"], "safe", "{said}");
    // A repeat is told that it was accepted: work of which nothing was done would be done elsewhere.
    let repeated = server.try_request("POST", "/api/agent/message", &[], request.to_string().as_bytes());
    let repeated = repeated.expect("it answers");
    assert_eq!((repeated.status, &repeated.json()["type"]), (202, &json!("work_status")), "{repeated:?}");
    let register = server.try_request("POST", "/api/agent/register", &[], b"{}").expect("it answers");
    assert_eq!((register.status, &register.json()["payload"]["error_code"]), (503, &json!(5002)), "{register:?}");
    let poll = server.try_request("GET", "/api/agent/messages?agent=puller&wait=60", &[], b"").expect("it answers");
    assert_eq!((poll.status, &poll.json()["payload"]["error_code"]), (503, &json!(5002)), "{poll:?}");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    server.restart();
    assert_eq!(server.outcome_of(&request).kind(), "work_result");
}

#[test]
fn a_caller_that_waits_when_the_server_stops_is_told_how_the_work_stands() {
    let mut server = Server::configured(&(sample("ask", "approve", "") + "[server]\ndrain_seconds = 0.2\n"));
    let request = asking("approve", &json!({}));
    let status = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.message("?wait=60", &[], &request.to_string()));
        until("it was accepted", || (server.job_count() == 1).then_some(()));
        server.signal("TERM");
        let said = waiting.join().expect("it is answered");
        (said.status, said.kind().to_owned())
    });
    assert_eq!(status, (202, "work_status".to_owned()));
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
}

#[test]
fn a_store_that_is_full_refuses_work_as_5002_and_it_is_safe_to_come_again() {
    let server = Server::configured(&(sample("echo", "dig", "") + "[limits]\nstore_bytes = 1000000\n"));
    let first = asking("dig", &json!({}));
    server.outcome_of(&first);
    let said = until("it is full", || {
        let said = server.say(&asking("dig", &json!({"x": "x".repeat(100_000)})));
        Some(said).filter(|said| said.status == 503)
    });
    assert_eq!((said.code(), &said.context()["repeat"]), (Some(5002), &json!("safe")), "{:?}", said.answer);
    assert_eq!(said.context()["agent_id"], "orchestrator", "{}", said.context());
    assert_eq!(server.job_of_message(&first)["state"], "completed", "what it has it keeps");
}
