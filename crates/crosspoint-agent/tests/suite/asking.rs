//! Questions of handlers to a person.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Failure};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::Served;

const TASK: &str = "550e8400-e29b-41d4-a716-446655440077";

/// Asks for a first and a second word.
async fn two_words(_: Value, context: Context) -> Result<Value, Failure> {
    let first: String = context.ask("First?", None).await?;
    let second: String = context.ask("Second?", None).await?;
    Ok(json!({"first": first, "second": second}))
}

fn until(served: &Served, what: impl Fn(&Value) -> bool) -> Value {
    loop {
        let task = served.get(&format!("/tasks/{TASK}")).json();
        if what(&task) {
            return task;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn asks(prompt: &str) -> impl Fn(&Value) -> bool {
    move |task| task["inputRequest"]["prompt"] == prompt
}

#[test]
fn a_question_that_is_given_up_is_taken_back() {
    let gives_up = |_: Value, context: Context| async move {
        let wait = tokio::time::timeout(Duration::from_millis(20), context.ask::<String>("First?", None)).await;
        context.progress(50.0, "Alone");
        let () = context.cancelled().await;
        Ok::<_, Failure>(json!({"answered": wait.is_ok()}))
    };
    let served = Served::start(Agent::new("asker").on("ask", gives_up).forgetful());
    served.post("/tasks", &json!({"id": TASK, "type": "ask", "payload": {}}).to_string());
    let task = until(&served, |task| task.to_string().contains("Alone"));
    assert_eq!((&task["status"], &task["inputRequest"]), (&json!("in_progress"), &Value::Null), "{task}");
    let late = served.post(&format!("/tasks/{TASK}/input"), &json!({"input": "late"}).to_string());
    assert_eq!(late.status, 409, "{late:?}");
    served.post(&format!("/tasks/{TASK}/cancel"), "{}");
}

#[test]
fn an_answer_that_was_not_waited_for_answers_no_later_question() {
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let asks_twice = move |_: Value, context: Context| {
        let open = open.clone();
        async move {
            let mut first = Box::pin(context.ask::<String>("First?", None));
            assert!(first.as_mut().now_or_never().is_none());
            drop(open.acquire().await);
            drop(first);
            Ok::<_, Failure>(json!({"second": context.ask::<String>("Second?", None).await?}))
        }
    };
    let served = Served::start(Agent::new("asker").on("ask", asks_twice).forgetful());
    served.post("/tasks", &json!({"id": TASK, "type": "ask", "payload": {}}).to_string());
    until(&served, asks("First?"));
    served.post(&format!("/tasks/{TASK}/input"), &json!({"input": "one"}).to_string());
    gate.add_permits(1);
    until(&served, asks("Second?"));
    served.post(&format!("/tasks/{TASK}/input"), &json!({"input": "two"}).to_string());
    let done = until(&served, |task| task["status"] == "completed");
    assert_eq!(done["result"], json!({"second": "two"}));
}

#[test]
fn a_message_that_comes_twice_answers_one_question() {
    let served = Served::start(Agent::new("asker").on("ask", two_words).forgetful());
    let message = |id: u32, answer: Option<&str>, wait: u32| {
        let mut message = json!({
            "protocol_version": "1.0", "message_id": format!("550e8400-e29b-41d4-a716-44665544{id:04}"),
            "from_agent": "orchestrator", "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z",
            "trace_id": "550e8400-e29b-41d4-a716-446655440002", "request_id": "550e8400-e29b-41d4-a716-446655440003",
            "type": "work_request", "payload": {"task_id": TASK, "work_type": "ask", "parameters": {}},
        });
        if let Some(answer) = answer {
            message["x_custom_fields"] = json!({"x_crosspoint": {"from": "message.work_request", "answer": answer}});
        }
        served.post(&format!("/api/agent/message?wait={wait}"), &message.to_string()).json()
    };
    let question = |status: &Value| status["x_custom_fields"]["x_crosspoint"]["question"]["prompt"].clone();
    let until_asked = |prompt: &str| while question(&message(1, None, 0)) != prompt {};
    until_asked("First?");
    message(2, Some("one"), 0);
    until_asked("Second?");
    assert_eq!(question(&message(2, Some("one"), 0)), "Second?", "the same message says nothing new");
    let result = message(3, Some("two"), 30);
    assert_eq!(result["payload"]["output"], r#"{"first":"one","second":"two"}"#, "{result}");
}

#[test]
fn a_caller_that_has_no_way_to_answer_is_not_asked() {
    let served = Served::start(Agent::new("worker").on("words", two_words).forgetful());
    let run = served.post("/agents/run/sync", r#"{"request_id": "r-1", "task_type": "words"}"#).json();
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("error"), &json!("CANNOT_ASK")), "{run}");
    let context = json!({"feature_id": null, "workflow": "try", "iteration": 1});
    let envelope = json!({"context": context, "paths": {}, "task": {"action": "words", "params": {}}});
    let output = served.post("/agents/worker/envelope", &envelope.to_string()).json();
    assert_eq!(output["success"], false, "{output}");
}
