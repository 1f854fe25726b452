//! A caller sees and changes its own work alone: at every door, by guessed ids, in lists, and by keys.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::server::{Answer, Server, until};
use crate::support::tokens::{self, Two, with};

fn two() -> Two {
    Two::on(Server::start())
}

/// A request for work at each door: the path, and the document with this id in it.
fn doors(id: &str, text: &str) -> Vec<(&'static str, Value)> {
    let now = "2026-01-19T04:21:04Z";
    vec![
        ("/api/v1/jobs?wait=60", json!({"work": "echo", "input": {"text": text}, "request_id": id})),
        ("/agents/run/sync", json!({"request_id": id, "task_type": "echo", "inputs": {"text": text}})),
        ("/tasks?wait=60", json!({"id": id, "type": "echo", "payload": {"text": text}})),
        (
            "/api/agent/message?wait=60",
            json!({
                "protocol_version": "1.0", "message_id": id, "from_agent": "orchestrator", "to_agent": "code",
                "timestamp": now, "trace_id": id, "request_id": id, "type": "work_request",
                "payload": {"task_id": id, "work_type": "echo", "parameters": {"text": text}, "hints": {}},
            }),
        ),
        (
            "/api/v1/bridge?wait=60",
            json!({
                "request_id": id, "version": "1.0", "phase": 1, "phase_name": "Ask", "agent_name": "echo",
                "prompt": text, "timeout_seconds": 60, "created_at": "2026-01-19T04:21:04+00:00", "context": {},
            }),
        ),
    ]
}

fn listed(two: &Two, token: &str) -> Vec<String> {
    let page = with(&two.server, Some(token), "GET", "/api/v1/jobs", "").json();
    let jobs = page["jobs"].as_array().expect("a list");
    jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

/// Everything that can be asked about a job by its id.
fn questions(id: &str) -> Vec<(&'static str, String, String)> {
    let native = |what: &str| format!("/api/v1/jobs/{id}{what}");
    let task = |what: &str| format!("/tasks/{id}{what}");
    let answer = r#"{"input": "yes"}"#;
    let of = |method, path, body: &str| (method, path, body.to_owned());
    vec![
        of("GET", native(""), ""),
        of("GET", native("/events"), ""),
        of("GET", native("/output"), ""),
        of("GET", native("/document"), ""),
        of("POST", native("/cancel"), ""),
        of("POST", native("/answer"), answer),
        of("POST", native("/retry"), ""),
        of("GET", task(""), ""),
        of("GET", task("/events"), ""),
        of("POST", task("/input"), answer),
        of("POST", task("/cancel"), ""),
    ]
}

#[test]
fn no_caller_finds_the_work_of_another_by_its_ids() {
    let two = two();
    let asked = json!({"work": "ask", "input": {}, "request_id": "mine"}).to_string();
    let job = with(&two.server, Some(&two.one), "POST", "/api/v1/jobs", &asked).json();
    let id = job["id"].as_str().expect("an id");
    let unknown = Uuid::new_v4().to_string();
    for (method, path, body) in questions(id).into_iter().chain(questions("mine")) {
        let answer = with(&two.server, Some(&two.other), method, &path, &body);
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        // As about work that never was.
        let known = |answer: &Answer, id: &str| answer.text().replace(id, "ID").replace("mine", "ID");
        let never = path.replace(id, &unknown).replace("mine", &unknown);
        let never = with(&two.server, Some(&two.other), method, &never, &body);
        let (answer, never) = (known(&answer, id), known(&never, &unknown));
        assert_eq!(without_chance(&answer), without_chance(&never), "{method} {path}");
    }
    let still = with(&two.server, Some(&two.one), "GET", &format!("/api/v1/jobs/{id}"), "");
    assert!(["running", "waiting"].contains(&still.json()["state"].as_str().expect("a state")), "{still:?}");
    assert_eq!(with(&two.server, Some(&two.admin), "GET", &format!("/api/v1/jobs/{id}"), "").status, 200);
}

/// Every message about work that is not a request, with the status that a caller gets which has no such work.
fn messages(id: &str) -> Vec<(u16, String)> {
    let message = |kind: &str, mut payload: Value| {
        payload["task_id"] = json!(id);
        let message = json!({
            "protocol_version": "1.0", "message_id": Uuid::new_v4().to_string(), "from_agent": "code",
            "to_agent": "orchestrator",
            "timestamp": "2026-01-19T04:21:04Z", "trace_id": "0191d3f0-5b1c-7e7a-9d43-2f7a3c1b9e42", "request_id": id,
            "type": kind, "payload": payload,
        });
        message.to_string()
    };
    let used = json!({"duration_seconds": 1, "gpu_vram_mb": 0, "cpu_time_ms": 1});
    let result = json!({"status": "success", "exit_code": 0, "output": "mine", "resources_used": used});
    let step = json!({"number": 1, "name": "dig", "output": ""});
    let error = |code: u32| json!({"error_code": code, "error_message": "Stop.", "error_context": {"task_id": id}});
    vec![
        (403, message("work_result", result)),
        (403, message("work_status", json!({"status": "running", "progress_percent": 50, "step": step}))),
        (404, message("error", error(5301))),
        (404, message("error", error(CANCEL))),
    ]
}

const CANCEL: u32 = 5901;

#[test]
fn no_caller_learns_of_work_that_an_agent_of_messages_has() {
    let two = two();
    let digger = tokens::agent(&two.server, &two.admin, "digger");
    let works = ["dig"];
    let said = json!({"agent_id": "digger", "agent_type": "code", "supported_versions": ["1.0"], "work_types": works});
    let registered = with(&two.server, Some(&digger), "POST", "/api/agent/register", &said.to_string());
    assert_eq!(registered.status, 200, "{registered:?}");
    let body = json!({"work": "dig", "input": {}}).to_string();
    let job = with(&two.server, Some(&two.one), "POST", "/api/v1/jobs", &body).json();
    let id = job["id"].as_str().expect("an id");
    until("the agent has it", || {
        let pulled = with(&two.server, Some(&digger), "GET", "/api/agent/messages?agent=digger&wait=5", "");
        pulled.text().contains(id).then_some(())
    });
    let sent = |token: &str, message: &str| with(&two.server, Some(token), "POST", "/api/agent/message", message);
    let unknown = Uuid::new_v4().to_string();
    for token in [&two.other, &two.admin] {
        for ((status, about), (_, never)) in messages(id).into_iter().zip(messages(&unknown)) {
            let (answer, never) = (sent(token, &about), sent(token, &never));
            assert_eq!(answer.status, status, "{about}: {answer:?}");
            // As about work that never was.
            let same = |answer: &Answer, id: &str| (answer.status, without_chance(&answer.text().replace(id, "ID")));
            assert_eq!(same(&answer, id), same(&never, &unknown), "{about}");
            assert!(!answer.text().contains("digger"), "{answer:?}");
        }
    }
    // Its own caller reports nothing about it either, and cancels it by its id.
    let own: Vec<u16> = messages(id).iter().map(|(_, message)| sent(&two.one, message).status).collect();
    assert_eq!(own, [403, 403, 404, 200]);
    let ended = with(&two.server, Some(&two.one), "GET", &format!("/api/v1/jobs/{id}?wait=60"), "").json();
    assert_eq!(ended["state"], "cancelled", "{ended}");
}

/// What differs from answer to answer: times and ids that are made up.
fn without_chance(text: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    for name in ["metadata", "timestamp", "traceId", "spanId", "message_id"] {
        value.as_object_mut()?.remove(name);
    }
    Some(value)
}

#[test]
fn lists_have_ones_own_work_and_those_who_administer_see_all() {
    let two = two();
    for (token, text) in [(&two.one, "a"), (&two.other, "b"), (&two.one, "c")] {
        let body = json!({"work": "echo", "input": {"text": text}}).to_string();
        assert_eq!(with(&two.server, Some(token), "POST", "/api/v1/jobs?wait=60", &body).status, 200);
    }
    // No page ends, or says that there is more, because of another's work.
    let page =
        |token: &str, query: &str| with(&two.server, Some(token), "GET", &format!("/api/v1/jobs?{query}"), "").json();
    let first = page(&two.one, "limit=1");
    let second = page(&two.one, &format!("limit=1&before={}", first["next"].as_str().expect("there is more")));
    assert_eq!((second["jobs"].as_array().map(Vec::len), &second["next"]), (Some(1), &Value::Null), "{second}");
    assert_eq!(page(&two.other, "limit=1")["next"], Value::Null);
    assert_eq!(
        (listed(&two, &two.one).len(), listed(&two, &two.other).len(), listed(&two, &two.admin).len()),
        (2, 1, 3)
    );
}

#[test]
fn lists_of_work_under_way_have_ones_own_alone() {
    let two = two();
    for token in [&two.one, &two.other] {
        let body = json!({"work": "ask", "input": {"prompt": "which?"}}).to_string();
        let asked = with(&two.server, Some(token), "POST", "/api/v1/jobs", &body).json();
        let path = format!("/api/v1/jobs/{}/events", asked["id"].as_str().expect("an id"));
        let asks = || {
            with(&two.server, Some(token), "GET", &format!("{path}?follow=false"), "")
                .text()
                .contains("event: question")
        };
        until("the agent asks", || asks().then_some(()));
    }
    let waiting = |token: &str, query: &str| {
        let page = with(&two.server, Some(token), "GET", &format!("/api/v1/jobs?state=waiting{query}"), "").json();
        (page["jobs"].as_array().map(Vec::len), page["next"].is_null())
    };
    assert_eq!([waiting(&two.one, ""), waiting(&two.other, "")], [(Some(1), true), (Some(1), true)]);
    assert_eq!(waiting(&two.admin, ""), (Some(2), true));
}

#[test]
fn the_same_key_of_two_callers_is_two_jobs_at_every_door() {
    let two = two();
    let id = Uuid::new_v4().to_string();
    for ((path, mine), (_, theirs)) in doors(&id, "mine").into_iter().zip(doors(&id, "theirs")) {
        let first = with(&two.server, Some(&two.one), "POST", path, &mine.to_string());
        assert_eq!(first.status, 200, "{path}: {first:?}");
        // Neither a conflict nor the other's outcome.
        let second = with(&two.server, Some(&two.other), "POST", path, &theirs.to_string());
        assert_eq!(second.status, 200, "{path}: {second:?}");
        assert!(second.text().contains("theirs") && !second.text().contains("mine"), "{path}: {second:?}");
    }
    assert_eq!(listed(&two, &two.one).len(), 5);
}

#[test]
fn a_caller_cancels_no_work_of_another_by_a_message() {
    let two = two();
    let id = Uuid::new_v4().to_string();
    let (_, mut asking) = doors(&id, "mine").remove(3);
    asking["payload"]["work_type"] = json!("ask");
    let accepted = with(&two.server, Some(&two.one), "POST", "/api/agent/message", &asking.to_string());
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let mut cancel = asking.clone();
    cancel["type"] = json!("error");
    cancel["payload"] = json!({"error_code": 5901, "error_message": "Stop.", "error_context": {"task_id": id}});
    let refused = with(&two.server, Some(&two.other), "POST", "/api/agent/message", &cancel.to_string());
    assert_eq!(refused.status, 404, "{refused:?}");
    let own = with(&two.server, Some(&two.one), "POST", "/api/agent/message", &cancel.to_string());
    assert_eq!(own.status, 200, "{own:?}");
}
