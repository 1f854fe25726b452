//! What links remember of an attempt: it is on disk when the link is told so, returned after a restart, and removed
//! with the attempt.

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::request::Schedule;
use crosspoint_engine::job::Phase;
use crosspoint_engine::policy::{MEMORY_BYTES_MAX, Policy, Recovery, Repeats};
use crosspoint_engine::runtime::{Attempt, Gone, Unremembered};
use crosspoint_engine::store::Store;
use tokio::sync::mpsc;

use crate::scratch::Scratch;
use crate::stage::{agent, ended, failed, new_job, reaches, start, stop, submit, success, with_policy};

fn resumed() -> Policy {
    Policy { recovery: Recovery::Resume, ..Policy::default() }
}

#[tokio::test]
async fn what_was_remembered_last_is_given_back_to_the_link_that_takes_the_attempt_up() {
    let scratch = Scratch::new();
    let (told, mut remembered) = mpsc::unbounded_channel();
    let remembering = move |attempt: Attempt| {
        let told = told.clone();
        async move {
            assert_eq!(attempt.memory(), None, "nothing is remembered of what has only begun");
            for memory in [&b"first"[..], b"\0 second \xff"] {
                attempt.remember(Bytes::copy_from_slice(memory)).await.expect("it is remembered");
            }
            told.send(()).expect("the test is there");
            attempt.stopped().await;
            success("{}")
        }
    };
    let engine = start(&scratch, vec![with_policy(agent("work", remembering), resumed())]);
    let id = submit(&engine, new_job("work", "{}")).await.job().id();
    remembered.recv().await.expect("it is remembered");
    stop(engine).await;
    // The memory is on disk, where another reader finds it.
    let (store, readers) = Store::open(&scratch.options()).expect("it opens");
    let job = readers.job(id).expect("it can be read").expect("it is there");
    assert_eq!(job.memory.as_ref().map(|memory| &*memory.0), Some(&b"\0 second \xff"[..]));
    drop((store, readers));

    let recalling = |attempt: Attempt| async move {
        assert!(attempt.is_resumed());
        success(if attempt.memory() == Some(&Bytes::from_static(b"\0 second \xff")) { "true" } else { "false" })
    };
    let engine = start(&scratch, vec![with_policy(agent("work", recalling), resumed())]);
    let watch = engine.job(id).await.expect("it can be read").expect("it is there");
    let job = ended(&watch).await;
    assert_eq!(job.outcome().and_then(|ending| ending.outputs.clone()).expect("it gave something").get(), "true");
    assert_eq!(job.memory, None, "it is gone with the attempt");
    stop(engine).await;
}

#[tokio::test]
async fn the_next_attempt_knows_nothing_of_the_last_one_and_too_much_is_not_remembered() {
    let scratch = Scratch::new();
    let policy = Policy {
        repeats: Repeats::Always,
        schedule: Schedule { first: std::time::Duration::ZERO, ..Schedule::DEFAULT },
        ..Policy::default()
    };
    let link = |attempt: Attempt| async move {
        assert_eq!(attempt.memory(), None);
        let much = vec![b'm'; MEMORY_BYTES_MAX + 1];
        assert_eq!(attempt.remember(much).await, Err(Unremembered::TooLong));
        attempt.remember(vec![b'm'; MEMORY_BYTES_MAX]).await.expect("as much may be remembered");
        if attempt.number() == 1 { failed(Failure::Unavailable, Dispatched::Yes) } else { success("{}") }
    };
    let engine = start(&scratch, vec![with_policy(agent("work", link), policy)]);
    let job = ended(&submit(&engine, new_job("work", "{}")).await).await;
    assert_eq!((job.attempts, job.phase()), (2, Phase::Completed));
    stop(engine).await;
}

#[tokio::test]
async fn nothing_is_remembered_of_a_job_that_goes_on_without_the_attempt() {
    let scratch = Scratch::new();
    let (told, mut heard) = mpsc::unbounded_channel();
    let late = move |attempt: Attempt| {
        let told = told.clone();
        async move {
            let attempt = Arc::new(attempt);
            attempt.stopped().await;
            told.send(attempt.remember(&b"too late"[..]).await).expect("the test is there");
            success("{}")
        }
    };
    let engine = start(&scratch, vec![agent("work", late)]);
    let watch = submit(&engine, new_job("work", "{}")).await;
    reaches(&watch, Phase::Running).await;
    engine.cancel(watch.job().id()).await.expect("it can be cancelled");
    assert_eq!(heard.recv().await, Some(Err(Unremembered::Gone(Gone))));
    assert_eq!(watch.job().memory, None);
    stop(engine).await;
}
