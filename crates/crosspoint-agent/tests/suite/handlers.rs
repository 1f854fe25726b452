//! What handlers get and may do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;

use crate::support::Served;

fn run(served: &Served, id: &str, work: &str, more: &Value) -> Value {
    let mut request = json!({"request_id": id, "task_type": work, "inputs": {}});
    request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    served.post("/agents/run/sync", &request.to_string()).json()
}

#[test]
fn raw_input_is_given_as_it_was_written() {
    let raw = |input: Box<RawValue>, _: Context| async move { Ok::<_, Failure>(json!({"raw": input.get()})) };
    let served = Served::start(Agent::new("raw").on("raw", raw).forgetful());
    let request = r#"{"request_id":"1","task_type":"raw","inputs":{"n": 1.50, "b":[ ]}}"#;
    let answer = served.post("/agents/run/sync", request).json();
    assert_eq!(answer["outputs"]["raw"], r#"{"n": 1.50, "b":[ ]}"#);
}

#[test]
fn a_handler_that_takes_longer_than_its_caller_allows_is_stopped() {
    let forever = |_: Value, _: Context| std::future::pending::<Result<(), Failure>>();
    let served = Served::start(Agent::new("slow").on("slow", forever).forgetful());
    let answer = run(&served, "1", "slow", &json!({"budgets": {"timeout_ms": 50}}));
    assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!("TIMEOUT")), "{answer}");
}

#[test]
fn what_is_printed_is_the_output_of_a_handler_that_gives_none() {
    let prints = |_: Value, context: Context| async move {
        context.output().write_all(b"one\n").await?;
        context.output().write_all(b"two\n").await?;
        Ok::<_, Failure>(())
    };
    let floods = |_: Value, context: Context| async move {
        let block = vec![b'x'; 1 << 20];
        for _ in 0..11 {
            context.output().write_all(&block).await?;
        }
        Ok::<_, Failure>(())
    };
    let served = Served::start(Agent::new("prints").on("prints", prints).on("floods", floods).forgetful());
    assert_eq!(run(&served, "1", "prints", &json!({}))["outputs"], json!({"output": "one\ntwo\n"}));
    let flood = run(&served, "2", "floods", &json!({}));
    assert_eq!(flood["ok"], json!(false));
    assert!(flood["error"]["message"].as_str().is_some_and(|message| message.contains("10 MiB")), "{}", flood["error"]);
}

#[test]
fn no_more_jobs_are_done_at_a_time_than_is_said() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (running, peak, open) = (now.clone(), most.clone(), gate.clone());
    let work = move |_: Value, _: Context| {
        let (running, peak, open) = (running.clone(), peak.clone(), open.clone());
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            drop(open.acquire().await);
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Failure>(())
        }
    };
    let served = Served::start(Agent::new("few").on("work", work).concurrency(3).forgetful());
    for number in 0..10 {
        let id = format!("550e8400-e29b-41d4-a716-4466554400{number:02}");
        let task = json!({"id": id, "type": "work", "payload": {}}).to_string();
        assert_eq!(served.post("/tasks", &task).status, 202);
    }
    while now.load(Ordering::SeqCst) < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    gate.add_permits(10);
    for number in 0..10 {
        let path = format!("/tasks/550e8400-e29b-41d4-a716-4466554400{number:02}");
        while served.get(&path).json()["status"] != "completed" {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// TASK-1.
#[test]
fn work_that_waits_is_begun_by_its_priority() {
    let (begun, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let (seen, open) = (begun.clone(), gate.clone());
    let work = move |_: Value, context: Context| {
        let (seen, open) = (seen.clone(), open.clone());
        async move {
            seen.lock().expect("it is not poisoned").push(context.request_id().to_owned());
            open.acquire().await?.forget();
            Ok::<_, Failure>(())
        }
    };
    let served = Served::start(Agent::new("one").on("work", work).concurrency(1).forgetful());
    for (id, priority) in [("t-1", "normal"), ("t-2", "low"), ("t-3", "normal"), ("t-4", "urgent"), ("t-5", "normal")] {
        let task = json!({"id": id, "type": "work", "payload": {}, "context": {"priority": priority}}).to_string();
        assert_eq!(served.post("/tasks", &task).status, 202);
    }
    gate.add_permits(5);
    assert_eq!(served.get("/tasks/t-2?wait=60").json()["status"], "completed", "the low one is the last");
    assert_eq!(*begun.lock().expect("it is not poisoned"), ["t-1", "t-4", "t-3", "t-5", "t-2"]);
}

#[test]
fn a_handler_knows_its_request_work_trace_and_deadline() {
    let knows = |_: Value, context: Context| async move {
        let trace = context.traceparent().map(str::to_owned);
        let left = context.deadline().map(|until| until.elapsed().is_zero());
        Ok::<_, Failure>(json!({"id": context.request_id(), "work": context.work(), "trace": trace, "left": left}))
    };
    let served = Served::start(Agent::new("knows").on("knows", knows).forgetful());
    let request = json!({"request_id": "mine", "task_type": "knows", "inputs": {}, "budgets": {"timeout_ms": 60_000}});
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answer = served.ask("POST", "/agents/run/sync", &request.to_string(), &format!("traceparent: {trace}\r\n"));
    let outputs = answer.json()["outputs"].clone();
    assert_eq!((&outputs["id"], &outputs["work"], &outputs["left"]), (&json!("mine"), &json!("knows"), &json!(true)));
    assert!(outputs["trace"].as_str().is_some_and(|known| known.contains("0af7651916cd43dd8448eb211c80319c")));
}

#[test]
fn work_under_way_is_answered_before_the_agent_ends() {
    let begun = Arc::new(AtomicU32::new(0));
    let begins = begun.clone();
    let slow = move |_: Value, _: Context| {
        begins.store(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, Failure>(json!({"done": true}))
        }
    };
    let served = Served::start(Agent::new("slow").on("slow", slow).forgetful());
    let address = served.address;
    let caller = std::thread::spawn(move || {
        let request = json!({"request_id": "1", "task_type": "slow", "inputs": {}}).to_string();
        crate::support::ask_at(address, "POST", "/agents/run/sync", &request, "")
    });
    while begun.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    served.stop();
    assert_eq!(caller.join().expect("it is answered").json()["outputs"], json!({"done": true}));
}

#[test]
fn outputs_that_no_reader_would_take_are_a_failure_in_the_contract() {
    let nested = |levels: usize| format!("{{\"deep\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let given = |input: Value, _: Context| async move {
        Ok::<_, Failure>(RawValue::from_string(input["raw"].as_str().unwrap_or_default().to_owned())?)
    };
    let served = Served::start(Agent::new("raw").on("raw", given).forgetful());
    let ended = |id: &str, raw: &str| run(&served, id, "raw", &json!({"inputs": {"raw": raw}}));
    assert_eq!(ended("1", &nested(119))["ok"], json!(true));
    for (id, raw) in [("2", r#"{"a":1,"a":2}"#.to_owned()), ("3", nested(120)), ("4", nested(400))] {
        let failed = ended(id, &raw);
        let message = failed["error"]["message"].as_str().unwrap_or_default();
        assert!(failed["ok"] == json!(false) && message.contains("what the handler returned"), "{failed}");
    }
}

#[test]
fn an_input_that_does_not_fit_is_an_invalid_request_in_each_contract() {
    let ran = Arc::new(AtomicU32::new(0));
    let runs = ran.clone();
    let works = |input: BTreeMap<String, u32>, _: Context| async move { Ok::<_, Failure>(json!(input)) };
    let refuses = move |_: Value, _: Context| {
        runs.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(Failure::invalid("no such place")) }
    };
    let path = crate::support::scratch("invalid");
    let served = Served::start(Agent::new("strict").on("work", works).on("refuse", refuses).answers(path));
    let request = json!({"request_id": "1", "task_type": "work", "inputs": {"a": "secret"}}).to_string();
    let run = served.post("/agents/run/sync", &request);
    assert_eq!((run.status, &run.json()["error"]["code"]), (400, &json!("VALIDATION_ERROR")), "{run:?}");
    let error = &run.json()["error"];
    assert_eq!(error["message"], "/a: a whole number (u32) is wanted", "{run:?}");
    assert!(error["details"]["at"] == "/a" && !run.body.contains("secret"), "{run:?}");

    let task = json!({"id": "550e8400-e29b-41d4-a716-446655440000", "type": "work", "payload": {"a": "x"}});
    let task = served.post("/tasks?wait=30", &task.to_string()).json();
    assert_eq!(task["error"]["code"], json!("INVALID_INPUT"), "{task}");

    let message = json!({
        "protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001",
        "from_agent": "orchestrator", "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z",
        "trace_id": "550e8400-e29b-41d4-a716-446655440002", "request_id": "550e8400-e29b-41d4-a716-446655440003",
        "type": "work_request", "payload": {
            "task_id": "550e8400-e29b-41d4-a716-446655440004", "work_type": "work", "parameters": {"a": "x"},
        },
    });
    let message = served.post("/api/agent/message", &message.to_string()).json();
    assert_eq!((&message["type"], &message["payload"]["error_code"]), (&json!("error"), &json!(5003)), "{message}");

    let refused = json!({"request_id": "2", "task_type": "refuse", "inputs": {}}).to_string();
    for times in 1..3 {
        let answer = served.post("/agents/run/sync", &refused);
        assert_eq!((answer.status, &answer.json()["error"]["message"]), (400, &json!("no such place")), "{answer:?}");
        assert_eq!(ran.load(Ordering::SeqCst), times, "such an answer is not kept");
    }
}

#[test]
fn a_handler_gives_no_more_than_16_mib() {
    let gives = |input: Value, context: Context| async move {
        let block = "x".repeat(9 << 20);
        context.artifact("one.txt", "text/plain", &block)?;
        match input["what"].as_str() {
            Some("artifacts") => context.artifact("two.txt", "text/plain", &block)?,
            Some("outputs") => return Ok::<_, Failure>(json!([block, block])),
            _ => {}
        }
        Ok(json!({"given": 1}))
    };
    let served = Served::start(Agent::new("giver").on("give", gives).forgetful());
    let ended = |id: &str, what: &str| run(&served, id, "give", &json!({"inputs": {"what": what}}));
    assert_eq!(ended("1", "little")["outputs"], json!({"given": 1}));
    for (id, what) in [("2", "artifacts"), ("3", "outputs")] {
        let error = ended(id, what)["error"].clone();
        assert_eq!(
            (&error["code"], &error["details"]["repeat"]),
            (&json!("RESOURCE_LIMIT"), &json!("never")),
            "{error}"
        );
        assert!(error["message"].as_str().is_some_and(|message| message.contains("16 MiB")), "{error}");
    }
}

/// The member that does not fit is named, and nothing of what it holds.
#[test]
fn an_input_of_the_wrong_type_is_told_by_its_place() {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }
    #[derive(serde::Deserialize)]
    struct Box {
        weight: f64,
        size: Size,
    }
    #[derive(serde::Deserialize)]
    struct Order {
        #[serde(rename = "a/b")]
        boxes: Vec<Box>,
        is_gift: bool,
    }
    let packs = |order: Order, _: Context| async move {
        let large = order.boxes.iter().filter(|one| matches!(one.size, Size::Large) && one.weight > 1.0).count();
        let small = order.boxes.iter().filter(|one| matches!(one.size, Size::Small)).count();
        Ok::<_, Failure>(json!({"large": large, "small": small, "gift": order.is_gift}))
    };
    let served = Served::start(Agent::new("packer").on("pack", packs).forgetful());
    let of = |one: Value, gift: Value| json!({"a/b": [{"weight": 2, "size": "large"}, one], "is_gift": gift});
    for (number, (inputs, message, at)) in [
        (
            of(json!({"weight": "secret, expected f64", "size": "small"}), json!(true)),
            "/a~1b/1/weight: a number is wanted",
            "/a~1b/1/weight",
        ),
        (
            of(json!({"weight": 1, "size": "secret"}), json!(true)),
            "/a~1b/1/size: `small` or `large` is wanted",
            "/a~1b/1/size",
        ),
        (of(json!({"weight": 1, "size": "small"}), json!(7)), "/is_gift: true or false is wanted", "/is_gift"),
        (json!({"a/b": {}, "is_gift": true}), "/a~1b: a list is wanted", "/a~1b"),
        (of(json!({"size": "small"}), json!(true)), "the input lacks `weight`", "/a~1b/1/weight"),
    ]
    .into_iter()
    .enumerate()
    {
        let error = run(&served, &number.to_string(), "pack", &json!({"inputs": inputs}))["error"].clone();
        assert!(error["message"].as_str().is_some_and(|said| said.starts_with(message)), "{error}");
        assert_eq!(error["details"]["at"], at, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
