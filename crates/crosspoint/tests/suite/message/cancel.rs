//! Work that is no longer wanted (MSG-19): agents are told, whether they are pushed to or pull.

use serde_json::{Value, json};

use crate::support::message_post::{Posted, pulling, registration, result, status, work_request};
use crate::support::misbehaving_agents::clauses;
use crate::support::scripted_agent::{After, unused_address};
use crate::support::server::{Server, until};

/// Checks that a message cancels the work of a request.
fn cancels(cancel: &Value, request: &Value) {
    assert_eq!((&cancel["type"], &cancel["payload"]["error_code"]), (&json!("error"), &json!(5901)), "{cancel:#}");
    assert_eq!(cancel["request_id"], request["request_id"], "{cancel:#}");
    assert_eq!(cancel["payload"]["error_context"]["task_id"], request["payload"]["task_id"], "{cancel:#}");
    assert_eq!((&cancel["trace_id"], &cancel["to_agent"]), (&request["trace_id"], &request["to_agent"]), "{cancel:#}");
    assert_ne!(cancel["message_id"], request["message_id"]);
}

#[test]
fn an_agent_that_is_pushed_to_is_told_that_its_work_is_cancelled() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.cancel(&id);
    cancels(&agent.cancelled(1), &request);
    // Also while the connection of the request is still open.
    let open = Posted::answering(|_, connection| connection.until_gone());
    let server = Server::configured(&open.configuration("helper", ""));
    let id = server.begin("helper");
    let request = open.request(1);
    server.cancel(&id);
    cancels(&open.cancelled(1), &request);
}

#[test]
fn an_agent_that_pulls_finds_the_cancellation_with_its_next_poll() {
    let server = Server::configured(&pulling("puller", ""));
    server.polled("agent=puller");
    let id = server.begin("puller");
    let given = server.pulled("puller");
    std::thread::scope(|scope| {
        let poll = scope.spawn(|| server.pulled("puller"));
        server.takes(&status(&given, 10));
        server.cancel(&id);
        let cancel = poll.join().expect("it is answered");
        cancels(&cancel, &given);
        let ack = cancel["message_id"].as_str().expect("an id");
        assert!(server.polled(&format!("agent=puller&ack={ack}")).is_empty());
    });
}

#[test]
fn work_that_was_never_pulled_is_just_taken_back() {
    let server = Server::configured(&pulling("puller", ""));
    server.polled("agent=puller");
    let id = server.begin("puller");
    server.in_state(&id, "running");
    server.cancel(&id);
    until("it is taken back", || (server.agent("puller")["running"] == 0).then_some(()));
    let next = server.begin("puller");
    assert_eq!(server.pulled("puller")["request_id"], json!(next), "the agent never hears of the first");
}

#[test]
fn an_agent_is_told_when_the_time_of_its_work_is_up() {
    let agent = Posted::taking();
    let server = Server::configured(&(agent.configuration("helper", "") + &pulling("puller", "")));
    let limited = |work: &str| json!({"work": work, "limits": {"seconds": 0.5}}).to_string();
    let id = server.submit(&limited("helper"))["id"].as_str().expect("an id").to_owned();
    let request = agent.request(1);
    assert_eq!(server.over(&id)["outcome"]["failure"]["code"], "timeout");
    cancels(&agent.cancelled(1), &request);
    server.polled("agent=puller");
    let id = server.submit(&limited("puller"))["id"].as_str().expect("an id").to_owned();
    let given = server.pulled("puller");
    assert_eq!(server.over(&id)["outcome"]["failure"]["code"], "timeout");
    cancels(&server.pulled("puller"), &given);
}

#[test]
fn an_agent_that_has_said_how_its_work_ended_is_told_nothing() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    server.takes(&result(&agent.request(1), "done"));
    let refused = server.post(&format!("/api/v1/jobs/{id}/cancel"), "");
    assert_eq!(refused.status, 409, "{refused:?}");
    // What is told of the next work is told after anything about the first.
    let next = server.begin("helper");
    agent.request(2);
    server.cancel(&next);
    assert_eq!(agent.cancelled(1)["request_id"], json!(next));
    assert_eq!(agent.had("error").len(), 1);
}

#[test]
fn work_that_is_to_be_repeated_and_is_cancelled_meanwhile_is_cancelled_at_its_agent() {
    let agent = Posted::answering(|_, _| After::Close);
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    server.in_state(&id, "retrying");
    assert!(agent.had("error").is_empty(), "it may get it again");
    server.cancel(&id);
    cancels(&agent.cancelled(1), &agent.request(1));
}

#[test]
fn an_agent_that_cannot_be_reached_is_told_when_it_is_back() {
    let address = unused_address();
    let agent = Posted::at(address, |_, connection| connection.whole(202, "application/json", ""));
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    drop(agent);
    server.cancel(&id);
    until("it is told again", || server.log().contains("it is told again").then_some(()));
    let back = Posted::at(address, |_, connection| connection.whole(202, "application/json", ""));
    cancels(&back.cancelled(1), &request);
}

#[test]
fn agents_are_told_again_after_a_restart() {
    let address = unused_address();
    let agent = Posted::at(address, |_, connection| connection.whole(202, "application/json", ""));
    let mut server = Server::configured(&(agent.configuration("helper", "") + &pulling("puller", "")));
    server.registers(&registration("digger", &["dig"]));
    server.polled("agent=puller");
    server.polled("agent=digger");
    let begun = [server.begin("helper"), server.begin("puller"), server.begin("dig")];
    let (request, pulled, dug) = (agent.request(1), server.pulled("puller"), server.pulled("digger"));
    drop(agent);
    for id in &begun {
        server.cancel(id);
    }
    server.kill();
    let back = Posted::at(address, |_, connection| connection.whole(202, "application/json", ""));
    server.restart();
    cancels(&back.cancelled(1), &request);
    cancels(&server.pulled("puller"), &pulled);
    cancels(&server.pulled("digger"), &dug);
}

#[test]
fn a_caller_of_the_contract_cancels_and_the_agent_is_told() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let asked = work_request("helper", &json!({}));
    assert_eq!(server.post("/api/agent/message", &asked.to_string()).status, 202);
    let request = agent.request(1);
    let mut cancel = asked.clone();
    cancel["type"] = json!("error");
    let context = json!({"task_id": asked["payload"]["task_id"]});
    cancel["payload"] = json!({"error_code": 5901, "error_message": "no longer wanted", "error_context": context});
    let answer = server.hears(&cancel);
    assert_eq!((answer.status, &answer.json()["payload"]["error_code"]), (200, &json!(5901)), "{answer:?}");
    cancels(&agent.cancelled(1), &request);
    assert_eq!(server.over(request["request_id"].as_str().expect("an id"))["state"], "cancelled");
}

#[test]
fn a_result_after_the_cancelling_is_late_and_on_record() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.cancel(&id);
    let answer = server.hears(&result(&request, "done all the same"));
    assert_eq!(answer.status, 204, "{answer:?}");
    let job = server.on_record(&id, "ALL-9.3");
    assert_eq!((&job["state"], clauses(&job)), (&json!("cancelled"), vec!["ALL-9.3".to_owned()]), "{job:#}");
}
