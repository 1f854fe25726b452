//! Names that are taken: agents of the configuration, of other contracts, and workers that joined.

use serde_json::{Value, json};

use crate::support::message_post::{pulling, registration, result};
use crate::support::puller::Puller;
use crate::support::server::{Answer, Server};

fn register(server: &Server, registration: &Value) -> Answer {
    server.post("/api/agent/register", &registration.to_string())
}

/// Checks that a name cannot be had.
fn is_taken(answer: &Answer) {
    let document = answer.json();
    assert_eq!((answer.status, &document["payload"]["error_code"]), (409, &json!(5903)), "{document:#}");
}

#[test]
fn the_name_of_an_agent_of_another_contract_is_taken() {
    let server = Server::start();
    is_taken(&register(&server, &registration("echo", &["dig"])));
    assert_eq!(server.agent("echo")["contract"], "builtin");
    assert_eq!(server.post("/api/v1/jobs", r#"{"work": "dig"}"#).status, 400);
}

#[test]
fn the_name_of_a_caller_is_taken() {
    let server = Server::configured("[[caller]]\nname = \"planner\"\n");
    is_taken(&register(&server, &registration("planner", &["dig"])));
}

#[test]
fn the_name_of_a_worker_is_taken_while_it_is_there() {
    let server = Server::start();
    let worker = Puller::joined(&server, "digger", 1);
    is_taken(&register(&server, &registration("digger", &["dig"])));
    worker.leave(&server);
    server.registers(&registration("digger", &["dig"]));
    assert_eq!(server.agent("digger")["contract"], "message");
    let id = server.begin("dig");
    server.takes(&result(&server.pulled("digger"), "done"));
    assert_eq!(server.over(&id)["outcome"]["outputs"], "done");
}

#[test]
fn the_name_of_an_agent_that_registered_is_taken_while_it_is_there() {
    let mut server = Server::start();
    server.registers(&registration("digger", &["dig"]));
    server.polled("agent=digger");
    let worker = Puller::new("digger", 1);
    let join = json!({"work": ["dig"], "concurrency": 4, "lease_seconds": 5});
    assert_eq!(worker.join(&server, join.clone()).status, 409);
    server.kill();
    server.restart();
    // Nothing was heard of the agent since, so the worker gets its name, and the agent is none any more.
    let mut worker = Puller::joined(&server, "digger", 1);
    assert_eq!(server.agent("digger")["contract"], "pull");
    assert_eq!(server.get("/api/agent/messages?agent=digger").status, 404);
    is_taken(&register(&server, &registration("digger", &["dig"])));
    let id = server.begin("digger");
    worker.take_some(&server, 1);
    assert_eq!(worker.finish(&server, &json!(id), 1), "taken");
    assert_eq!(server.over(&id)["state"], "completed");
}

#[test]
fn a_worker_cannot_join_under_the_name_of_a_configured_agent() {
    let server = Server::configured(&pulling("puller", ""));
    let worker = Puller::new("puller", 1);
    assert_eq!(worker.join(&server, json!({"work": ["dig"], "concurrency": 4, "lease_seconds": 5})).status, 409);
}
