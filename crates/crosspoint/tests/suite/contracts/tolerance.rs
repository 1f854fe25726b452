//! ALL-11 at the doors, and where people see what was wrong.

use std::sync::atomic::{AtomicUsize, Ordering};

use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Level;
use serde_json::{Value, json};

use crate::support::documents::findings;
use crate::support::message_caller;
use crate::support::program::crosspoint;
use crate::support::run_caller::Following;
use crate::support::scripted_agent::{ScriptedAgent, event};
use crate::support::server::Server;
use crate::support::task_agent::{Reply, TaskAgent, completed};

/// Requests as clients write them that have a field for every member.
#[test]
fn a_request_with_nulls_for_optional_members_is_accepted_at_every_door() {
    let server = Server::start();
    let run = json!({
        "request_id": "r", "task_type": "echo", "workflow_id": null, "stage_id": null, "user_id": null, "mode": null,
        "risk_tier": null, "domain_id": null, "inputs": {"a": 1}, "budgets": null,
    });
    let answer = server.post("/agents/run/sync", &run.to_string());
    assert_eq!((answer.status, &answer.json()["outputs"]), (200, &json!({"a": 1})), "{answer:?}");
    assert!(answer.json()["warnings"].to_string().contains("ALL-11"), "{answer:?}");
    let task = json!({
        "id": "t", "type": "echo", "payload": {"a": 2}, "context": null, "routing": {"target": null},
        "observability": {"traceId": null, "spanId": null, "baggage": null}, "retryPolicy": null,
    });
    let answer = server.post("/tasks?wait=30", &task.to_string());
    assert_eq!((answer.status, &answer.json()["result"]), (200, &json!({"a": 2})), "{answer:?}");
    let bridge = json!({
        "request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "agent_name": "echo", "prompt": "p",
        "phase": null, "phase_name": null, "timeout_seconds": null, "created_at": null, "context": null, "model": null,
    });
    let answer = server.post("/api/v1/bridge?wait=30", &bridge.to_string());
    assert!(answer.status < 300, "{answer:?}");
    let mut message = message_caller::request("32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "echo", &json!({"a": 4}));
    message["payload"]["hints"] = json!({"max_duration_seconds": null, "max_memory_mb": null});
    (message["x_custom_fields"], message["priority"]) = (Value::Null, Value::Null);
    let answer = server.message_result(&message);
    assert_eq!(answer["payload"]["output"], "{\"a\":4}", "{answer}");
    let warnings = &answer["x_custom_fields"]["x_crosspoint"]["warnings"];
    assert!(warnings.to_string().contains("ALL-11"), "{answer}");
    let request = json!({"work": "echo", "input": {"a": 3}, "agent": null, "limits": null});
    let answer = server.post("/api/v1/jobs?wait=30", &request.to_string());
    assert!(answer.status < 300, "{answer:?}");
}

/// RUN-2: a limit on time counts under each of its names, and reaches the agent under the name that the caller wrote.
#[test]
fn budgets_limit_the_time_under_each_name() {
    for (name, limit) in [("max_seconds", 0.2), ("timeout_seconds", 0.2), ("timeout_ms", 200.0), ("max_time_ms", 200.0)]
    {
        let agent = ScriptedAgent::start(|_, connection| connection.until_gone());
        let server = Server::configured(&agent.far(""));
        let body = json!({"request_id": name, "task_type": "far", "inputs": {}, "budgets": {name: limit}});
        let answer = server.post("/agents/run/sync", &body.to_string()).json();
        assert_eq!(answer["error"]["code"], "TIMEOUT", "{name}: {answer}");
        let sent = agent.requests()[0].json()["budgets"].clone();
        let names: Vec<&String> = sent.as_object().expect("an object").keys().collect();
        assert_eq!(names, [name], "{sent}");
    }
}

/// RUN-6: how far a run is, under each name that agents use.
#[test]
fn progress_is_read_under_each_name() {
    for name in ["percent", "progress", "pct"] {
        let agent = ScriptedAgent::start(move |asked, connection| {
            let progress = event("progress", &json!({name: 40, "step": "Dig"}));
            connection.events(asked.started() + &progress + &event("final", &asked.response(json!({}))))
        });
        let server = Server::configured(&agent.far(""));
        let job = server.done("far", &json!({}));
        assert_eq!(job["progress"]["percent"].as_f64(), Some(40.0), "{name}: {job}");
        let body = json!({"request_id": "mine", "task_type": "far", "inputs": {}}).to_string();
        let told = Following::begin(&server, &body).rest();
        let progress = told.iter().find(|(event, _)| event == "progress").expect("it is passed on");
        assert_eq!(progress.1[name], 40, "as it was: {progress:?}");
    }
}

/// Broken rules have a level wherever they are shown.
#[test]
fn levels_are_shown_in_the_api_in_events_by_commands_and_in_metrics() {
    let agent = ScriptedAgent::start(|asked, connection| {
        let mut last = asked.response(json!({"n": 1}));
        (last["usage"], last["task_type"]) = (json!(5), Value::Null);
        connection.events(asked.started() + &event("final", &last))
    });
    let server = Server::configured(&agent.far(""));
    let job = server.post("/api/v1/jobs?wait=30", &json!({"work": "far"}).to_string()).json();
    let id = job["id"].as_str().expect("it has an id");
    let levels = |shown: &Value| {
        let all = shown.as_array().expect("a list").iter();
        let mut all: Vec<(String, String)> =
            all.map(|one| (one["clause"].to_string(), one["level"].to_string())).collect();
        all.sort();
        all
    };
    let wanted = [("\"RUN-107\"", "\"error\""), ("\"RUN-3.3\"", "\"warning\"")];
    let wanted: Vec<(String, String)> = wanted.map(|(clause, level)| (clause.to_owned(), level.to_owned())).into();
    assert_eq!(levels(&job["violations"]), wanted, "{job}");
    let events = server.get(&format!("/api/v1/jobs/{id}/events?follow=false")).text();
    let last = events.trim_end().rsplit("data: ").next().expect("there is a last event");
    let last: Value = serde_json::from_str(last).expect("it is JSON");
    assert_eq!(levels(&last["violations"]), wanted, "{events}");
    let shown = crosspoint(&["jobs", "show", id, "--server", &server.url()]).output().expect("it starts");
    let shown = String::from_utf8(shown.stdout).expect("it is UTF-8");
    let line = |name: &str, clause: &str| {
        shown.lines().any(|line| line.trim_start().starts_with(name) && line.contains(clause))
    };
    assert!(line("violation", "RUN-107") && line("warning", "RUN-3.3"), "{shown}");
    let metrics = server.get("/metrics").text();
    for level in ["error", "warning"] {
        assert!(metrics.contains(&format!("crosspoint_violations_total{{level=\"{level}\"}} 1")), "{metrics}");
    }
}

/// What a proxy says in front of an agent in trouble is not the end of the task, however alike its words are.
#[test]
fn an_error_without_an_id_in_answer_to_a_poll_is_not_the_end_of_the_task() {
    let looks = AtomicUsize::new(0);
    let agent = TaskAgent::answering(move |call| match &*call.what {
        "look" => match looks.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::Json(503, json!({"status": "failed", "error": "upstream connect error"})),
            _ => Reply::Json(200, completed(&json!(call.id), &json!({"n": 1}))),
        },
        _ => Reply::Kept,
    });
    let server = Server::configured(&agent.configuration("helper", ""));
    let job = server.post("/api/v1/jobs?wait=30", &json!({"work": "helper"}).to_string()).json();
    assert_eq!(job["outcome"]["outputs"], json!({"n": 1}), "{job}");
}

/// A question without a prompt is asked with the words that it has, and with our own if it has none. Everybody can read
/// the job meanwhile.
#[test]
fn a_question_without_a_prompt_can_be_shown_and_answered() {
    for (asked, prompt, schema) in [
        (json!({}), "The agent needs input.", Value::Null),
        (json!({"question": "Which?", "schema": "s"}), "Which?", Value::Null),
        (json!({"prompt": null, "schema": null}), "The agent needs input.", Value::Null),
        (
            json!({"prompt": {"x": 1}, "message": "Size?", "schema": {"type": "string"}}),
            "Size?",
            json!({"type": "string"}),
        ),
    ] {
        let agent = TaskAgent::start();
        let server = Server::configured(&agent.configuration("helper", ""));
        let body = json!({"id": "t", "type": "helper", "payload": {}}).to_string();
        server.post("/tasks", &body);
        let id = agent.awaited("look", 1).id;
        agent.stands(&id, json!({"status": "input_required", "inputRequest": asked}));
        let job = server.in_state(&id, "waiting");
        assert_eq!((&job["question"]["prompt"], &job["question"]["schema"]), (&json!(prompt), &schema), "{job}");
        let task = server.get("/tasks/t");
        let mut found = findings(&task.body, Kind::TaskResponse);
        found.retain(|finding| finding.level == Level::Error);
        assert!(found.is_empty(), "{found:?} in {task:?}");
        let listed = crosspoint(&["jobs", "list", "--server", &server.url()]).output().expect("it starts");
        assert!(listed.status.success(), "{listed:?}");
        agent.stands(&id, completed(&json!(id), &json!({})));
        assert_eq!(server.ended(&id)["state"], "completed");
    }
}
