//! Questions of handlers to a person.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Failure};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{Answer, Served, scratch};

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

/// Sends the same request in a message of this id, with what a person answered.
fn message(served: &Served, id: u32, carried: Option<&Value>, wait: u32) -> Answer {
    let mut message = json!({
        "protocol_version": "1.0", "message_id": format!("550e8400-e29b-41d4-a716-44665544{id:04}"),
        "from_agent": "orchestrator", "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z",
        "trace_id": "550e8400-e29b-41d4-a716-446655440002", "request_id": "550e8400-e29b-41d4-a716-446655440003",
        "type": "work_request", "payload": {"task_id": TASK, "work_type": "ask", "parameters": {}},
    });
    if let Some(carried) = carried {
        message["x_custom_fields"] = json!({"x_crosspoint": carried});
    }
    served.post(&format!("/api/agent/message?wait={wait}"), &message.to_string())
}

/// Returns the question that the work asks, once it is this one.
fn asked(served: &Served, prompt: &str) -> Value {
    loop {
        let status = message(served, 1, None, 0).json();
        let question = &status["x_custom_fields"]["x_crosspoint"]["question"];
        if question["prompt"] == prompt {
            return question.clone();
        }
    }
}

#[test]
fn work_that_is_begun_again_gets_the_answers_that_it_was_given() {
    let path = scratch("asking");
    let agent = || Agent::new("asker").on("ask", two_words).answers(&path).drain(Duration::ZERO);
    let served = Served::start(agent());
    assert_eq!(asked(&served, "First?"), json!({"prompt": "First?", "number": 1}));
    message(&served, 2, Some(&json!({"answer": "one", "answer_to": 1})), 0);
    let second = asked(&served, "Second?");
    served.stop();
    // The work begins with the answer to its second question.
    let served = Served::start(agent());
    let result = message(&served, 3, Some(&json!({"answer": "two", "answer_to": second})), 30).json();
    assert_eq!(result["payload"]["output"], r#"{"first":"one","second":"two"}"#, "{result}");
}

#[test]
fn an_answer_that_names_no_question_answers_none_that_was_not_shown() {
    let path = scratch("asking");
    let agent = || Agent::new("asker").on("ask", two_words).answers(&path).drain(Duration::ZERO);
    let served = Served::start(agent());
    asked(&served, "First?");
    message(&served, 2, Some(&json!({"answer": "one"})), 0);
    asked(&served, "Second?");
    served.stop();
    let served = Served::start(agent());
    let status = message(&served, 3, Some(&json!({"answer": "two"})), 0);
    assert_eq!(status.status, 202, "the work is begun again: {status:?}");
    asked(&served, "Second?");
    let result = message(&served, 4, Some(&json!({"answer": "too"})), 30).json();
    assert_eq!(result["payload"]["output"], r#"{"first":"one","second":"too"}"#, "{result}");
}

#[test]
fn an_answer_to_another_question_is_refused() {
    let served = Served::start(Agent::new("asker").on("ask", two_words).forgetful());
    let first = asked(&served, "First?");
    let refused = |id: u32, carried: &Value| {
        let refused = message(&served, id, Some(carried), 0);
        assert_eq!((refused.status, &refused.json()["payload"]["error_code"]), (409, &json!(5903)), "{refused:?}");
    };
    refused(2, &json!({"answer": "two", "answer_to": 2}));
    refused(3, &json!({"answer": "two", "answer_to": {"prompt": "Second?"}}));
    message(&served, 4, Some(&json!({"answer": "one", "answer_to": first})), 0);
    asked(&served, "Second?");
    refused(5, &json!({"answer": "other", "answer_to": first}));
    let again = message(&served, 6, Some(&json!({"answer": "one", "answer_to": first})), 0);
    assert_eq!(again.status, 202, "the same answer again says nothing new: {again:?}");
    let result = message(&served, 7, Some(&json!({"answer": "two", "answer_to": {"prompt": "Second?"}})), 30).json();
    assert_eq!(result["payload"]["output"], r#"{"first":"one","second":"two"}"#, "{result}");
}

#[test]
fn a_task_that_is_begun_again_gets_the_answers_that_it_was_given() {
    let path = scratch("asking");
    let agent = || Agent::new("asker").on("ask", two_words).answers(&path).drain(Duration::ZERO);
    let task = json!({"id": TASK, "type": "ask", "payload": {}}).to_string();
    let (answers, input) = (format!("/tasks/{TASK}/input?wait=60"), |text: &str| json!({"input": text}).to_string());
    let served = Served::start(agent());
    assert!(asks("First?")(&served.post("/tasks?wait=60", &task).json()));
    assert!(asks("Second?")(&served.post(&answers, &input("one")).json()));
    served.stop();
    let served = Served::start(agent());
    assert_eq!(served.post(&answers, &input("two")).status, 404, "it has to be asked for again");
    let other = json!({"id": TASK, "type": "ask", "payload": {"other": true}}).to_string();
    assert_eq!(served.post("/tasks?wait=60", &other).status, 409);
    assert!(asks("Second?")(&served.post("/tasks?wait=60", &task).json()));
    let done = served.post(&answers, &input("two")).json();
    assert_eq!(done["result"], json!({"first": "one", "second": "two"}), "{done}");
}

#[test]
fn an_answer_of_several_lines_is_given_again() {
    async fn asks_for_json(_: Value, context: Context) -> Result<Value, Failure> {
        let first: Value = context.ask("First?", None).await?;
        let second: String = context.ask("Second?", None).await?;
        Ok(json!({"first": first, "second": second}))
    }
    let path = scratch("asking");
    let agent = || Agent::new("asker").on("ask", asks_for_json).answers(&path).drain(Duration::ZERO);
    let (task, answers) =
        (json!({"id": TASK, "type": "ask", "payload": {}}).to_string(), format!("/tasks/{TASK}/input"));
    let served = Served::start(agent());
    served.post("/tasks?wait=60", &task);
    let second = served.post(&format!("{answers}?wait=60"), "{\"input\": {\n  \"a\": 1\n}}").json();
    assert!(asks("Second?")(&second), "{second}");
    served.stop();
    let served = Served::start(agent());
    assert!(asks("Second?")(&served.post("/tasks?wait=60", &task).json()));
    let done = served.post(&format!("{answers}?wait=60"), &json!({"input": "two"}).to_string()).json();
    assert_eq!(done["result"], json!({"first": {"a": 1}, "second": "two"}), "{done}");
}

#[test]
fn a_question_that_was_not_shown_is_not_answered() {
    let (asking, asked) = std::sync::mpsc::channel();
    let signals = move |_: Value, context: Context| {
        let asking = asking.clone();
        async move {
            let first: String = context.ask("First?", None).await?;
            let mut second = Box::pin(context.ask::<String>("Second?", None));
            assert!(second.as_mut().now_or_never().is_none());
            asking.send(()).map_err(|_| Failure::new("the test has ended"))?;
            Ok::<_, Failure>(json!({"first": first, "second": second.await?}))
        }
    };
    let served = Served::start(Agent::new("asker").on("ask", signals).forgetful());
    served.post("/tasks?wait=60", &json!({"id": TASK, "type": "ask", "payload": {}}).to_string());
    // The head of a second answer has arrived when the first one is given.
    let answer = json!({"input": "again"}).to_string();
    let mut late = std::net::TcpStream::connect(served.address).expect("it is there");
    let head = format!("POST /tasks/{TASK}/input HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    write!(late, "{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n", answer.len()).expect("it can be sent");
    let mut wants = [0; 25];
    late.read_exact(&mut wants).expect("the body is waited for");
    let first = served.post(&format!("/tasks/{TASK}/input"), &json!({"input": "one"}).to_string());
    assert_eq!(first.status, 202, "{first:?}");
    asked.recv().expect("it asks");
    until(&served, asks("Second?"));
    late.write_all(answer.as_bytes()).expect("it can be sent");
    let mut refused = String::new();
    late.read_to_string(&mut refused).expect("it is answered");
    assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
    assert!(refused.contains("the question was not shown to anyone yet"), "{refused}");
    let done = served.post(&format!("/tasks/{TASK}/input?wait=60"), &json!({"input": "two"}).to_string()).json();
    assert_eq!(done["result"], json!({"first": "one", "second": "two"}), "{done}");
}

#[test]
fn answers_that_come_at_once_answer_one_question() {
    let served = Served::start(Agent::new("asker").on("ask", two_words).forgetful());
    served.post("/tasks?wait=60", &json!({"id": TASK, "type": "ask", "payload": {}}).to_string());
    let (address, path) = (served.address, format!("/tasks/{TASK}/input"));
    let answer = |number: u32| {
        let path = path.clone();
        move || {
            let answer =
                crate::support::ask_at(address, "POST", &path, &json!({"input": number.to_string()}).to_string(), "");
            (answer.status, answer.status == 202 && answer.json()["status"] != "in_progress")
        }
    };
    let answers: Vec<_> = (0..6).map(|number| std::thread::spawn(answer(number))).collect();
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.join().expect("it is answered")).collect();
    assert_eq!(answers.iter().filter(|answer| **answer == (202, false)).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.0 == 409).count(), 5, "{answers:?}");
    assert!(asks("Second?")(&until(&served, |task| task["inputRequest"].is_object())));
    served.post(&format!("/tasks/{TASK}/cancel"), "{}");
}

#[test]
fn a_message_that_comes_twice_answers_one_question() {
    let served = Served::start(Agent::new("asker").on("ask", two_words).forgetful());
    let message = |id: u32, answer: Option<&str>, wait: u32| {
        let carried = answer.map(|answer| json!({"from": "message.work_request", "answer": answer}));
        message(&served, id, carried.as_ref(), wait).json()
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

/// ALL-5, MSG-17: an orchestrator that waits on the connection learns of the question by the answer.
#[test]
fn a_question_ends_the_wait_of_a_pushed_message() {
    let gives_up = |_: Value, context: Context| async move {
        let wait = tokio::time::timeout(Duration::from_secs(5), context.ask::<String>("First?", None)).await;
        Ok::<_, Failure>(json!({"answered": wait.is_ok()}))
    };
    let served = Served::start(Agent::new("asker").on("ask", gives_up).forgetful());
    let request = crate::orchestrator::request("ask", TASK).to_string();
    for path in ["/api/agent/message", "/api/agent/message?wait=60"] {
        let answer = served.post(path, &request);
        assert_eq!((answer.status, &answer.json()["payload"]["status"]), (202, &json!("paused")), "{answer:?}");
        assert_eq!(answer.json()["x_custom_fields"]["x_crosspoint"]["question"]["prompt"], "First?", "{answer:?}");
    }
}
