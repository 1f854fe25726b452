//! What becomes of work when it is cancelled, or the agent stops; and who may reach the agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Contract, Failure};
use serde_json::{Value, json};

use crate::support::{Served, ask_at, scratch};

const TASK: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A handler that counts how often it began, and stays the first time until it is told to stop.
fn staying(
    began: &Arc<AtomicU32>,
) -> impl Fn(Value, Context) -> std::pin::Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>> + Send + Sync + 'static
{
    let began = began.clone();
    move |_, context: Context| {
        let count = began.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if count == 0 {
                context.cancelled().await;
                return Err(Failure::new("told to stop"));
            }
            Ok(json!({"count": count}))
        })
    }
}

fn task() -> String {
    json!({"id": TASK, "type": "stay", "payload": {}}).to_string()
}

fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

#[test]
fn work_that_the_agent_was_stopped_in_is_done_when_it_is_asked_for_again() {
    let (began, path) = (Arc::new(AtomicU32::new(0)), scratch("stopping"));
    let agent = || {
        let agent = Agent::new("worker").on("stay", staying(&began)).answers(&path);
        agent.drain(Duration::from_millis(50)).grace(Duration::from_millis(200))
    };
    let served = Served::start(agent());
    assert_eq!(served.post("/tasks", &task()).status, 202);
    until(|| began.load(Ordering::SeqCst) == 1);
    served.stop();
    let served = Served::start(agent());
    let again = served.post("/tasks?wait=30", &task()).json();
    assert_eq!((&again["status"], &again["result"]), (&json!("completed"), &json!({"count": 1})), "{again}");
}

/// A request in each contract, as a path, headers and a body. `number` tells requests apart.
fn requests(number: u32) -> [(&'static str, String, String); 5] {
    let (id, key) =
        (format!("550e8400-e29b-41d4-a716-4466554401{number:02}"), format!("idempotency-key: k-{number}\r\n"));
    let run = |id| json!({"request_id": id, "task_type": "stay", "inputs": {}}).to_string();
    let task = json!({"id": id, "type": "stay", "payload": {}}).to_string();
    let message = json!({
        "protocol_version": "1.0", "message_id": TASK, "request_id": id, "trace_id": TASK, "from_agent": "orchestrator",
        "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z", "type": "work_request", "x_custom_fields": {},
        "payload": {"task_id": TASK, "work_type": "stay", "parameters": {}, "hints": {}},
    });
    let envelope = json!({
        "context": {"feature_id": null, "workflow": "t", "iteration": 1},
        "paths": {}, "task": {"action": "stay", "params": {}},
    });
    [
        ("/agents/run/sync", String::new(), run(format!("sync-{number}"))),
        ("/agents/run/stream", String::new(), run(format!("stream-{number}"))),
        ("/tasks?wait=30", String::new(), task),
        ("/api/agent/message?wait=30", String::new(), message.to_string()),
        ("/agents/worker/envelope", key, envelope.to_string()),
    ]
}

#[test]
fn an_agent_that_stops_answers_what_it_has_seen_and_refuses_what_is_new() {
    let (began, go) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Semaphore::new(5)));
    let (counted, gate) = (began.clone(), go.clone());
    let stay = move |_: Value, _: Context| {
        let (gate, count) = (gate.clone(), counted.fetch_add(1, Ordering::SeqCst));
        async move {
            gate.acquire().await.map_err(|_| Failure::new("closed"))?.forget();
            Ok::<_, Failure>(json!({"count": count}))
        }
    };
    let held = Arc::new(tokio::sync::Notify::new());
    let release = held.clone();
    let hold = move |_: Value, _: Context| {
        let release = release.clone();
        async move {
            release.notified().await;
            Ok::<_, Failure>(json!({}))
        }
    };
    let agent = Agent::new("worker").at_most_once("stay", stay).on("hold", hold).answers(scratch("stopping"));
    let mut served = Served::start(agent.drain(Duration::from_secs(60)));
    let address = served.address;
    let asked = move |(path, headers, body): &(&str, String, String)| ask_at(address, "POST", path, body, headers);
    let first = requests(1).map(|request| asked(&request));
    assert!(first.iter().all(|answer| answer.status == 200), "{first:?}");
    let under_way = requests(2).map(|request| std::thread::spawn(move || asked(&request)));
    until(|| began.load(Ordering::SeqCst) == 10);
    // One job goes on until the last request of this test was answered.
    let last = json!({"id": TASK, "type": "hold", "payload": {}}).to_string();
    assert_eq!(served.post("/tasks", &last).status, 202);
    served.begin_to_stop();
    let refused = requests(3).map(|request| asked(&request));
    for answer in &refused {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("stopping") && answer.body.contains("safe"), "{answer:?}");
    }
    for (request, first) in requests(1).iter().zip(&first) {
        let again = asked(request);
        assert_eq!((again.status, count_of(&again.body)), (200, count_of(&first.body)), "{request:?}");
    }
    let [_, _, (_, _, task), ..] = requests(2);
    assert_eq!(served.post("/tasks", &task).json()["status"], "in_progress", "it joins the work under way");
    assert_eq!(served.get("/tasks/550e8400-e29b-41d4-a716-446655440102").json()["status"], "in_progress");
    let joined = requests(2).map(|request| std::thread::spawn(move || asked(&request)));
    go.add_permits(5);
    for (first, again) in under_way.into_iter().zip(joined) {
        let [first, again] = [first, again].map(|asked| asked.join().expect("it does not panic"));
        assert_eq!((again.status, count_of(&again.body)), (200, count_of(&first.body)), "{first:?} {again:?}");
        assert!(count_of(&first.body).is_some(), "{first:?}");
    }
    held.notify_one();
    served.stop();
    assert_eq!(began.load(Ordering::SeqCst), 10, "nothing is done twice");
}

/// Returns the number that the handler gave, however the document spells it.
fn count_of(body: &str) -> Option<u32> {
    let digits = body.split("count").nth(1)?.trim_start_matches(|byte: char| !byte.is_ascii_digit());
    digits.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn work_that_was_cancelled_stays_cancelled_also_after_a_restart() {
    let (began, path) = (Arc::new(AtomicU32::new(0)), scratch("stopping"));
    let agent = || Agent::new("worker").on("stay", staying(&began)).answers(&path);
    let served = Served::start(agent());
    served.post("/tasks", &task());
    until(|| began.load(Ordering::SeqCst) == 1);
    assert_eq!(served.post(&format!("/tasks/{TASK}/cancel"), "{}").status, 200);
    let kept = std::fs::read_to_string(&path).expect("it is there");
    assert!(kept.contains("cancelled"), "it is on disk when the caller is told");
    served.stop();
    let served = Served::start(agent());
    assert_eq!(served.post("/tasks?wait=30", &task()).json()["status"], "cancelled");
    assert_eq!(began.load(Ordering::SeqCst), 1);
}

#[test]
fn a_handler_that_asks_leaves_its_place_to_another() {
    async fn asks(_: Value, context: Context) -> Result<Value, Failure> {
        let answer: String = context.ask("Which zone?", None).await?;
        Ok(json!({"zone": answer}))
    }
    async fn quick(_: Value, _: Context) -> Result<Value, Failure> {
        Ok(json!({}))
    }
    let agent = |waiting| Agent::new("worker").on("stay", asks).on("quick", quick).concurrency(1).waiting(waiting);
    let run = json!({"request_id": "r-1", "task_type": "quick"}).to_string();
    let served = Served::start(agent(1).forgetful());
    served.post("/tasks?wait=30", &task());
    let done = served.post("/agents/run/sync", &run);
    assert_eq!(done.json()["status"], "ok", "{done:?}");
    assert_eq!(served.post(&format!("/tasks/{TASK}/input"), r#"{"input": "north"}"#).status, 202);
    assert_eq!(served.post("/tasks?wait=30", &task()).json()["result"], json!({"zone": "north"}));
    // One that may not wait beside the others keeps its place.
    let served = Served::start(agent(0).forgetful());
    served.post("/tasks?wait=30", &task());
    let other = json!({"id": "550e8400-e29b-41d4-a716-446655440001", "type": "quick", "payload": {}}).to_string();
    assert_eq!(served.post("/tasks?wait=0.2", &other).json()["status"], "pending");
    served.post(&format!("/tasks/{TASK}/cancel"), "{}");
    assert_eq!(served.post("/tasks?wait=30", &other).json()["status"], "completed");
}

#[test]
fn only_the_contracts_that_were_named_are_served() {
    async fn quick(_: Value, _: Context) -> Result<Value, Failure> {
        Ok(json!({}))
    }
    let agent = Agent::new("worker").on("quick", quick).forgetful();
    let served = Served::start(agent.contracts(&[Contract::Run]));
    let run = json!({"request_id": "r-1", "task_type": "quick"}).to_string();
    assert_eq!(served.post("/agents/run/sync", &run).status, 200);
    let refused = served.post("/tasks", &task());
    assert_eq!(
        (refused.status, &refused.json()["error"]["hint"]),
        (404, &json!("ask for work with POST /agents/run/sync"))
    );
}

#[tokio::test]
async fn an_agent_that_others_could_reach_has_a_token_or_is_opened() {
    let served = |agent: Agent| async {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port is free");
        agent.serve(listener, async {}).await.map_err(|error| error.kind())
    };
    let agent = || Agent::new("worker").forgetful();
    assert_eq!(served(agent()).await, Err(std::io::ErrorKind::PermissionDenied));
    assert_eq!(served(agent().open_to_all()).await, Ok(()));
    let token = scratch("stopping");
    std::fs::write(&token, "abcdefghijklmnopqrstuvwxyz012345").expect("it can be written");
    assert_eq!(served(agent().token_file(&token)).await, Ok(()));
    assert_eq!(served(agent().open_to_all().contracts(&[])).await, Err(std::io::ErrorKind::InvalidInput));
}
