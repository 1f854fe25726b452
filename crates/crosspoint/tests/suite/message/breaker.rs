//! The breaker of agents that take messages (MSG-7), and what counts as their health.

use serde_json::json;

use crate::support::message_post::{Posted, error, heartbeat, result, status, work_request};
use crate::support::scripted_agent::After;
use crate::support::server::{Server, until};

fn breaker(server: &Server, name: &str) -> (String, u64) {
    let breaker = server.agent(name)["breaker"].clone();
    (breaker["state"].as_str().expect("a word").to_owned(), breaker["failures"].as_u64().expect("a number"))
}

#[test]
fn five_unavailable_or_silent_in_a_row_open_the_breaker_and_work_under_way_goes_on() {
    let agent = Posted::answering(|request, connection| match request["payload"]["parameters"]["n"].as_u64() {
        Some(1) => connection.json(200, &error(request, 5001, &json!({}))),
        Some(2) => connection.json(200, &error(request, 5002, &json!({}))),
        Some(3) => connection.whole(503, "text/plain", ""),
        _ => connection.whole(202, "application/json", ""),
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let under_way = server.begin("helper");
    let request = agent.request(1);
    server.takes(&status(&request, 10));
    for (count, n) in [1, 2, 3, 2, 1].into_iter().enumerate() {
        assert_eq!(breaker(&server, "helper"), ("closed".to_owned(), count as u64));
        server.done("helper", &json!({"n": n}));
    }
    assert_eq!(breaker(&server, "helper").0, "open");
    until("a line about the breaker", || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains("the agent's breaker has opened"))?.to_owned();
        assert!(line.contains("agent=\"helper\" state=\"open\" until=20"), "{line}");
        Some(())
    });
    let next = server.begin("helper");
    let job = server.job(&next);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job:#}");
    let reason = job["stuck"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("agent helper's breaker is open until "), "{reason}");
    let told = server.hears(&work_request("helper", &json!({}))).json();
    assert_eq!(told["x_custom_fields"]["x_crosspoint"]["stuck"], *reason, "the caller is told, too: {told:#}");
    server.takes(&status(&request, 50));
    server.takes(&result(&request, "done"));
    assert_eq!(server.job(&under_way)["outcome"]["outputs"], "done");
}

#[test]
fn answers_of_any_other_kind_do_not_count() {
    let agent = Posted::answering(|request, connection| match request["payload"]["parameters"]["n"].as_u64() {
        Some(5002) => connection.json(200, &error(request, 5002, &json!({}))),
        Some(code) => connection.json(200, &error(request, u32::try_from(code).expect("a code"), &json!({}))),
        None => connection.json(200, &result(request, "done")),
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    for code in [5003, 5005, 5006, 5900, 5903] {
        server.done("helper", &json!({"n": 5002}));
        assert_eq!(breaker(&server, "helper"), ("closed".to_owned(), 1));
        server.done("helper", &json!({"n": code}));
        assert_eq!(breaker(&server, "helper"), ("closed".to_owned(), 0), "{code}");
    }
}

/// A connection that is dropped counts only if a health check fails too, so a drop shows what the check is.
#[test]
fn a_fresh_heartbeat_is_the_health_check_of_an_agent_that_sends_some() {
    let agent = Posted::answering(|_, _| After::Close);
    let server = Server::configured(&agent.configuration("helper", ""));
    server.takes(&heartbeat("helper", "code", "online"));
    for _ in 0..6 {
        server.done("helper", &json!({}));
    }
    assert_eq!(breaker(&server, "helper"), ("closed".to_owned(), 0), "its heartbeat is fresh");
    assert!(agent.asked().iter().all(|asked| !asked.path.starts_with("/health")), "it is not asked");
}

#[test]
fn an_agent_that_was_just_heard_of_in_any_other_way_is_well_too() {
    let agent = Posted::answering(|request, connection| match request["payload"]["parameters"]["n"].as_u64() {
        Some(_) => After::Close,
        None => connection.whole(202, "application/json", ""),
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    server.begin("helper");
    server.takes(&result(&agent.request(1), "done"));
    for n in 0..6 {
        server.done("helper", &json!({"n": n}));
    }
    assert_eq!(breaker(&server, "helper"), ("closed".to_owned(), 0), "it has replied just now");
    assert!(agent.asked().iter().all(|asked| !asked.path.starts_with("/health")), "it is not asked");
}

#[test]
fn an_agent_of_which_nothing_was_heard_is_asked_for_its_health() {
    let agent = Posted::answering(|_, _| After::Close);
    let server = Server::configured(&agent.configuration("helper", ""));
    server.done("helper", &json!({}));
    until("it is asked", || agent.asked().iter().any(|asked| asked.path.starts_with("/health")).then_some(()));
    // It answers that, so nothing counts.
    assert_eq!(breaker(&server, "helper"), ("closed".to_owned(), 0));
}

#[test]
fn silence_counts_whatever_is_heard_of_the_agent_otherwise() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.2"));
    server.takes(&heartbeat("helper", "code", "online"));
    for _ in 0..5 {
        let job = server.over(&server.begin_once("helper"));
        assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job:#}");
    }
    assert_eq!(breaker(&server, "helper").0, "open");
}
