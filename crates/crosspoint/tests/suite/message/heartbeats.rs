//! Signs of life (MSG-12): what they change, and what is shown of them.

use serde_json::{Value, json};

use crate::support::message_post::{Posted, heartbeat, pulling, registration, result};
use crate::support::program::crosspoint;
use crate::support::server::{Server, until};

/// A server with one agent that is pushed to.
fn pushed() -> (Posted, Server) {
    let agent = Posted::saying(|request| result(request, "done"));
    let server = Server::configured(&agent.configuration("helper", ""));
    (agent, server)
}

#[test]
fn what_an_agent_says_of_itself_is_shown() {
    let (_agent, server) = pushed();
    assert!(server.agent("helper").get("heartbeat").is_none());
    server.takes(&heartbeat("helper", "code", "online"));
    let shown = server.agent("helper")["heartbeat"].clone();
    assert_eq!((&shown["status"], &shown["resources"]), (&json!("online"), &json!({"gpu_vram_mb": 512})), "{shown:#}");
    assert!(shown["at"].as_str().expect("a time") > "2026-01-20", "when it came: {shown:#}");
    let mut command = crosspoint(&["agents", "show", "helper", "--server", &server.url()]);
    let text = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
    assert!(text.contains("contract    message 1.0"), "{text}");
    assert!(text.contains("heartbeat   online at ") && text.contains(r#"{"gpu_vram_mb":512}"#), "{text}");
}

#[test]
fn an_agent_that_is_busy_gets_no_new_work_and_keeps_what_it_has() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    let first = server.begin("helper");
    let request = agent.request(1);
    server.takes(&heartbeat("helper", "code", "busy"));
    let second = server.begin("helper");
    let job = server.job(&second);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("queued"), &json!(0)), "{job:#}");
    assert!(job["stuck"]["reason"].as_str().expect("a reason").starts_with("agent helper is away"), "{job:#}");
    server.takes(&result(&request, "done"));
    assert_eq!(server.job(&first)["state"], "completed");
    assert_eq!(server.job(&second)["state"], "queued", "a reply does not end that it is busy");
    server.takes(&heartbeat("helper", "code", "online"));
    assert_eq!(agent.request(2)["request_id"], json!(second));
}

#[test]
fn an_agent_that_leaves_gets_no_work_until_it_is_heard_of_again() {
    let (agent, server) = pushed();
    server.takes(&heartbeat("helper", "code", "offline"));
    let id = server.begin("helper");
    assert_eq!(server.job(&id)["state"], "queued");
    assert!(server.agent("helper")["away_since"].is_string());
    assert!(agent.had("work_request").is_empty());
    server.takes(&heartbeat("helper", "code", "online"));
    assert_eq!(server.over(&id)["outcome"]["outputs"], "done");
    assert!(server.agent("helper")["away_since"].is_null());
}

#[test]
fn an_agent_that_leaves_and_drops_its_poll_has_left() {
    let server = Server::configured(&pulling("puller", ""));
    let mut poll = server.connect();
    let head = "GET /api/agent/messages?agent=puller&wait=60 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    std::io::Write::write_all(&mut poll, head.as_bytes()).expect("it can be asked");
    until("it is there", || server.agent("puller")["away_since"].is_null().then_some(()));
    server.takes(&heartbeat("puller", "code", "offline"));
    drop(poll);
    // Whenever the server notices that the poll is gone, nothing follows from it.
    for _ in 0..20 {
        let id = server.begin("puller");
        assert_eq!(server.job(&id)["state"], "queued");
    }
    let first = server.pulled("puller");
    assert_eq!(first["type"], "work_request", "a poll says that it is back");
}

#[test]
fn replies_of_an_agent_that_has_left_say_that_it_is_back() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", ""));
    server.begin("helper");
    let request = agent.request(1);
    server.takes(&heartbeat("helper", "code", "offline"));
    server.takes(&result(&request, "done"));
    until("it is there", || server.agent("helper")["away_since"].is_null().then_some(()));
    assert_eq!(server.agent("helper")["heartbeat"]["status"], "online");
}

#[test]
fn a_heartbeat_of_an_agent_that_nobody_knows_is_refused() {
    let server = Server::start();
    let answer = server.hears(&heartbeat("nobody", "code", "online"));
    assert_eq!((answer.status, &answer.json()["payload"]["error_code"]), (404, &json!(5003)), "{answer:?}");
    // An agent of another contract sends none.
    let answer = server.hears(&heartbeat("echo", "code", "online"));
    assert_eq!(answer.status, 404, "{answer:?}");
}

#[test]
fn a_heartbeat_without_a_name_or_a_status_is_refused_with_its_place() {
    let (_agent, server) = pushed();
    for (member, value) in
        [("agent_id", Value::Null), ("agent_id", json!(7)), ("status", Value::Null), ("status", json!("well"))]
    {
        let mut sign = heartbeat("helper", "code", "online");
        sign["payload"][member] = value.clone();
        let answer = server.hears(&sign);
        let payload = answer.json()["payload"].clone();
        assert_eq!((answer.status, &payload["error_code"]), (400, &json!(5003)), "{member}: {value}: {answer:?}");
        let place = payload["error_context"]["field_name"].as_str().unwrap_or_default();
        assert!(place.ends_with(member), "{member}: {value}: {payload:#}");
    }
    assert!(server.agent("helper").get("heartbeat").is_none());
}

#[test]
fn whatever_else_is_wrong_with_a_heartbeat_does_no_harm() {
    let (_agent, server) = pushed();
    for (member, value) in [("resources", json!("many")), ("current_task_id", json!(7)), ("timestamp", json!("now"))] {
        let mut sign = heartbeat("helper", "code", "busy");
        sign["payload"][member] = value.clone();
        server.takes(&sign);
        assert_eq!(server.agent("helper")["heartbeat"]["status"], "busy", "{member}");
        server.takes(&heartbeat("helper", "code", "online"));
    }
}

#[test]
fn a_heartbeat_says_nothing_about_jobs() {
    let agent = Posted::taking();
    let server = Server::configured(&agent.configuration("helper", "silence_seconds = 0.5"));
    let id = server.begin_once("helper");
    let request = agent.request(1);
    // It names its task, and is still no sign of life of the work.
    let mut sign = heartbeat("helper", "code", "online");
    sign["payload"]["current_task_id"] = request["payload"]["task_id"].clone();
    let failed = until("the work is given up", || {
        server.takes(&sign);
        Some(server.job(&id)).filter(|job| job["outcome"].is_object())
    });
    assert_eq!(failed["outcome"]["failure"]["code"], "timeout", "{failed:#}");
}

#[test]
fn an_agent_that_registered_beats_too() {
    let server = Server::start();
    server.registers(&registration("digger", &["dig"]));
    server.takes(&heartbeat("digger", "code", "busy"));
    server.polled("agent=digger");
    let id = server.begin("dig");
    assert_eq!(server.job(&id)["state"], "queued");
    server.takes(&heartbeat("digger", "code", "online"));
    assert_eq!(server.pulled("digger")["request_id"], json!(id));
}

#[test]
fn resources_that_would_fill_the_memory_are_not_kept() {
    let (_agent, server) = pushed();
    let mut large = heartbeat("helper", "code", "online");
    large["payload"]["resources"] = json!({"note": "x".repeat(5_000)});
    server.takes(&large);
    let shown = server.agent("helper")["heartbeat"].clone();
    assert_eq!((&shown["status"], &shown["resources"]), (&json!("online"), &Value::Null), "{shown:#}");
}
