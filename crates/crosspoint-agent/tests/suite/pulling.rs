//! Work that an agent pulls from an orchestrator of the message contract.

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::{Value, json};

use crate::orchestrator::{Asked, Orchestrator, message, registered, request};

const ID: &str = "550e8400-e29b-41d4-a716-446655440030";
const OTHER: &str = "550e8400-e29b-41d4-a716-446655440031";

async fn quick(_: Value, _: Context) -> Result<Value, Failure> {
    Ok(json!({}))
}

async fn waits(_: Value, context: Context) -> Result<Value, Failure> {
    context.cancelled().await;
    Ok(json!({}))
}

fn pulling(orchestrator: &Orchestrator) {
    let agent = Agent::new("worker").on("quick", quick).on("waits", waits).concurrency(5_000).forgetful();
    tokio::spawn(agent.connect(orchestrator.url.clone()).pull(std::future::pending()));
}

/// The answer to a poll.
fn messages(messages: &[Value]) -> Option<(u16, Value)> {
    Some((200, json!({"messages": messages})))
}

#[tokio::test(start_paused = true)]
async fn an_orchestrator_that_never_answers_a_request_does_not_stop_the_agent() {
    let (mut registrations, mut polls, mut posts) = (0, 0, 0);
    let mut orchestrator = Orchestrator::start(move |asked: &Asked| {
        let count = match (asked.is_poll(), &*asked.target) {
            (true, _) => &mut polls,
            (false, "/api/agent/register") => &mut registrations,
            (false, _) => &mut posts,
        };
        *count += 1;
        match (*count, asked.is_poll(), &*asked.target) {
            (1, ..) | (3.., true, _) => None,
            (_, true, _) => messages(&[request("quick", ID)]),
            (_, false, "/api/agent/register") => registered(None),
            (_, false, _) => Some((204, Value::Null)),
        }
    })
    .await;
    pulling(&orchestrator);
    for _ in 0..2 {
        let result = orchestrator.until(|asked| asked.is("work_result")).await;
        assert_eq!(result.body["request_id"], json!(ID));
    }
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_are_sent_where_they_were_asked_for() {
    for wanted in [None, Some(5)] {
        let mut orchestrator = Orchestrator::start(move |asked: &Asked| match &*asked.target {
            "/api/agent/register" => registered(wanted),
            "/api/agent/message" => Some((204, Value::Null)),
            // A poll that is never answered ends after 30 s.
            _ => None,
        })
        .await;
        pulling(&orchestrator);
        let (mut polls, mut beats) = (0, 0);
        while polls < 5 {
            let asked = orchestrator.next().await;
            polls += u32::from(asked.is_poll());
            beats += u32::from(asked.is("work_status"));
        }
        assert_eq!(beats > 0, wanted.is_some(), "{beats} with {wanted:?}");
    }
}

#[tokio::test]
async fn polls_keep_to_what_the_orchestrator_allows() {
    let mut orchestrator = Orchestrator::start(|asked: &Asked| match &*asked.target {
        "/api/agent/register" if asked.body["concurrency"].as_u64() > Some(1_000) => Some((400, json!({}))),
        "/api/agent/register" => registered(None),
        poll if poll.contains("&wait=20&") || poll.contains("&wait=5&") => Some((400, json!({}))),
        _ => messages(&[]),
    })
    .await;
    pulling(&orchestrator);
    let refused = [orchestrator.until(Asked::is_poll).await, orchestrator.next().await].map(|poll| poll.target);
    assert_eq!(refused, ["20", "5"].map(|wait| format!("/api/agent/messages?agent=worker&wait={wait}&max=50&ack=")));
    for _ in 0..2 {
        assert_eq!(orchestrator.next().await.target, "/api/agent/messages?agent=worker&wait=1&max=50&ack=");
    }
}

#[tokio::test]
async fn pulled_work_is_cancelled_by_its_task() {
    let error = json!({"error_code": 5901, "error_message": "cancelled", "error_context": {"task_id": ID}});
    let mut to_send = vec![message("error", OTHER, &error), {
        let mut request = request("waits", OTHER);
        request["payload"]["task_id"] = json!(ID);
        request["request_id"] = json!("550e8400-e29b-41d4-a716-446655440032");
        request
    }];
    let mut orchestrator = Orchestrator::start(move |asked: &Asked| match &*asked.target {
        "/api/agent/register" => registered(None),
        "/api/agent/message" => Some((204, Value::Null)),
        _ => to_send.pop().map(|message| (200, json!({"messages": [message]}))),
    })
    .await;
    pulling(&orchestrator);
    let told = orchestrator.until(|asked| asked.is("error")).await;
    assert_eq!(told.body["payload"]["error_code"], json!(5901), "{told:?}");
}

/// MSG-12: an agent that stops says so, where signs of life were asked for. Until its work has ended it is busy.
#[tokio::test(start_paused = true)]
async fn an_agent_that_stops_says_that_it_leaves() {
    for (wanted, work, said) in
        [(Some(30), None, vec!["offline"]), (None, None, vec![]), (Some(30), Some("waits"), vec!["busy", "offline"])]
    {
        let mut to_send = work.map(|work| request(work, ID));
        let mut orchestrator = Orchestrator::start(move |asked: &Asked| match &*asked.target {
            "/api/agent/register" => registered(wanted),
            "/api/agent/message" => Some((204, Value::Null)),
            _ => to_send.take().map(|message| (200, json!({"messages": [message]}))),
        })
        .await;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let agent = Agent::new("worker").on("waits", waits).forgetful().connect(orchestrator.url.clone());
        let pulling = tokio::spawn(agent.pull(async { drop(stopped.await) }));
        orchestrator.until(Asked::is_poll).await;
        if work.is_some() {
            orchestrator.until(|asked| asked.is("work_status")).await;
        }
        drop(stop);
        pulling.await.expect("it does not panic").expect("it pulls");
        let mut after = Vec::new();
        while let Some(asked) = orchestrator.past() {
            after.push(asked);
        }
        let beats: Vec<&Value> = after
            .iter()
            .map(|asked| &asked.body["payload"])
            .filter(|said| said["agent_id"] == "worker")
            .map(|said| &said["status"])
            .collect();
        assert_eq!(beats, said, "{after:?}");
        if wanted.is_some() {
            let last = &after.last().expect("there is one").body["payload"]["status"];
            assert_eq!(last, "offline", "everything that is said after it says that the agent is there: {after:?}");
        }
    }
}
