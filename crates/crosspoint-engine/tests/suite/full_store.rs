//! A store that is full, or becomes so.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::runtime::{Engine, Readiness, Submitted, Unaccepted, Watch};
use crosspoint_engine::store::{Fault, Filter, Store};
use tokio::sync::Semaphore;

use crate::faults::{filled, sqlite};
use crate::scratch::Scratch;
use crate::stage::{self, ended, outcome, submit};

/// Adds a table that takes room, so that room can be made later.
fn add_ballast(path: &Path) -> u64 {
    let connection = sqlite(path);
    connection
        .execute_batch("CREATE TABLE ballast(bytes BLOB); INSERT INTO ballast VALUES (zeroblob(4000000))")
        .expect("it can be written");
    let pages: i64 = connection.query_row("PRAGMA page_count", (), |row| row.get(0)).expect("it has pages");
    pages.unsigned_abs() * 4_096
}

/// Submits until there is no room, and returns the accepted jobs.
async fn fill(engine: &Engine) -> Vec<Watch> {
    let mut accepted = Vec::new();
    let input = format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000));
    for at in 0.. {
        match engine.submit(stage::keyed("note", &input, &format!("n{at}"))).await {
            Ok(Submitted::New(watch)) => accepted.push(watch),
            Ok(Submitted::Repeat(_)) => panic!("it is no repeat"),
            Err(Unaccepted::Fault(fault)) => {
                assert!(matches!(*fault, Fault::Full { .. }), "{fault}");
                return accepted;
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(at < 1_000, "it must come to an end");
    }
    accepted
}

fn full_agents(gate: &Arc<Semaphore>) -> Vec<stage::Agent> {
    let gate = gate.clone();
    let long = format!(r#"{{"text":"{}"}}"#, "y".repeat(60_000));
    let slow = stage::agent("slow", move |_| {
        let (gate, long) = (gate.clone(), long.clone());
        async move {
            gate.acquire().await.expect("the gate stays").forget();
            stage::success(&long)
        }
    });
    vec![slow, stage::agent("note", |_| async { stage::success("{}") })]
}

#[tokio::test]
async fn a_full_store_refuses_new_work_loses_nothing_and_goes_on_once_there_is_room() {
    let scratch = Scratch::new();
    filled(&scratch, 2);
    let bytes = add_ballast(&scratch.database());
    let gate = Arc::new(Semaphore::new(0));
    let engine = Engine::start(stage::bounded(&scratch, full_agents(&gate), bytes + 600_000)).expect("it starts");
    let mut slow = Vec::new();
    for _ in 0..3 {
        slow.push(submit(&engine, stage::new_job("slow", "{}")).await);
    }
    let accepted = fill(&engine).await;
    assert!(accepted.len() > 5);
    assert!(matches!(engine.readiness(), Readiness::Failing(fault) if matches!(*fault, Fault::Full { .. })));
    // The agents finish while nothing can be committed.
    gate.add_permits(3);
    while gate.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let refused = engine.submit(stage::new_job("note", "{}")).await;
    assert!(matches!(refused, Err(Unaccepted::NotTried(_))), "nothing was done about it");
    assert!(slow.iter().all(|watch| watch.job().phase() == Phase::Running));
    let seen = engine.job(accepted[0].job().id()).await.expect("reading goes on").expect("it is there");
    assert_eq!(seen.job().request.request_id, accepted[0].job().request.request_id);

    sqlite(&scratch.database()).execute("DELETE FROM ballast", ()).expect("room can be made");
    for watch in &slow {
        let job = ended(watch).await;
        assert_eq!(outcome(&job)["outputs"]["text"].as_str().map(str::len), Some(60_000));
    }
    for watch in &accepted {
        assert_eq!(ended(watch).await.phase(), Phase::Completed);
    }
    assert!(matches!(engine.readiness(), Readiness::Ready));
    let new = submit(&engine, stage::new_job("note", "{}")).await;
    assert_eq!(ended(&new).await.phase(), Phase::Completed);
    let known: Vec<Arc<Job>> = slow.iter().chain(&accepted).chain([&new]).map(Watch::job).collect();
    stage::stop(engine).await;
    let (_store, readers) = Store::open(&scratch.options()).expect("it opens");
    for job in known {
        let found = readers.job(job.id()).expect("it can be read").expect("it is there");
        assert_eq!(outcome(&found), outcome(&job));
    }
}

#[tokio::test]
async fn a_store_that_is_full_from_the_start_is_refused_and_whole() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = stage::start(&scratch, full_agents(&gate));
    let mut running = Vec::new();
    for _ in 0..2_000 {
        running.push(engine.submit(stage::new_job("slow", "{}")));
    }
    for submitted in futures_util::future::join_all(running).await {
        assert!(submitted.is_ok());
    }
    stage::stop(engine).await;
    drop(gate);
    // The start must write that each of the two thousand jobs was interrupted, and there is no room for that.
    let bytes = fs::metadata(scratch.database()).expect("it is there").len();
    let gate = Arc::new(Semaphore::new(0));
    let fault = Engine::start(stage::bounded(&scratch, full_agents(&gate), bytes)).err();
    assert!(matches!(fault, Some(Fault::Full { .. })), "{fault:?}");
    let engine = stage::start(&scratch, full_agents(&gate));
    assert_eq!(engine.jobs_live(), 2_000);
    gate.add_permits(2_000);
    let page = engine.list(Filter { limit: 2_000, ..Filter::default() }).await.expect("it can be read");
    for job in page.jobs {
        let watch = engine.job(job.id()).await.expect("it can be read").expect("it is there");
        assert_eq!(ended(&watch).await.phase(), Phase::Completed);
    }
    stage::stop(engine).await;
}
