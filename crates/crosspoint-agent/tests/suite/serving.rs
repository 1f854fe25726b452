//! What callers of the run and the task contract get.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_agent::{Agent, Context, Failure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::Served;

#[derive(Deserialize)]
struct Sum {
    of: Vec<i64>,
}

async fn sum(input: Sum, _: Context) -> Result<Value, Failure> {
    Ok(json!({"sum": input.of.iter().sum::<i64>()}))
}

async fn deploy(_: Value, context: Context) -> Result<Value, Failure> {
    context.progress(40.0, "Configure");
    context.output().write_all("PLAY [all] \u{fc}\n".as_bytes()).await?;
    context.artifact("report.txt", "text/plain", "all well")?;
    Ok(json!({"changed": 3}))
}

async fn asks(_: Value, context: Context) -> Result<Value, Failure> {
    let answer: String = context.ask("Which zone?", Some(&json!({"type": "string"}))).await?;
    Ok(json!({"zone": answer}))
}

async fn fails(_: Value, _: Context) -> Result<(), Failure> {
    Err(Failure::new("no such host").code("NO_HOST"))
}

async fn panics(_: Value, _: Context) -> Result<(), Failure> {
    panic!("on purpose")
}

async fn waits(_: Value, context: Context) -> Result<Value, Failure> {
    context.cancelled().await;
    Ok(json!({"stopped": true}))
}

fn agent() -> Agent {
    Agent::new("worker")
        .on("sum", sum)
        .on("deploy", deploy)
        .on("asks", asks)
        .on("fails", fails)
        .on("panics", panics)
        .on("waits", waits)
        .forgetful()
}

fn run(served: &Served, work: &str, inputs: &Value) -> (u16, Value) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let id = format!("r-{}", MADE.fetch_add(1, Ordering::Relaxed));
    let answer =
        served.post("/agents/run/sync", &json!({"request_id": id, "task_type": work, "inputs": inputs}).to_string());
    (answer.status, answer.json())
}

#[test]
fn a_run_gets_the_outputs_text_and_artifacts_of_its_handler() {
    let served = Served::start(agent());
    let (status, sum) = run(&served, "sum", &json!({"of": [1, 2, 39]}));
    assert_eq!((status, &sum["ok"], &sum["outputs"]), (200, &json!(true), &json!({"sum": 42})), "{sum}");
    let (status, deployed) = run(&served, "deploy", &json!({}));
    assert_eq!((status, &deployed["outputs"]["changed"]), (200, &json!(3)), "{deployed}");
    assert!(deployed.to_string().contains("PLAY [all] \u{fc}"), "{deployed}");
    assert!(deployed.to_string().contains("report.txt"), "{deployed}");
}

#[test]
fn what_a_handler_does_wrong_is_the_failure_of_one_job() {
    let served = Served::start(agent());
    let (_, failed) = run(&served, "fails", &json!({}));
    assert_eq!((&failed["ok"], &failed["error"]["message"]), (&json!(false), &json!("no such host")), "{failed}");
    assert!(failed["error"].to_string().contains("NO_HOST"), "{failed}");
    let (_, panicked) = run(&served, "panics", &json!({}));
    assert_eq!((&panicked["ok"], &panicked["error"]["message"]), (&json!(false), &json!("the handler panicked")));
    let (_, mistaken) = run(&served, "sum", &json!({"of": "secret-77"}));
    assert_eq!(mistaken["ok"], json!(false), "{mistaken}");
    assert!(!mistaken["error"].to_string().contains("secret-77"), "{mistaken}");
    let (status, refused) = run(&served, "unheard_of", &json!({}));
    assert!(status >= 400 && refused["ok"] == json!(false), "{refused}");
    assert_eq!(run(&served, "sum", &json!({"of": [1]})).0, 200, "the agent goes on");
}

#[test]
fn a_stream_of_a_run_has_its_progress_and_ends_with_its_outcome() {
    let served = Served::start(agent());
    let request = json!({"request_id": "s-1", "task_type": "deploy", "inputs": {}}).to_string();
    let stream = served.post("/agents/run/stream", &request).body;
    assert!(stream.contains("event: started") && stream.contains("event: final"), "{stream}");
}

#[test]
fn a_task_may_ask_and_be_answered_polled_and_cancelled() {
    let served = Served::start(agent());
    let id = "550e8400-e29b-41d4-a716-446655440010";
    let task = json!({"id": id, "type": "asks", "payload": {}}).to_string();
    assert_eq!(served.post("/tasks", &task).status, 202);
    let path = format!("/tasks/{id}");
    let asked = loop {
        let now = served.get(&path).json();
        if now["status"] == "waiting_input"
            || now["status"] == "input_required"
            || now.to_string().contains("Which zone?")
        {
            break now;
        }
    };
    assert!(asked.to_string().contains("Which zone?"), "{asked}");
    assert_eq!(served.post(&format!("{path}/input"), r#"{"input": "north"}"#).status, 202);
    let done = loop {
        let now = served.get(&path).json();
        if now["status"] == "completed" {
            break now;
        }
    };
    assert!(done.to_string().contains("north"), "{done}");
    let other = "550e8400-e29b-41d4-a716-446655440011";
    assert_eq!(served.post("/tasks", &json!({"id": other, "type": "waits", "payload": {}}).to_string()).status, 202);
    assert_eq!(served.post(&format!("/tasks/{other}/cancel"), "").status, 200);
    assert_eq!(served.get(&format!("/tasks/{other}")).json()["status"], "cancelled");
}

fn envelope(action: &str, params: &Value) -> String {
    json!({
        "context": {"feature_id": "005-user-auth", "workflow": "specify", "iteration": 1},
        "paths": {"spec": "specs/005-user-auth/spec.md"},
        "task": {"action": action, "params": params},
    })
    .to_string()
}

#[test]
fn an_envelope_gets_an_output_envelope() {
    let served = Served::start(agent());
    let answer = served.post("/agents/worker/envelope", &envelope("deploy", &json!({})));
    let output = answer.json();
    assert_eq!((answer.status, &output["success"], &output["recommendation"]), (200, &json!(true), &json!("proceed")));
    assert_eq!(output["artifacts"][0]["path"], "report.txt", "{output}");
    assert!(output["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{output}");
    let failed = served.post("/agents/worker/envelope", &envelope("fails", &json!({}))).json();
    assert_eq!((&failed["success"], &failed["summary"]), (&json!(false), &json!("no such host")), "{failed}");
    let other = served.post("/agents/stranger/envelope", &envelope("sum", &json!({"of": []})));
    assert!(other.status == 404 || other.status == 400, "{other:?}");
    assert_eq!(other.json()["success"], json!(false), "{other:?}");
    let unknown = served.post("/agents/worker/envelope", &envelope("unheard_of", &json!({})));
    assert!(unknown.status >= 400 && unknown.json()["success"] == json!(false), "{unknown:?}");
}

fn message(kind: &str, id: &str, payload: &Value) -> String {
    json!({
        "protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001", "from_agent": "orchestrator",
        "to_agent": "infra", "timestamp": "2026-01-19T04:21:04Z", "trace_id": id, "request_id": id, "type": kind,
        "payload": payload, "x_custom_fields": {},
    })
    .to_string()
}

#[test]
fn a_pushed_message_is_answered_with_its_result_and_work_can_be_cancelled() {
    let served = Served::start(agent());
    let id = "550e8400-e29b-41d4-a716-446655440020";
    let request = |work: &str, id: &str| {
        message(
            "work_request",
            id,
            &json!({"task_id": id, "work_type": work, "parameters": {"of": [1, 2]}, "hints": {}}),
        )
    };
    let answer = served.post("/api/agent/message", &request("sum", id));
    let result = answer.json();
    assert_eq!(
        (answer.status, &result["type"], &result["payload"]["status"]),
        (200, &json!("work_result"), &json!("success"))
    );
    assert_eq!((&result["request_id"], &result["payload"]["task_id"]), (&json!(id), &json!(id)), "{result}");
    let waits = "550e8400-e29b-41d4-a716-446655440021";
    let accepted = served.post("/api/agent/message?wait=0.05", &request("waits", waits));
    assert_eq!((accepted.status, &accepted.json()["type"]), (202, &json!("work_status")), "{accepted:?}");
    let context = json!({"task_id": waits, "reason": "no longer wanted"});
    let error =
        json!({"error_code": 5901, "error_message": "cancelled", "error_context": context, "recoverable": false});
    let cancelled = served.post("/api/agent/message", &message("error", waits, &error));
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let again = served.post("/api/agent/message", &request("waits", waits)).json();
    assert_eq!(again["payload"]["error_code"], json!(5901), "{again}");
}

/// ALL-5: an orchestrator sends the same request again, and the answer of a person with it.
#[test]
fn the_answer_to_a_question_comes_with_the_same_message_again() {
    let asks = |_: Value, context: Context| async move {
        let zone: String = context.ask("Which zone?", None).await?;
        Ok::<_, Failure>(json!({"zone": zone}))
    };
    let served = Served::start(Agent::new("asker").on("asks", asks).forgetful());
    let id = "550e8400-e29b-41d4-a716-446655440022";
    let payload = json!({"task_id": id, "work_type": "asks", "parameters": {}, "hints": {}});
    let request = message("work_request", id, &payload);
    let ask = || served.post("/api/agent/message?wait=0.05", &request).json();
    let mut asked = ask();
    while asked["payload"]["status"] != "paused" {
        asked = ask();
    }
    assert_eq!(asked["x_custom_fields"]["x_crosspoint"]["question"]["prompt"], json!("Which zone?"), "{asked}");
    let mut answered: Value = serde_json::from_str(&request).expect("JSON");
    answered["x_custom_fields"] = json!({"x_crosspoint": {"from": "message.work_request", "answer": "north"}});
    let result = served.post("/api/agent/message", &answered.to_string()).json();
    assert_eq!(result["payload"]["output"], json!(r#"{"zone":"north"}"#), "{result}");
}

#[test]
fn a_request_that_comes_again_is_the_same_job_and_another_with_its_id_is_refused() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let count = move |_: Value, _: Context| {
        let calls = counted.clone();
        async move { Ok::<_, Failure>(json!({"call": calls.fetch_add(1, Ordering::Relaxed)})) }
    };
    let served = Served::start(Agent::new("counter").on("count", count).forgetful());
    let request = |inputs: Value| json!({"request_id": "same", "task_type": "count", "inputs": inputs}).to_string();
    let first = served.post("/agents/run/sync", &request(json!({"a": 1, "b": "\u{e9}"})));
    let again =
        served.post("/agents/run/sync", r#"{"task_type":"count","request_id":"same","inputs":{"b":"\u00e9","a":1}}"#);
    assert_eq!((first.status, &first.body), (200, &again.body));
    let other = served.post("/agents/run/sync", &request(json!({"a": 2})));
    assert_eq!((other.status, calls.load(Ordering::Relaxed)), (409, 1), "{other:?}");
}

#[test]
fn a_request_for_another_host_is_told_how_an_agent_gets_names() {
    let served = Served::start(agent());
    let refused = served.ask("GET", "http://agent.example/tasks/1", "", "");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("--host") && !refused.body.contains("[server]"), "{refused:?}");
}

#[test]
fn health_needs_no_token_and_work_does() {
    let path = crate::support::scratch("token");
    std::fs::write(&path, "abcdefghijklmnopqrstuvwxyz012345\n").expect("it can be written");
    let served = Served::start(agent().token_file(&path));
    assert_eq!((served.get("/health").status, served.get("/health/ready").status), (200, 200));
    let request = json!({"request_id": "t", "task_type": "sum", "inputs": {"of": []}}).to_string();
    let ask = |header: &str| served.ask("POST", "/agents/run/sync", &request, header).status;
    assert_eq!((ask(""), ask("authorization: Basic x\r\n"), ask("authorization: Bearer wrong\r\n")), (401, 401, 401));
    assert_eq!(ask("authorization: Bearer abcdefghijklmnopqrstuvwxyz012345\r\n"), 200);
}

/// An agent is no server, and has none of its settings.
#[test]
fn an_agent_that_refuses_speaks_of_itself() {
    let token = crate::support::scratch("words");
    std::fs::write(&token, "abcdefghijklmnopqrstuvwxyz012345").expect("it can be written");
    let agent = Agent::new("worker").on("quick", |_: Value, _: Context| async { Ok::<_, Failure>(json!({})) });
    let served = Served::start(agent.forgetful().token_file(&token));
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let (wrong, right) = (bearer("wrong-wrong-wrong-wrong"), bearer("abcdefghijklmnopqrstuvwxyz012345"));
    let task = "/tasks/550e8400-e29b-41d4-a716-446655440000";
    for (headers, status) in [(wrong, 401), (right, 404)] {
        let refused = served.ask("GET", task, "", &headers);
        assert_eq!(refused.status, status, "{refused:?}");
        assert!(!refused.body.contains("server") && !refused.body.contains("[store]"), "{refused:?}");
    }
}
