//! What is open when its token is revoked, replaced or expires, or when the server begins to ask for tokens: streams
//! end, and waits are refused.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::server::{Answer, Server, head, until};
use crate::support::tokens::{self, with};

/// Less than any wait or stream here lasts by itself, and enough for a busy machine.
const SOON: Duration = Duration::from_secs(45);

/// A server whose agent for `echo` takes nothing, so that such work waits for ever.
struct Idle {
    server: Server,
    admin: String,
}

impl Idle {
    fn start() -> Idle {
        let server = Server::start();
        let admin = tokens::closed(&server);
        let drained = with(&server, Some(&admin), "POST", "/api/v1/agents/echo/drain", r#"{"drained": true}"#);
        assert_eq!(drained.status, 200, "{drained:?}");
        Idle { server, admin }
    }

    fn change(&self, name: &str, how: &str, body: &str) -> Value {
        let answer = with(&self.server, Some(&self.admin), "POST", &format!("/api/v1/tokens/{name}/{how}"), body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Sends a request, and leaves it to its answer.
    fn sent(&self, token: &str, method: &str, path: &str, body: &Value) -> TcpStream {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = self.server.connect();
        let head = head(method, path, &[("authorization", &format!("Bearer {token}"))], body.len());
        stream.write_all((head + &body).as_bytes()).expect("it can be sent");
        stream
    }

    /// The jobs that those who administer the server see.
    fn jobs(&self) -> Vec<Value> {
        let page = with(&self.server, Some(&self.admin), "GET", "/api/v1/jobs", "").json();
        page["jobs"].as_array().cloned().unwrap_or_default()
    }

    /// A caller's job that waits, by a door of its own ids.
    fn task(&self, token: &str) -> (String, &'static str) {
        let task = json!({"id": "5f0c3a52-3c1e-4b0e-9d5b-0a5f7a0f4f10", "type": "echo", "payload": {}});
        let answer = with(&self.server, Some(token), "POST", "/tasks", &task.to_string());
        assert_eq!(answer.status, 202, "{answer:?}");
        let job = self.jobs().remove(0);
        (job["id"].as_str().expect("an id").to_owned(), "5f0c3a52-3c1e-4b0e-9d5b-0a5f7a0f4f10")
    }
}

/// The head of a stream, which is there as soon as the stream is.
fn begun(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it answers");
        text.push(byte[0]);
    }
    let text = String::from_utf8(text).expect("it is text");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

/// What is left of an answer until its connection ends.
fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn run() -> Value {
    json!({"request_id": "b7c1a3f0-6a4e-4c57-8a39-3f6a3c9d1e22", "task_type": "echo", "inputs": {}})
}

#[test]
fn streams_end_when_their_token_is_revoked() {
    let idle = Idle::start();
    let planner = tokens::caller(&idle.server, &idle.admin, "planner");
    let other = tokens::caller(&idle.server, &idle.admin, "other");
    let (job, task) = idle.task(&planner);
    let mut streams = vec![
        idle.sent(&planner, "GET", &format!("/api/v1/jobs/{job}/events"), &Value::Null),
        idle.sent(&planner, "GET", &format!("/api/v1/jobs/{job}/output?follow=true"), &Value::Null),
        idle.sent(&planner, "GET", &format!("/tasks/{task}/events"), &Value::Null),
        idle.sent(&planner, "POST", "/agents/run/stream", &run()),
    ];
    streams.iter_mut().for_each(|stream| drop(begun(stream)));
    let mut kept = idle.sent(&other, "POST", "/agents/run/stream", &run());
    begun(&mut kept);

    let revoked_at = Instant::now();
    idle.change("planner", "revoke", "");
    for stream in streams {
        let text = rest(stream);
        assert!(revoked_at.elapsed() < SOON, "{:?}", revoked_at.elapsed());
        assert!(!text.ends_with("0\r\n\r\n"), "what was cut off does not look whole: {text}");
    }
    // The stream of another caller goes on, to its end.
    for job in idle.jobs() {
        let path = format!("/api/v1/jobs/{}/cancel", job["id"].as_str().expect("an id"));
        assert_eq!(with(&idle.server, Some(&idle.admin), "POST", &path, "").status, 200);
    }
    let text = rest(kept);
    assert!(text.contains("cancelled") && text.ends_with("0\r\n\r\n"), "{text}");
}

#[test]
fn waits_are_refused_when_their_token_is_revoked() {
    let idle = Idle::start();
    let planner = tokens::caller(&idle.server, &idle.admin, "planner");
    let (job, task) = idle.task(&planner);
    let worker = tokens::agent(&idle.server, &idle.admin, "worker");
    let session = "00000000-0000-4000-8000-000000000001";
    let joining = json!({"session": session, "work": ["w"], "concurrency": 1, "lease_seconds": 300});
    let joined = with(&idle.server, Some(&worker), "POST", "/api/v1/agents/worker/join", &joining.to_string());
    assert_eq!(joined.status, 200, "{joined:?}");
    let waits = [
        idle.sent(&planner, "GET", &format!("/api/v1/jobs/{job}?wait=60"), &Value::Null),
        idle.sent(&planner, "GET", &format!("/tasks/{task}?wait=60"), &Value::Null),
        idle.sent(&planner, "POST", "/api/v1/jobs?wait=60", &json!({"work": "echo", "input": {}})),
        idle.sent(&planner, "POST", "/agents/run/sync", &run()),
        idle.sent(
            &worker,
            "POST",
            "/api/v1/agents/worker/take?wait=60",
            &json!({"session": session, "room": 1, "holding": []}),
        ),
    ];
    until("the work is accepted", || (idle.jobs().len() == 3).then_some(()));
    let revoked_at = Instant::now();
    idle.change("planner", "revoke", "");
    idle.change("worker", "revoke", "");
    for stream in waits {
        let answer = Answer::read(&mut BufReader::new(stream)).expect("it is answered");
        assert_eq!(answer.status, 401, "{answer:?}");
        assert!(revoked_at.elapsed() < SOON, "{:?}", revoked_at.elapsed());
    }
}

#[test]
fn a_wait_ends_when_its_token_expires() {
    let idle = Idle::start();
    // On a machine that is too slow for it the token expires before it is used. The next one lasts longer.
    let answer = (1..6).map(|n| 2 << n).find_map(|seconds| {
        let body = json!({"name": format!("brief-{seconds}"), "for": "caller", "expires_seconds": seconds / 2});
        let brief = tokens::create(&idle.server, Some(&idle.admin), &body);
        let wait = idle.sent(&brief, "POST", "/api/v1/jobs?wait=60", &json!({"work": "echo", "input": {}}));
        let answer = Answer::read(&mut BufReader::new(wait)).expect("it is answered");
        Some(answer).filter(|_| idle.jobs().len() == 1)
    });
    let answer = answer.expect("it was accepted, and waited");
    assert_eq!(answer.status, 401, "{answer:?}");
    assert!(answer.text().contains("expired"), "{answer:?}");
}

#[test]
fn what_came_without_a_token_ends_when_the_server_asks_for_tokens() {
    let server = Server::start();
    assert_eq!(server.post("/api/v1/agents/echo/drain", r#"{"drained": true}"#).status, 200);
    let job = server.submit(r#"{"work": "echo"}"#)["id"].as_str().expect("an id").to_owned();
    let sent = |path: &str| {
        let mut stream = server.connect();
        stream.write_all(head("GET", path, &[], 0).as_bytes()).expect("it can be sent");
        stream
    };
    let mut stream = sent(&format!("/api/v1/jobs/{job}/events"));
    begun(&mut stream);
    let wait = sent(&format!("/api/v1/jobs/{job}?wait=60"));
    let closed_at = Instant::now();
    let admin = tokens::closed(&server);
    let text = rest(stream);
    assert!(!text.ends_with("0\r\n\r\n"), "what was cut off does not look whole: {text}");
    let answer = Answer::read(&mut BufReader::new(wait)).expect("it is answered");
    assert_eq!(answer.status, 401, "{answer:?}");
    assert!(closed_at.elapsed() < SOON, "{:?}", closed_at.elapsed());
    assert_eq!(with(&server, Some(&admin), "GET", &format!("/api/v1/jobs/{job}"), "").status, 200);
}

#[test]
fn a_token_that_is_replaced_is_good_until_the_overlap_is_over() {
    let idle = Idle::start();
    let planner = tokens::caller(&idle.server, &idle.admin, "planner");
    let (job, _) = idle.task(&planner);
    let open = || {
        let mut stream = idle.sent(&planner, "GET", &format!("/api/v1/jobs/{job}/events"), &Value::Null);
        begun(&mut stream);
        stream
    };
    let kept = open();
    idle.change("planner", "rotate", r#"{"overlap_seconds": 3600}"#);
    let cancel = with(&idle.server, Some(&planner), "POST", &format!("/api/v1/jobs/{job}/cancel"), "");
    assert_eq!(cancel.status, 200, "{cancel:?}");
    let text = rest(kept);
    assert!(text.contains("cancelled") && text.ends_with("0\r\n\r\n"), "{text}");
}

#[test]
fn a_token_that_replaces_or_revokes_itself_is_told_so() {
    let idle = Idle::start();
    let rotated = with(&idle.server, Some(&idle.admin), "POST", "/api/v1/tokens/ops/rotate", "");
    assert_eq!(rotated.status, 200, "{rotated:?}");
    let token = rotated.json()["token"].as_str().expect("a token").to_owned();
    assert_eq!(with(&idle.server, Some(&idle.admin), "GET", "/api/v1/jobs", "").status, 401);
    let revoked = with(&idle.server, Some(&token), "POST", "/api/v1/tokens/ops/revoke", "");
    assert_eq!(revoked.status, 200, "{revoked:?}");
    assert_eq!(with(&idle.server, Some(&token), "GET", "/api/v1/jobs", "").status, 401);
}
