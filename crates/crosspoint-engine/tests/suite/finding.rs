//! Jobs that are looked up by the caller's own id, and what is kept of the documents that agents send.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{AgentDocument, Progress, Success};
use crosspoint_contracts::request::{Door, Key, NewJob};
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::event::What;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::retention::Rule;
use crosspoint_engine::runtime::{Config, Engine, Submitted, Unaccepted};
use tokio::sync::Semaphore;

use crate::scratch::Scratch;
use crate::stage::{self, agent, config, ended, events, gated, keyed, start, stop, submit};

fn task(id: &str) -> NewJob {
    NewJob { door: Door::Contract(Contract::Task), trace: Some("00-a-b-01".into()), ..keyed("slow", "{}", id) }
}

async fn found(engine: &Engine, door: Door, caller: &str, id: &str) -> Option<JobId> {
    let watch = engine.find(door, caller, id).await.expect("the store can be read")?;
    Some(watch.job().id())
}

#[tokio::test]
async fn a_task_is_found_by_its_callers_id_whatever_its_key_is_and_after_a_restart() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    let plain = submit(&engine, task("a/ß")).await.job().id();
    let headed = submit(&engine, NewJob { key: Key::Other("header".into()), ..task("b") }).await.job().id();
    let native = submit(&engine, keyed("slow", "{}", "c")).await.job().id();
    let all = async |engine: &Engine| {
        assert_eq!(found(engine, Door::Contract(Contract::Task), "", "a/ß").await, Some(plain));
        assert_eq!(
            found(engine, Door::Contract(Contract::Task), "", "b").await,
            Some(headed),
            "the key is a header, the id is the caller's"
        );
        assert_eq!(found(engine, Door::Native, "", "c").await, Some(native));
        for (door, caller, id) in [
            (Door::Native, "", "b"),
            (Door::Contract(Contract::Task), "x", "b"),
            (Door::Contract(Contract::Task), "", "c"),
            (Door::Contract(Contract::Task), "", ""),
        ] {
            assert_eq!(found(engine, door, caller, id).await, None, "{door:?} {caller} {id}");
        }
    };
    all(&engine).await;
    gate.add_permits(3);
    for id in [plain, headed, native] {
        let watch = engine.job(id).await.expect("it can be read").expect("it is there");
        ended(&watch).await;
    }
    all(&engine).await;
    stop(engine).await;
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    all(&engine).await;
    let job =
        engine.find(Door::Contract(Contract::Task), "", "b").await.expect("it can be read").expect("it is there").job();
    assert_eq!(job.request.trace.as_deref(), Some("00-a-b-01"), "where it belongs in a trace is kept");
    stop(engine).await;
}

#[tokio::test]
async fn no_two_tasks_have_one_id_whatever_headers_came_with_them() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    let headed = |header: &str, id: &str| NewJob { key: Key::Other(header.into()), ..task(id) };
    let first = submit(&engine, headed("one", "a")).await.job().id();
    for again in [headed("one", "a"), headed("two", "a"), task("a"), headed("one", "b")] {
        match engine.submit(again).await {
            Ok(Submitted::Repeat(watch)) => assert_eq!(watch.job().id(), first),
            Ok(Submitted::New(_)) => panic!("it is the same task"),
            Err(unaccepted) => panic!("{unaccepted:?}"),
        }
    }
    let other = NewJob { door: Door::Contract(Contract::Task), ..keyed("slow", "[1]", "a") };
    assert!(matches!(engine.submit(other).await, Err(Unaccepted::Conflict(job)) if job.id() == first));
    gate.add_permits(1);
    stop(engine).await;
}

#[tokio::test]
async fn a_job_that_is_no_longer_kept_is_not_found() {
    let scratch = Scratch::new();
    let echo = || vec![agent("slow", stage::echo)];
    let kept = Config {
        retention: Rule { age: Some(Duration::from_millis(1)), jobs: None, age_min: Duration::ZERO },
        ..config(&scratch, echo())
    };
    let engine = Engine::start(kept).expect("it starts");
    ended(&submit(&engine, NewJob { key: Key::Other("header".into()), ..task("a") }).await).await;
    stage::until("it is gone", async || found(&engine, Door::Contract(Contract::Task), "", "a").await.is_none()).await;
    stop(engine).await;
}

fn said(document: &str) -> Option<AgentDocument> {
    Some(AgentDocument { kind: Kind::RunStream, document: Body::trusted(document.to_owned()) })
}

#[tokio::test]
async fn all_that_an_agent_says_is_kept_beside_what_was_understood() {
    let scratch = Scratch::new();
    let engine = start(
        &scratch,
        vec![agent("talks", |attempt| async move {
            let progress = Progress { percent: Some(40.0), step: None, document: said(r#"{"tokens":7}"#), began: None };
            attempt.advanced(progress).await.map_err(|_| crosspoint_contracts::reply::Failed::dead("gone"))?;
            Ok(Success { document: said(r#"{"own":true}"#), ..Success::of(Body::trusted("{}")) })
        })],
    );
    let watch = submit(&engine, stage::new_job("talks", "{}")).await;
    let job: Arc<Job> = ended(&watch).await;
    let entries = events(&engine, job.id(), 0).await;
    let progress = entries.iter().find_map(|entry| {
        let What::Progress(progress) = &entry.what else { return None };
        Some(progress.clone())
    });
    assert_eq!(progress.and_then(|progress| progress.document), said(r#"{"tokens":7}"#));
    let outcome = stage::outcome(&job);
    assert_eq!(outcome["said"], serde_json::json!({"kind": "run.stream", "document": {"own": true}}));
    stop(engine).await;
}
