//! Who did what is on record, with ids and names alone.

use serde_json::{Value, json};

use crate::support::message_caller;
use crate::support::server::{Server, until};
use crate::support::tokens::{self, audit, private, with};

const SECRET: &str = "x7content";

/// What someone did, in order.
fn did<'l>(lines: &'l [Value], who: &str) -> Vec<&'l str> {
    lines.iter().filter(|line| line["who"] == who).filter_map(|line| line["act"].as_str()).collect()
}

#[test]
fn what_was_done_is_on_record_with_who_did_it() {
    let mut server = Server::start();
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let post = |token: &str, path: &str, body: &Value| {
        let answer = with(&server, Some(token), "POST", path, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    let job = post(&planner, "/api/v1/jobs", &json!({"work": "ask", "input": {"text": SECRET}}));
    let id = job["id"].as_str().expect("an id").to_owned();
    let read = with(&server, Some(&planner), "GET", &format!("/api/v1/jobs/{id}?wait=0"), "");
    assert_eq!(read.status, 200, "{read:?}");
    // What is refused is not done.
    let refused = with(&server, Some(&planner), "POST", "/api/v1/agents/echo/drain", "");
    assert_eq!(refused.status, 403, "{refused:?}");
    post(&admin, "/api/v1/agents/echo/drain", &json!({"drained": true}));
    post(&admin, "/api/v1/agents/echo/breaker", &json!({"state": "open"}));
    post(&planner, &format!("/api/v1/jobs/{id}/cancel"), &json!({}));
    post(&admin, "/api/v1/tokens/planner/revoke", &json!({}));
    server.stop();
    let lines = audit(&server);
    let text = json!(lines).to_string();
    let did = |who: &str| did(&lines, who);
    assert_eq!(did("planner"), ["submit", "read", "cancel"], "{text}");
    assert_eq!(did("ops"), ["token_create", "drain", "breaker_open", "token_revoke"], "{text}");
    assert_eq!(did("no token"), ["token_create"], "the first one was made while the server was open: {text}");
    let submitted = lines.iter().find(|line| line["act"] == "submit").expect("it is there");
    assert_eq!(submitted["job"], json!(id), "{text}");
    assert!(!text.contains(SECRET) && !text.contains(&admin) && !text.contains(&planner), "{text}");
}

#[test]
fn acts_at_every_endpoint_and_door_are_on_record() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let worker = tokens::agent(&server, &admin, "worker");
    let sent = |token: &str, method: &str, path: &str, body: &Value| {
        let answer = with(&server, Some(token), method, path, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    let post = |token: &str, path: &str, body: &Value| sent(token, "POST", path, body);
    let asked = json!({"work": "ask", "input": {"prompt": SECRET}, "request_id": "r"});
    let id_of = |job: &Value| job["id"].as_str().expect("an id").to_owned();
    // A list is no reading.
    let waiting = || with(&server, Some(&planner), "GET", "/api/v1/jobs?state=waiting", "").text();
    let waits = |id: &str| until("it asks", || waiting().contains(id).then_some(()));
    let first = id_of(&post(&planner, "/api/v1/jobs", &asked));
    for _ in 0..3 {
        assert_eq!(id_of(&post(&planner, "/api/v1/jobs", &asked)), first);
    }
    waits(&first);
    post(&planner, &format!("/api/v1/jobs/{first}/answer"), &json!({"input": SECRET}));
    assert_eq!(sent(&planner, "GET", &format!("/api/v1/jobs/{first}?wait=60"), &json!({}))["state"], "completed");
    let second = id_of(&post(&admin, &format!("/api/v1/jobs/{first}/retry"), &json!({})));
    waits(&second);
    sent(&planner, "GET", &format!("/tasks/{first}"), &json!({}));
    post(&planner, &format!("/tasks/{second}/cancel"), &json!({}));
    for drained in [true, false] {
        post(&admin, "/api/v1/agents/echo/drain", &json!({"drained": drained}));
    }
    for state in ["open", "closed"] {
        post(&admin, "/api/v1/agents/echo/breaker", &json!({"state": state}));
    }
    let session = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    post(&worker, "/api/v1/agents/worker/join", &json!({"session": session, "work": ["dig"], "concurrency": 1}));
    post(&worker, "/api/v1/agents/worker/leave", &json!({"session": session}));
    sent(&admin, "DELETE", "/api/v1/agents/worker", &json!({}));
    post(&admin, "/api/v1/tokens/worker/rotate", &json!({}));
    // A token that was revoked is not revoked again.
    post(&admin, "/api/v1/tokens/worker/revoke", &json!({}));
    post(&admin, "/api/v1/tokens/worker/revoke", &json!({}));
    let lines = audit(&server);
    assert_eq!(did(&lines, "planner"), ["submit", "repeat", "answer", "read", "read", "cancel"], "{lines:?}");
    let by_admin = did(&lines, "ops");
    let agents = ["drain", "undrain", "breaker_open", "breaker_close", "forget"];
    let expected = [&["token_create"; 2][..], &["retry"], &agents, &["token_rotate", "token_revoke"]].concat();
    assert_eq!(by_admin, expected, "{lines:?}");
    let retried = lines.iter().find(|line| line["act"] == "retry").expect("it is there");
    assert_eq!((&retried["job"], &retried["object"]), (&json!(second), &json!(first)));
    assert!(!json!(lines).to_string().contains(SECRET), "{lines:?}");
}

#[test]
fn lists_have_content_for_its_own_caller_alone() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let body = json!({"work": "echo", "input": {"text": SECRET}}).to_string();
    let done = with(&server, Some(&planner), "POST", "/api/v1/jobs?wait=60", &body);
    assert_eq!(done.status, 200, "{done:?}");
    let body = json!({"work": "ask", "input": {"prompt": SECRET}}).to_string();
    assert_eq!(with(&server, Some(&planner), "POST", "/api/v1/jobs", &body).status, 202);
    let own = || with(&server, Some(&planner), "GET", "/api/v1/jobs", "").json();
    let listed = until("it asks", || Some(own()).filter(|page| page["jobs"][0]["question"].is_object()));
    assert_eq!(listed["jobs"][1]["outcome"]["outputs"], json!({"text": SECRET}), "{listed}");
    for listed in
        [with(&server, Some(&admin), "GET", "/api/v1/jobs", ""), private(&server, None, "GET", "/api/v1/jobs", "")]
    {
        assert!(!listed.text().contains(SECRET), "{listed:?}");
        let jobs = listed.json()["jobs"].clone();
        assert_eq!((&jobs[0]["state"], &jobs[1]["outcome"]["status"]), (&json!("waiting"), &json!("completed")));
        assert!(jobs[1]["outcome"]["bytes"].is_u64(), "{jobs}");
    }
    assert_eq!(did(&audit(&server), "ops"), ["token_create"]);
}

#[test]
fn who_cancels_what_is_cancelled_has_read_it() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let body = json!({"work": "ask", "input": {"prompt": SECRET}}).to_string();
    let job = with(&server, Some(&planner), "POST", "/api/v1/jobs", &body).json();
    let path = format!("/api/v1/jobs/{}/cancel", job["id"].as_str().expect("an id"));
    for token in [&planner, &admin] {
        assert_eq!(with(&server, Some(token), "POST", &path, "").status, 200);
    }
    let lines = audit(&server);
    assert_eq!(did(&lines, "ops"), ["token_create", "read"], "{lines:?}");
    assert!(did(&lines, "planner").contains(&"cancel"), "{lines:?}");
}

#[test]
fn outcomes_that_a_caller_pulls_are_on_record_as_read() {
    let mut server = Server::start();
    server.stop();
    let token = "p".repeat(32);
    std::fs::write(server.directory().join("planner.token"), &token).expect("it can be written");
    server.configure("[[caller]]\nname = \"planner\"\ntoken_file = \"planner.token\"\n");
    server.restart();
    let mut request = message_caller::request(&uuid::Uuid::new_v4().to_string(), "echo", &json!({"text": SECRET}));
    request["to_agent"] = json!("code");
    let sent = with(&server, Some(&token), "POST", message_caller::MESSAGES, &request.to_string());
    assert_eq!(sent.status, 202, "{sent:?}");
    for _ in 0..2 {
        until("the outcome is there", || {
            let pulled = with(&server, Some(&token), "GET", "/api/agent/messages?agent=planner&wait=5", "");
            pulled.text().contains(SECRET).then_some(())
        });
    }
    let lines = audit(&server);
    assert_eq!(did(&lines, "planner"), ["submit", "read"], "{lines:?}");
    assert_eq!(lines.iter().find(|line| line["act"] == "read").expect("it is there")["object"], "messages");
}
