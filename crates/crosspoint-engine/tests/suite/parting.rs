//! The end of attempts that cannot outlive the process.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_engine::job::Phase;
use crosspoint_engine::policy::{Policy, Recovery};
use crosspoint_engine::runtime::Attempt;
use tokio::sync::Semaphore;

use crate::scratch::Scratch;
use crate::stage::{
    Agent, Came, agent, echo, ended, events, failed, names, never, new_job, reaches, start, stop, submit, with_policy,
};

/// An agent whose attempts end with the process, once the gate is open.
fn parting(gate: &Arc<Semaphore>) -> Agent {
    let gate = gate.clone();
    let run = move |attempt: Attempt| -> std::pin::Pin<Box<dyn Future<Output = Came> + Send>> {
        let gate = gate.clone();
        Box::pin(async move {
            attempt.leaving().await;
            attempt.abandon();
            gate.acquire().await.expect("it is open").forget();
            failed(Failure::AgentFailed, Dispatched::Yes)
        })
    };
    with_policy(agent("work", run), rerun())
}

fn rerun() -> Policy {
    Policy { recovery: Recovery::Rerun, ..Policy::default() }
}

#[tokio::test]
async fn an_attempt_that_ends_with_us_is_waited_for_and_nothing_is_reported_of_it() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![parting(&gate)]);
    let watch = submit(&engine, new_job("work", "{}")).await;
    reaches(&watch, Phase::Running).await;
    let stopping = tokio::spawn({
        let engine = engine.clone();
        async move { engine.stop_and_part(Duration::ZERO, Duration::from_secs(60)).await }
    });
    // The attempt is still under way, and the engine still waits for it.
    assert_eq!(engine.attempts(), 1);
    gate.add_permits(1);
    stopping.await.expect("it stops");
    assert_eq!((watch.job().phase(), engine.attempts()), (Phase::Running, 0));
    let engine = start(&scratch, vec![with_policy(agent("work", echo), rerun())]);
    let found = engine.job(watch.job().id()).await.expect("it can be read").expect("it is there");
    assert_eq!(ended(&found).await.phase(), Phase::Completed);
    let shown = names(&events(&engine, watch.job().id(), 0).await);
    assert_eq!(shown, ["accepted", "started", "interrupted", "started", "completed"]);
    stop(engine).await;
}

/// Attempts that can outlive the process are told nothing, and do not delay the stop.
#[tokio::test]
async fn attempts_that_can_outlive_us_are_left_alone() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("work", never)]);
    let watch = submit(&engine, new_job("work", "{}")).await;
    reaches(&watch, Phase::Running).await;
    engine.stop_and_part(Duration::ZERO, Duration::from_secs(600)).await;
    assert_eq!((watch.job().phase(), engine.attempts()), (Phase::Running, 1));
}
