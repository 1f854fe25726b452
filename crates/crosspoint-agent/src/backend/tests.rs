//! Tests of jobs at moments that callers cannot choose: a full disk, a place that comes with a cancellation, a caller
//! that leaves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Failure as Why, Repeat};
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::request::{Door, Key, Limits, NewJob, Priority};
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::backend::{Backend, Followed, Submitted, Unaccepted};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Notify, oneshot};

use super::{OwnJobs, Work};
use crate::answers::Answers;
use crate::handler::Boxed;
use crate::places::Places;
use crate::record::{Job, Phase};
use crate::{Context, Failure, Handler, Keep};

const DOOR: Door = Door::Contract(Contract::Task);

/// A path that no other test has.
fn scratch() -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("crosspoint-backend-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    directory.join("answers")
}

fn backend(works: Vec<(&str, Boxed, bool)>, answers: Option<Answers>) -> OwnJobs {
    let work = |(name, handler, at_most_once): (&str, Boxed, bool)| (name.into(), Work { handler, at_most_once });
    let works: BTreeMap<Arc<str>, Work> = works.into_iter().map(work).collect();
    OwnJobs::new(("worker".into(), None), works, (Places::new(1, 1), Duration::from_secs(5)), answers)
}

fn counting(calls: &Arc<AtomicU32>) -> Boxed {
    let calls = calls.clone();
    let count = move |_: Value, _: Context| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Failure>(json!({ "call": call })) }
    };
    count.boxed()
}

/// A handler that ends when it is told to.
fn staying(go: &Arc<Notify>) -> Boxed {
    let go = go.clone();
    let stay = move |_: Value, _: Context| {
        let go = go.clone();
        async move {
            go.notified().await;
            Ok::<_, Failure>(json!({}))
        }
    };
    stay.boxed()
}

fn request(work: &str, id: &str, document: &Bytes) -> NewJob {
    NewJob {
        door: DOOR,
        caller: Caller::everyone().name().into(),
        request_id: Some(id.into()),
        key: Key::RequestId,
        work: work.into(),
        agent: None,
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        document: Block(document.clone()),
        input: 0..2,
        trace: None,
        echo: None,
        notify: None,
    }
}

async fn submitted(backend: &OwnJobs, work: &str, id: &str) -> Job {
    match backend.submit(&Caller::everyone(), request(work, id, &Bytes::from_static(b"{}"))).await {
        Ok(Submitted::New(job) | Submitted::Repeat(job)) => job,
        Err(_) => panic!("it is taken"),
    }
}

async fn ended(job: &Job) -> Arc<crate::record::Record> {
    job.ended(std::time::Instant::now() + Duration::from_secs(60)).await
}

fn why(job: &Job) -> Option<(Why, Repeat)> {
    match &job.now().phase {
        Phase::Ended { outcome, .. } => outcome.why(),
        Phase::Queued | Phase::Running | Phase::Waiting { .. } => panic!("it has not ended"),
    }
}

#[tokio::test]
async fn work_that_is_done_at_most_once_is_not_begun_where_that_cannot_be_noted() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let backend = backend(vec![("pay", counting(&calls), true), ("read", counting(&calls), false)], Some(answers));
    backend.close().await;
    let pay = submitted(&backend, "pay", "p-1").await;
    ended(&pay).await;
    assert_eq!((why(&pay), calls.load(Ordering::Relaxed)), (Some((Why::Unavailable, Repeat::Safe)), 0));
    assert!(pay.is_done_again(), "the same request is tried again");
    // Other work was done, so its caller is answered.
    let read = submitted(&backend, "read", "r-1").await;
    ended(&read).await;
    assert_eq!((why(&read), calls.load(Ordering::Relaxed)), (None, 1));
}

#[tokio::test]
async fn a_job_that_is_cancelled_as_its_turn_comes_is_not_begun() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    // The first job cancels the second and gives it its place in one step.
    let (go, waits) = oneshot::channel::<(OwnJobs, Job)>();
    let waits = Arc::new(std::sync::Mutex::new(vec![waits]));
    let cancels = move |_: Value, _: Context| {
        let waits = waits.lock().expect("it is free").pop();
        async move {
            let (backend, other) = waits.expect("it is called once").await?;
            let _ = backend.cancel(&Caller::everyone(), &other).await;
            Ok::<_, Failure>(json!({}))
        }
    };
    let works = vec![("cancel", cancels.boxed(), false), ("pay", counting(&calls), true)];
    let backend = backend(works, Some(answers));
    let first = submitted(&backend, "cancel", "c-1").await;
    let second = submitted(&backend, "pay", "p-1").await;
    assert!(go.send((backend.clone(), second.clone())).is_ok());
    ended(&first).await;
    backend.idle().await;
    assert_eq!((why(&second), calls.load(Ordering::Relaxed)), (Some((Why::Cancelled, Repeat::Never)), 0));
    let kept = std::fs::read_to_string(path).expect("it is there");
    let of_second: Vec<&str> = kept.lines().filter(|line| line.contains("p-1")).collect();
    assert_eq!(of_second.len(), 1, "that it was begun is not noted");
    assert!(of_second[0].contains("cancelled"));
}

#[tokio::test]
async fn a_place_and_an_end_that_come_together_are_the_end() {
    let calls = Arc::new(AtomicU32::new(0));
    for _ in 0..20 {
        let go = Arc::new(Notify::new());
        let backend = backend(vec![("stay", staying(&go), false), ("pay", counting(&calls), true)], None);
        submitted(&backend, "stay", "s-1").await;
        let second = submitted(&backend, "pay", "p-1").await;
        // The first is woken first and leaves its place; when the second is woken it has one and is to stop.
        go.notify_one();
        second.stop().cancel();
        backend.idle().await;
        assert_eq!((why(&second), calls.load(Ordering::Relaxed)), (Some((Why::Unavailable, Repeat::Safe)), 0));
    }
}

#[tokio::test]
async fn a_job_that_is_cancelled_while_its_beginning_is_noted_is_not_begun() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let backend = backend(vec![("pay", counting(&calls), true)], Some(answers));
    for number in 0.. {
        let (before, id) = (calls.load(Ordering::Relaxed), format!("p-{number}"));
        let job = submitted(&backend, "pay", &id).await;
        // A disk that is faster than this thread has it noted already.
        if matches!(job.now().phase, Phase::Queued) {
            assert!(backend.end_cancelled(&job).await.is_ok());
            backend.idle().await;
            assert_eq!((why(&job), calls.load(Ordering::Relaxed)), (Some((Why::Cancelled, Repeat::Never)), before));
            let kept = std::fs::read_to_string(&path).expect("it is there");
            let last = kept.lines().rfind(|line| line.contains(&id)).expect("it is noted");
            assert!(last.contains("cancelled"), "what the caller was told is noted last");
            return;
        }
    }
}

#[tokio::test]
async fn a_cancellation_is_done_whole_when_its_caller_leaves() {
    let (go, path) = (Arc::new(Notify::new()), scratch());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let backend = backend(vec![("stay", staying(&go), false)], Some(answers));
    let job = submitted(&backend, "stay", "s-1").await;
    let caller = Caller::everyone();
    // The caller asks, and leaves while the disk is written.
    assert!(backend.cancel(&caller, &job).now_or_never().is_none());
    ended(&job).await;
    assert_eq!(why(&job), Some((Why::Cancelled, Repeat::Never)));
    assert!(job.stop().is_cancelled());
    assert!(std::fs::read_to_string(path).expect("it is there").contains("cancelled"));
}

fn keyed(work: &str, key: &str, id: &str) -> NewJob {
    NewJob { key: Key::Other(key.into()), ..request(work, id, &Bytes::from_static(b"{}")) }
}

/// What came of a request: whether it is a new job.
async fn is_new(backend: &OwnJobs, new: NewJob) -> bool {
    match backend.submit(&Caller::everyone(), new).await {
        Ok(Submitted::New(_)) => true,
        Ok(Submitted::Repeat(_)) => false,
        Err(_) => panic!("it is taken"),
    }
}

#[tokio::test]
async fn names_that_come_while_the_work_is_under_way_are_noted_before_and_at_its_end() {
    for at_most_once in [true, false] {
        let (go, path) = (Arc::new(Notify::new()), scratch());
        let answers = Answers::open(&path, Keep::default()).expect("it opens");
        let first = backend(vec![("stay", staying(&go), at_most_once)], Some(answers));
        assert!(is_new(&first, keyed("stay", "Z", "U1")).await);
        let job = first.find(DOOR, &Caller::everyone(), "U1").await.ok().flatten().expect("it is there");
        while at_most_once && !matches!(job.now().phase, Phase::Running) {
            job.moved(&job.now(), std::time::Instant::now() + Duration::from_secs(60)).await;
        }
        assert!(!is_new(&first, keyed("stay", "Z", "U2")).await);
        assert!(!is_new(&first, keyed("stay", "Y", "U2")).await);
        if at_most_once {
            // What a crash would leave says that the work was begun, under each of its names.
            let crashed = scratch();
            std::fs::copy(&path, &crashed).expect("it can be copied");
            let answers = Answers::open(&crashed, Keep::default()).expect("it opens");
            let again = backend(vec![("stay", staying(&go), true)], Some(answers));
            for new in [request("stay", "U2", &Bytes::from_static(b"{}")), keyed("stay", "Y", "U1")] {
                assert!(!is_new(&again, new).await);
            }
        }
        go.notify_one();
        ended(&job).await;
        first.idle().await;
        first.close().await;
        let answers = Answers::open(&path, Keep::default()).expect("it opens");
        let second = backend(vec![("stay", staying(&go), at_most_once)], Some(answers));
        for id in ["U1", "U2"] {
            assert!(matches!(second.find(DOOR, &Caller::everyone(), id).await, Ok(Some(_))), "{id}");
            assert!(!is_new(&second, request("stay", id, &Bytes::from_static(b"{}"))).await, "{id}");
        }
        assert!(!is_new(&second, keyed("stay", "Y", "U3")).await);
        assert!(matches!(second.find(DOOR, &Caller::everyone(), "U3").await, Ok(Some(_))));
    }
}

/// Otherwise names of work that fails would be remembered for ever.
#[tokio::test]
async fn names_of_work_that_is_to_be_done_again_wait_for_nothing() {
    let (go, path) = (Arc::new(Notify::new()), scratch());
    let waits = go.clone();
    let fails = move |_: Value, _: Context| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Err::<Value, _>(Failure::new("it is busy").retryable())
        }
    };
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let backend = backend(vec![("fail", fails.boxed(), false)], Some(answers));
    assert!(is_new(&backend, keyed("fail", "Z", "U1")).await);
    assert!(!is_new(&backend, keyed("fail", "Z", "U2")).await);
    go.notify_one();
    backend.idle().await;
    let noted = std::fs::read_to_string(&path).expect("it is there");
    assert!(noted.contains("U2") && noted.contains(r#""undone":true"#), "{noted}");
    assert!(is_new(&backend, keyed("fail", "Y", "U2")).await);
    go.notify_one();
    backend.idle().await;
}

#[tokio::test]
async fn a_repeat_whose_name_cannot_be_kept_is_refused_and_the_name_is_free() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let backend = backend(vec![("count", counting(&calls), false)], Some(answers));
    assert!(is_new(&backend, keyed("count", "Z", "U1")).await);
    backend.idle().await;
    backend.close().await;
    for _ in 0..2 {
        let refused = backend.submit(&Caller::everyone(), keyed("count", "Z", "U2")).await;
        let Err(Unaccepted::Refused(refusal)) = refused else { panic!("it cannot be kept") };
        assert_eq!(refusal.failure(), Why::Unavailable);
        assert!(matches!(backend.find(DOOR, &Caller::everyone(), "U2").await, Ok(None)));
    }
}

#[tokio::test]
async fn live_jobs_are_weighed() {
    let go = Arc::new(Notify::new());
    let backend = backend(vec![("stay", staying(&go), false)], None);
    let document = Bytes::from([&b"{}"[..], &vec![b' '; (16 << 20) - 2]].concat());
    let submit = |id: u32| {
        let (backend, new) = (backend.clone(), request("stay", &format!("s-{id}"), &document));
        async move { backend.submit(&Caller::everyone(), new).await }
    };
    for id in 0..16 {
        assert!(matches!(submit(id).await, Ok(Submitted::New(_))), "{id}");
    }
    let Err(Unaccepted::Refused(refusal)) = submit(16).await else { panic!("it is too much") };
    assert_eq!(refusal.failure(), Why::ResourceLimit);
    let first = submitted(&backend, "stay", "s-0").await;
    let left = backend.0.ended.notified();
    go.notify_one();
    ended(&first).await;
    left.await;
    assert!(matches!(submit(16).await, Ok(Submitted::New(_))), "one has ended");
}

#[tokio::test]
async fn a_job_that_left_the_memory_is_found_by_its_id() {
    let (calls, path) = (Arc::new(AtomicU32::new(0)), scratch());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let backend = backend(vec![("count", counting(&calls), false)], Some(answers));
    let first = submitted(&backend, "count", "c-0").await;
    ended(&first).await;
    for number in 1..=1_000 {
        submitted(&backend, "count", &format!("c-{number}")).await;
    }
    backend.idle().await;
    assert!(backend.jobs().by_id.len() <= 1_000);
    let first = first.now();
    for id in ["c-0", &first.asked.id.to_string()] {
        let found = backend.find(DOOR, &Caller::everyone(), id).await;
        let Ok(Some(found)) = found else { panic!("{id} is not found") };
        let found = found.now();
        assert_eq!((found.asked.id, &*found.asked.work, found.asked.door), (first.asked.id, "count", DOOR));
        let outputs = |record: &crate::record::Record| match &record.phase {
            Phase::Ended { at, outcome, .. } => (*at, outcome.outputs.as_ref().map(|body| body.get().to_owned())),
            Phase::Queued | Phase::Running | Phase::Waiting { .. } => panic!("it has ended"),
        };
        assert_eq!((outputs(&found), found.started_at), (outputs(&first), first.started_at));
    }
    let unknown = backend.find(DOOR, &Caller::everyone(), "c-1001").await;
    assert!(matches!(unknown, Ok(None)));
}

#[tokio::test]
async fn a_job_that_has_ended_keeps_no_more_than_its_outcome() {
    let (kept, copy) = (Arc::new(std::sync::Mutex::new(None)), Arc::new(std::sync::Mutex::new(None)));
    let (left, steps) = (kept.clone(), copy.clone());
    let prints: Boxed = Box::new(move |_, context: Context| {
        let (left, steps) = (left.clone(), steps.clone());
        Box::pin(async move {
            let mut output = context.output();
            output.write_all(&vec![b'x'; 1 << 20]).await.expect("there is room");
            context.progress(50.0, &"s".repeat(1 << 20));
            *left.lock().expect("it is free") = Some(output);
            *steps.lock().expect("it is free") = Some(context);
            Ok(Success::of(Body::trusted("{}")))
        })
    });
    let backend = backend(vec![("print", prints, false)], None);
    let job = submitted(&backend, "print", "p-1").await;
    ended(&job).await;
    backend.idle().await;
    assert_eq!(job.output().after(0, usize::MAX), "");
    let step = job.now().progress.as_ref().and_then(|progress| progress.step.clone()).expect("it was said");
    assert!(step.get().len() < 1_100, "{}", step.get().len());
    let output = kept.lock().expect("it is free").take();
    let late = output.expect("it was left").write_all(b"late").now_or_never();
    assert!(late.is_some_and(|late| late.is_err()), "a copy that was left with another task prints nothing more");
}
