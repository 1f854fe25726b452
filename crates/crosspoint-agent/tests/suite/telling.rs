//! How an orchestrator of the message contract is told of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Runtime;

use crate::orchestrator::{Answer, Asked, Orchestrator, message, registered, request};
use crate::support::{Served, scratch};

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

async fn prints(_: Value, context: Context) -> Result<Value, Failure> {
    context.output().write_all(b"PLAY [all]\n").await?;
    context.cancelled().await;
    Err(Failure::new("told to stop"))
}

fn agent() -> Agent {
    Agent::new("worker").on("quick", quick).on("waits", waits).on("asks", asks).on("prints", prints).forgetful()
}

/// Whether the agent sends what was printed.
fn is_block(asked: &Asked) -> bool {
    asked.is("work_status") && asked.body["payload"]["step"]["output_chunk"].is_string()
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

#[tokio::test(start_paused = true)]
async fn output_that_is_lost_is_sent_again_ever_more_seldom() {
    let counts = sent("prints", "work_status", 6, |asked| if is_block(asked) { 503 } else { 204 }).await;
    // Three statuses in the 30 s of each poll. Blocks come after 0.5, 1, 2, 4 and 8 s, and then every 10 s.
    let all: usize = counts.iter().sum();
    assert!((25..=50).contains(&all), "{counts:?}");
}

/// MSG-19.
#[tokio::test(start_paused = true)]
async fn work_that_is_cancelled_in_the_answer_to_output_stops_at_once() {
    let cancel = json!({"error_code": 5901, "error_message": "no longer wanted", "error_context": {"task_id": ID},
        "recoverable": false});
    let mut is_given = false;
    let mut orchestrator = Orchestrator::start(move |asked: &Asked| -> Answer {
        match &*asked.target {
            "/api/agent/register" => registered(None),
            "/api/agent/message" if is_block(asked) => Some((200, message("error", ID, &cancel))),
            "/api/agent/message" => Some((204, Value::Null)),
            _ if !std::mem::replace(&mut is_given, true) => Some((200, json!({"messages": [request("prints", ID)]}))),
            _ => None,
        }
    })
    .await;
    tokio::spawn(agent().connect(orchestrator.url.clone()).pull(std::future::pending()));
    orchestrator.until(is_block).await;
    let told = tokio::time::timeout(Duration::from_secs(5), orchestrator.until(|asked| asked.is("error"))).await;
    let told = told.expect("the next status is ten seconds away").body;
    assert_eq!(told["payload"]["error_code"], 5901, "{told}");
}

/// An agent in a runtime of its own, which ends as if it were killed.
fn life(agent: impl Fn() -> Agent + Send + 'static) -> Runtime {
    let life = Runtime::new().expect("it can be made");
    life.spawn(async move {
        // The life before may not have given the file of answers back yet.
        while agent().pull(std::future::pending()).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    life
}

/// MSG-8, MSG-17.
#[tokio::test]
async fn an_outcome_that_was_not_told_is_told_after_a_restart() {
    let (is_away, mut is_given) = (Arc::new(AtomicBool::new(true)), false);
    let away = is_away.clone();
    let mut orchestrator = Orchestrator::start(move |asked: &Asked| -> Answer {
        match &*asked.target {
            "/api/agent/register" => registered(None),
            "/api/agent/message" if away.load(Ordering::SeqCst) => Some((503, Value::Null)),
            "/api/agent/message" => Some((204, Value::Null)),
            _ if !std::mem::replace(&mut is_given, true) => Some((200, json!({"messages": [request("quick", ID)]}))),
            _ => None,
        }
    })
    .await;
    let (path, url) = (scratch("owed"), orchestrator.url.clone());
    let agent = move || Agent::new("worker").on("quick", quick).answers(&path).connect(url.clone());
    let first = life(agent.clone());
    orchestrator.until(|asked| asked.is("work_result")).await;
    first.shutdown_background();
    is_away.store(false, Ordering::SeqCst);
    let second = life(agent);
    let told = tokio::time::timeout(Duration::from_secs(30), orchestrator.until(|asked| asked.is("work_result"))).await;
    let told = told.expect("it is told").body;
    assert_eq!((&told["request_id"], &told["payload"]["task_id"]), (&json!(ID), &json!(ID)), "{told}");
    second.shutdown_background();
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

/// Prints, asks, and prints again while it waits for the answer.
async fn prints_and_asks(_: Value, context: Context) -> Result<Value, Failure> {
    context.progress(20.0, "Look");
    context.output().write_all(b"before\n").await?;
    let question = context.ask::<String>("Which zone?", None);
    let printing = async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        context.output().write_all(b"meanwhile\n").await
    };
    let (zone, printed) = tokio::join!(question, printing);
    printed?;
    Ok(json!({"zone": zone?}))
}

/// ALL-5: a status without the question would take it back.
#[tokio::test(start_paused = true)]
async fn while_a_question_is_open_every_status_has_it() {
    let mut is_given = false;
    let mut orchestrator = Orchestrator::start(move |asked: &Asked| -> Answer {
        match &*asked.target {
            "/api/agent/register" => registered(None),
            "/api/agent/message" => Some((204, json!({}))),
            _ if !std::mem::replace(&mut is_given, true) => Some((200, json!({"messages": [request("asks", ID)]}))),
            _ => None,
        }
    })
    .await;
    let agent = Agent::new("worker").on("asks", prints_and_asks).forgetful();
    tokio::spawn(agent.connect(orchestrator.url.clone()).pull(std::future::pending()));
    let (mut printed, mut asked) = (String::new(), 0);
    while asked < 4 || !printed.ends_with("meanwhile\n") {
        let status = orchestrator.until(|asked| asked.is("work_status")).await.body;
        let is_paused = status["payload"]["status"] == "paused";
        let question = &status["x_custom_fields"]["x_crosspoint"]["question"]["prompt"];
        assert_eq!(is_paused, *question == "Which zone?", "{status}");
        assert_eq!(is_paused, printed.starts_with("before\n"), "what was printed before is told before: {status}");
        printed.push_str(status["payload"]["step"]["output"].as_str().unwrap_or_default());
        asked += u32::from(is_paused);
    }
}
