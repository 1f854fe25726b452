//! What a program prints: stored in blocks, followed from anywhere, and limited.

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::printed::Truncated;
use crosspoint_contracts::reply::Success;
use crosspoint_engine::event::Entry;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{Attempt, Engine};
use tokio::sync::Notify;

use crate::rows::whole_entry;
use crate::scratch::Scratch;
use crate::stage::{agent, ended, events, new_job, outcome, patience, start, stop, submit, success};

/// The output that an agent printed, put together with each block at its place.
fn printed(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        if let crosspoint_engine::event::What::Output { offset, block, .. } = &entry.what {
            assert_eq!(*offset, bytes.len() as u64);
            bytes.extend_from_slice(&block.0);
        }
    }
    bytes
}

#[tokio::test]
async fn output_is_stored_block_by_block_and_can_be_followed_from_anywhere() {
    let scratch = Scratch::new();
    let sizes = [1_usize, 0, 4_096, 100_000, 1, 7];
    let printer = agent("print", move |mut attempt: Attempt| async move {
        for (at, size) in (b'a'..).zip(sizes) {
            attempt.output(Bytes::from(vec![at; size])).await.expect("it is wanted");
        }
        success("{}")
    });
    let engine = start(&scratch, vec![printer]);
    let watch = submit(&engine, new_job("print", "{}")).await;
    let id = watch.job().id();
    // Follows from the first event, while the agent prints.
    let all = events(&engine, id, 0).await;
    let expected: Vec<u8> = (b'a'..).zip(sizes).flat_map(|(at, size)| vec![at; size]).collect();
    assert!(printed(&all) == expected);
    assert!(all.iter().map(|entry| entry.n).eq(1..=all.len() as u32));
    for after in 0..all.len() {
        let rest = events(&engine, id, after as u32).await;
        assert!(rest.iter().map(whole_entry).eq(all[after..].iter().map(whole_entry)), "after {after}");
    }
    assert!(events(&engine, id, all.len() as u32).await.is_empty());
    assert!(events(&engine, id, 1_000).await.is_empty());
    stop(engine).await;
}

#[tokio::test]
async fn a_follower_who_is_behind_misses_nothing() {
    let scratch = Scratch::new();
    let (half, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (at_half, may_go) = (half.clone(), go.clone());
    let printer = agent("print", move |mut attempt: Attempt| {
        let (half, go) = (at_half.clone(), may_go.clone());
        async move {
            for at in 0..200_u32 {
                if at == 100 {
                    half.notify_one();
                    go.notified().await;
                }
                attempt.output(Bytes::from(at.to_string())).await.expect("it is wanted");
            }
            success("{}")
        }
    });
    let engine = start(&scratch, vec![printer]);
    let watch = submit(&engine, new_job("print", "{}")).await;
    half.notified().await;
    let mut follow = engine.follow(watch.job().id(), 0).await.expect("it can be read").expect("it is there");
    let mut numbers = Vec::new();
    for _ in 0..10 {
        numbers.push(follow.next(patience()).await.expect("it can be read").expect("there is one").n);
    }
    go.notify_one();
    ended(&watch).await;
    while let Some(entry) = follow.next(patience()).await.expect("it can be read") {
        numbers.push(entry.n);
    }
    assert!(numbers.into_iter().eq(1..=203));
    stop(engine).await;
}

#[tokio::test]
async fn more_output_than_is_allowed_ends_the_job() {
    let scratch = Scratch::new();
    let printer = agent("print", |mut attempt: Attempt| async move {
        while attempt.output(Bytes::from_static(&[b'x'; 100])).await.is_ok() {}
        success("{}")
    });
    let engine = start(&scratch, vec![printer]);
    let mut new = new_job("print", "{}");
    new.limits.output_bytes = Some(1_000);
    let job = ended(&submit(&engine, new).await).await;
    assert_eq!(outcome(&job)["failure"]["code"], "resource_limit");
    assert_eq!(printed(&events(&engine, job.id(), 0).await).len(), 1_000);
    stop(engine).await;
}

/// Returns what is said of a text of which a part never came, and whether the outcome still says it elsewhere.
async fn remark(engine: &Engine, job: Arc<Job>) -> (Option<Truncated>, Option<u64>) {
    let href = |job: &Job, attempt: Option<u32>| format!("/{}/{attempt:?}", job.attempts);
    let (job, room) = engine.with_text(job, href).await.expect("it can be read");
    assert!(room.is_none(), "nothing had to be put together");
    let outcome = job.outcome().expect("it has ended");
    let Some(Text::Partial(partial)) = &outcome.text else { panic!("the text is not whole") };
    assert_eq!(partial.text.get(), "\"its end\"");
    (partial.truncated.clone(), outcome.whole_bytes)
}

#[tokio::test]
async fn a_text_of_which_a_part_never_came_says_so_also_after_a_restart() {
    let scratch = Scratch::new();
    let agents = || {
        let cut = |_: Attempt| async { Ok(Success { whole_bytes: Some(9), ..Success::of(Body::of(&"its end")) }) };
        vec![agent("cut", cut)]
    };
    let engine = start(&scratch, agents());
    let job = ended(&submit(&engine, new_job("cut", "{}")).await).await;
    assert_eq!(job.outcome().and_then(|outcome| outcome.whole_bytes), Some(9), "it is stored as it is");
    let said = Some(Truncated { bytes: 9, href: "/1/None".into() });
    assert_eq!(remark(&engine, job.clone()).await, (said.clone(), None));
    stop(engine).await;
    let engine = start(&scratch, agents());
    let watch = engine.job(job.id()).await.expect("it can be read").expect("it is there");
    assert_eq!(remark(&engine, watch.job()).await, (said, None));
    stop(engine).await;
}
