//! What becomes of work when it is cancelled, or the agent stops; and who may reach the agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Contract, Failure};
use serde_json::{Value, json};

use crate::support::{Served, scratch};

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
