//! How an orchestrator of the message contract is told of work.

use std::time::Duration;

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::{Value, json};

use crate::orchestrator::{Answer, Asked, Orchestrator, registered, request};
use crate::support::Served;

const ID: &str = "550e8400-e29b-41d4-a716-446655440040";

async fn quick(_: Value, _: Context) -> Result<Value, Failure> {
    Ok(json!({}))
}

async fn waits(_: Value, context: Context) -> Result<Value, Failure> {
    context.cancelled().await;
    Err(Failure::new("told to stop"))
}

async fn asks(_: Value, context: Context) -> Result<Value, Failure> {
    context.ask("Which zone?", None).await
}

fn agent() -> Agent {
    Agent::new("worker").on("quick", quick).on("waits", waits).on("asks", asks).forgetful()
}

/// A request for work that may take 200 s, and by MSG-6.2 30 s more.
fn limited(work: &str) -> Value {
    let mut request = request(work, ID);
    request["payload"]["hints"]["max_duration_seconds"] = json!(200);
    request
}

/// Gives an agent one work, and then answers none of its polls, each of which ends after 30 s. Returns how often the
/// agent sent a message of a type between two polls, by the poll before it. `answer` decides about its messages.
async fn sent(
    work: &'static str,
    message_type: &'static str,
    polls: usize,
    mut answer: impl FnMut(&Asked) -> u16 + Send + 'static,
) -> Vec<usize> {
    let mut is_given = false;
    let mut orchestrator = Orchestrator::start(move |asked: &Asked| -> Answer {
        match &*asked.target {
            "/api/agent/register" => registered(None),
            "/api/agent/message" => Some((answer(asked), json!({}))),
            _ if !std::mem::replace(&mut is_given, true) => Some((200, json!({"messages": [limited(work)]}))),
            _ => None,
        }
    })
    .await;
    tokio::spawn(agent().connect(orchestrator.url.clone()).pull(std::future::pending()));
    let mut counts = Vec::new();
    while counts.len() < polls {
        let asked = orchestrator.next().await;
        if asked.is_poll() {
            counts.push(0);
        } else if let Some(count) = counts.last_mut().filter(|_| asked.is(message_type)) {
            *count += 1;
        }
    }
    counts
}

/// MSG-6.4.
#[tokio::test(start_paused = true)]
async fn a_status_is_repeated_while_nothing_happens() {
    let counts = sent("waits", "work_status", 6, |_| 204).await;
    // Three in the 30 s of each poll.
    let all: usize = counts.iter().sum();
    assert!((12..=20).contains(&all), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_has_a_deadline() {
    let counts = sent("waits", "error", 20, |_| 204).await;
    let (within, after) = counts.split_at(6);
    assert_eq!((within.iter().sum::<usize>(), after.iter().sum::<usize>()), (0, 1), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_person_is_asked_is_not_that_of_a_message() {
    assert_eq!(sent("asks", "error", 20, |_| 204).await.iter().sum::<usize>(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_may_be_taken_later_is_told_again() {
    for status in [408, 425, 429, 503] {
        let mut told = 0;
        let answer = move |_: &Asked| {
            told += 1;
            if told < 3 { status } else { 204 }
        };
        let told: usize = sent("quick", "work_result", 4, answer).await.iter().sum();
        assert_eq!(told, 3, "{status}");
    }
    let refused: usize = sent("quick", "work_result", 4, |_| 401).await.iter().sum();
    assert_eq!(refused, 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_never_taken_is_given_up_after_an_hour() {
    let counts = sent("quick", "work_result", 150, |_| 503).await;
    let (first_hour, later) = counts.split_at(130);
    assert!(first_hour.iter().sum::<usize>() > 50, "{counts:?}");
    assert_eq!(later.iter().sum::<usize>(), 0, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_stopped_with_the_agent_is_told_before_its_end() {
    let mut orchestrator = Orchestrator::start(|_: &Asked| Some((204, Value::Null))).await;
    let agent = agent().report_to(orchestrator.url.clone()).drain(Duration::ZERO);
    let served = Served::start(agent);
    let work = request("waits", ID).to_string();
    let ended = tokio::task::spawn_blocking(move || {
        assert_eq!(served.post("/api/agent/message", &work).status, 202);
        served.stop();
    });
    ended.await.expect("it ends");
    // All that the agent has sent is there by now: it has ended.
    let told = tokio::time::timeout(Duration::from_secs(20), orchestrator.until(|asked| asked.is("error"))).await;
    assert_eq!(told.expect("it was told").body["request_id"], json!(ID));
}
