//! The engine and its callers, with agents that are closures. No test here waits for time to pass, only for things to
//! happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosspoint_contracts::Contract;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::request::{Door, Key, NewJob};
use crosspoint_engine::core::{Rejected, Room, Share};
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::{Job, Phase, State};
use crosspoint_engine::runtime::{Ahead, Config, Denied, Engine, Limits, Submitted, Unaccepted};
use crosspoint_engine::store::Filter;
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use crate::scratch::Scratch;
use crate::stage::{
    self, agent, ended, events, gated, keyed, names, never, new_job, outcome, patience, reaches, start, stop, submit,
};

#[tokio::test]
async fn a_job_is_done_and_its_outcome_is_what_the_agent_gave() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("echo", stage::echo)]);
    for input in ["{}", r#"{"text": "Größe  日本", "n": 1e400}"#, "null", r#""text""#] {
        let watch = submit(&engine, new_job("echo", input)).await;
        let job = ended(&watch).await;
        assert_eq!(job.phase(), Phase::Completed);
        let outcome = job.outcome().expect("it has ended").outcome.clone();
        assert_eq!(outcome, Outcome::completed(Success::of(Body::trusted(input))));
        assert_eq!(names(&events(&engine, job.id(), 0).await), ["accepted", "started", "completed"]);
        assert_eq!(&*job.request.request_id, job.id().to_string());
    }
    let absent = submit(&engine, NewJob { input: 0..0, ..new_job("echo", r#"{"work":"echo"}"#) }).await;
    assert_eq!(outcome(&*ended(&absent).await)["outputs"], serde_json::json!({}));
    assert_eq!((engine.jobs_live(), engine.attempts()), (0, 0));
    stop(engine).await;
}

/// The input stands in two members of the document. The agent gets both as one object, and a request that spells or
/// orders them differently is still a repeat.
#[tokio::test]
async fn the_input_of_a_request_of_a_bridge_is_made_of_its_prompt_and_context() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("echo", stage::echo)]);
    let asking = |members: &str| {
        let document = format!(r#"{{"request_id": "r", "version": "1.0", "agent_name": "echo", {members}}}"#);
        NewJob { door: Door::Contract(Contract::Bridge), input: 0..0, ..keyed("echo", &document, "r") }
    };
    let watch = submit(&engine, asking(r#""prompt": "p", "context": {"a": [1]}"#)).await;
    let job = ended(&watch).await;
    assert_eq!(outcome(&job)["outputs"], serde_json::json!({"prompt": "p", "context": {"a": [1]}}));
    match engine.submit(asking(r#""context": {"a":[1]}, "prompt": "\u0070", "model": null"#)).await {
        Ok(Submitted::Repeat(watch)) => assert_eq!(watch.job().id(), job.id()),
        Ok(Submitted::New(_)) => panic!("it is a repeat"),
        Err(unaccepted) => panic!("{unaccepted:?}"),
    }
    for other in [r#""prompt": "q", "context": {"a": [1]}"#, r#""prompt": "p""#] {
        assert!(matches!(engine.submit(asking(other)).await, Err(Unaccepted::Conflict(_))), "{other}");
    }
    // The document of a job that had to wait is read from the store.
    engine.drain("echo", true).await.expect("there is such an agent");
    let later = submit(&engine, NewJob { request_id: None, ..asking(r#""prompt": "later""#) }).await;
    engine.drain("echo", false).await.expect("there is such an agent");
    assert_eq!(outcome(&*ended(&later).await)["outputs"], serde_json::json!({"prompt": "later"}));
    stop(engine).await;
}

#[tokio::test]
async fn a_store_is_known_again_and_told_from_another() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let engine = start(&scratch, vec![agent("echo", stage::echo)]);
    let id = engine.store_id();
    stop(engine).await;
    let again = start(&scratch, Vec::new());
    assert_eq!(again.store_id(), id);
    stop(again).await;
    let elsewhere = start(&other, Vec::new());
    assert_ne!(elsewhere.store_id(), id);
    stop(elsewhere).await;
}

#[tokio::test]
async fn a_repeat_joins_its_job_and_another_request_of_the_same_key_is_a_conflict() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let mut taker = gated("slow", &gate);
    taker.0.works.push("other".into());
    let engine = start(&scratch, vec![taker]);
    let first = submit(&engine, keyed("slow", r#"{"a": 1, "b": [2]}"#, "r")).await;
    let id = first.job().id();
    let repeat = async |new: NewJob| match engine.submit(new).await {
        Ok(Submitted::Repeat(watch)) => watch.job().id(),
        Ok(Submitted::New(_)) => panic!("it is a repeat"),
        Err(unaccepted) => panic!("{unaccepted:?}"),
    };
    // Spelled differently, but the same value.
    assert_eq!(repeat(keyed("slow", r#"{"b":[2],"a":1}"#, "r")).await, id);
    for other in [keyed("slow", r#"{"a": 2}"#, "r"), keyed("other", r#"{"a": 1, "b": [2]}"#, "r")] {
        match engine.submit(other).await {
            Err(Unaccepted::Conflict(job)) => assert_eq!(job.id(), id),
            Ok(_) => panic!("it is a conflict"),
            Err(unaccepted) => panic!("{unaccepted:?}"),
        }
    }
    let caller = submit(&engine, NewJob { caller: "b".into(), ..keyed("slow", "{}", "r") }).await;
    let header = submit(&engine, NewJob { key: Key::Other("r".into()), ..keyed("slow", "{}", "r") }).await;
    assert!(caller.job().id() != id && header.job().id() != id && header.job().id() != caller.job().id());
    gate.add_permits(3);
    let outcome = ended(&first).await.outcome().cloned();
    assert_eq!(repeat(keyed("slow", r#"{"a": 1, "b": [2]}"#, "r")).await, id);
    stop(engine).await;
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    match engine.submit(keyed("slow", r#"{"a": 1, "b": [2]}"#, "r")).await {
        Ok(Submitted::Repeat(watch)) => assert_eq!(watch.job().outcome().cloned(), outcome),
        _ => panic!("it is still a repeat"),
    }
    stop(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_come_at_once_with_one_key_one_is_new() {
    let scratch = Scratch::new();
    let runs = Arc::new(AtomicU32::new(0));
    let count = runs.clone();
    let engine = start(
        &scratch,
        vec![agent("echo", move |attempt| {
            count.fetch_add(1, Ordering::Relaxed);
            stage::echo(attempt)
        })],
    );
    let submits = (0..100).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.submit(keyed("echo", "{}", "r")).await })
    });
    let (mut new, mut ids) = (0, Vec::new());
    for submitted in join_all(submits).await {
        let watch = match submitted.expect("nobody panics") {
            Ok(Submitted::New(watch)) => {
                new += 1;
                watch
            }
            Ok(Submitted::Repeat(watch)) => watch,
            Err(unaccepted) => panic!("{unaccepted:?}"),
        };
        ids.push(watch.job().id());
        ended(&watch).await;
    }
    ids.dedup();
    assert_eq!((new, ids.len(), runs.load(Ordering::Relaxed)), (1, 1, 1));
    stop(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_looks_while_a_job_ends_sees_its_end() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("echo", stage::echo)]);
    for at in 0..200 {
        let request_id = format!("r{at}");
        let id = submit(&engine, keyed("echo", "{}", &request_id)).await.job().id();
        // The job ends at this moment, and is looked up in every way there is.
        let (found, repeated, followed) =
            tokio::join!(engine.job(id), engine.submit(keyed("echo", "{}", &request_id)), events(&engine, id, 0),);
        let Ok(Submitted::Repeat(repeated)) = repeated else { panic!("it is a repeat") };
        for watch in [found.expect("it can be read").expect("it is there"), repeated] {
            assert_eq!(ended(&watch).await.phase(), Phase::Completed);
        }
        assert_eq!(followed.len(), 3);
    }
    stop(engine).await;
}

#[tokio::test]
async fn too_much_that_waits_is_turned_away() {
    let scratch = Scratch::new();
    let limits = Limits { waiting_bytes_max: 1_000, ..Limits::default() };
    let config = Config { limits, ..stage::config(&scratch, vec![agent("echo", stage::echo)]) };
    let engine = Engine::start(config).expect("it starts");
    let large = format!(r#""{}""#, "x".repeat(1_000));
    assert!(matches!(engine.submit(new_job("echo", &large)).await, Err(Unaccepted::Overloaded)));
    ended(&submit(&engine, new_job("echo", "{}")).await).await;
    stop(engine).await;

    // At most two jobs wait at one time, so of many at once some are rejected and the rest are done.
    let limits = Limits { waiting_max: 2, ..Limits::default() };
    let config = Config { limits, ..stage::config(&scratch, vec![agent("echo", stage::echo)]) };
    let engine = Engine::start(config).expect("it starts");
    let (mut accepted, mut turned) = (0, 0);
    for submitted in join_all((0..2_000).map(|_| engine.submit(new_job("echo", "{}")))).await {
        match submitted {
            Ok(Submitted::New(watch)) => {
                accepted += 1;
                assert_eq!(ended(&watch).await.phase(), Phase::Completed);
            }
            Ok(Submitted::Repeat(_)) => panic!("it is no repeat"),
            Err(Unaccepted::Overloaded) => turned += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(accepted >= 2 && turned > 0, "{accepted} accepted, {turned} turned away");
    stop(engine).await;
}

#[tokio::test]
async fn there_are_no_more_jobs_than_there_may_be() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let limits = Limits { room: Room { jobs: 3, of_work: 9, of_agent: 9, of_caller: 9 }, ..Limits::default() };
    let config = Config { limits, ..stage::config(&scratch, vec![gated("slow", &gate)]) };
    let engine = Engine::start(config).expect("it starts");
    let first = submit(&engine, keyed("slow", "{}", "first")).await;
    submit(&engine, new_job("slow", "{}")).await;
    submit(&engine, new_job("slow", "{}")).await;
    let full = engine.submit(new_job("slow", "{}")).await;
    assert!(matches!(full, Err(Unaccepted::Rejected(Rejected::Full { share: Share::All, most: 3 }))));
    // A caller that repeats a request gets the job that is already there.
    assert!(matches!(engine.submit(keyed("slow", "{}", "first")).await, Ok(Submitted::Repeat(_))));
    gate.add_permits(1);
    ended(&first).await;
    submit(&engine, new_job("slow", "{}")).await;
    stop(engine).await;
}

#[tokio::test]
async fn work_that_no_agent_takes_is_rejected() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("echo", stage::echo), agent("other", stage::echo)]);
    let rejected = async |work: &str, name: Option<&str>| {
        let new = NewJob { agent: name.map(Into::into), ..new_job(work, "{}") };
        match engine.submit(new).await {
            Err(Unaccepted::Rejected(rejected)) => rejected,
            _ => panic!("it is rejected"),
        }
    };
    assert_eq!(rejected("nothing", None).await, Rejected::UnknownWork);
    assert_eq!(rejected("echo", Some("nobody")).await, Rejected::UnknownAgent);
    assert_eq!(rejected("echo", Some("other")).await, Rejected::NotItsWork);
    assert_eq!(engine.list(Filter { limit: 9, ..Filter::default() }).await.expect("it can be read").jobs.len(), 0);
    stop(engine).await;
}

#[tokio::test]
async fn a_client_that_leaves_strands_nothing() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    for at in 0..50 {
        let request_id = format!("r{at}");
        // The caller has sent its request, and is gone before the answer.
        tokio::select! {
            biased;
            _ = engine.submit(keyed("slow", "{}", &request_id)) => panic!("nothing is answered at once"),
            () = std::future::ready(()) => {}
        }
    }
    gate.add_permits(50);
    for at in 0..50 {
        let Ok(Submitted::Repeat(watch)) = engine.submit(keyed("slow", "{}", &format!("r{at}"))).await else {
            panic!("it is a repeat");
        };
        // A caller that waits and then leaves does no harm either.
        drop(watch.ended(patience()));
        let job = ended(&watch).await;
        assert_eq!((job.phase(), job.attempts), (Phase::Completed, 1));
    }
    assert_eq!((engine.jobs_live(), engine.attempts()), (0, 0));
    stop(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_all_end_once() {
    let scratch = Scratch::new();
    let runs = Arc::new(AtomicU32::new(0));
    let count = runs.clone();
    let mut echo = agent("echo", move |attempt| {
        count.fetch_add(1, Ordering::Relaxed);
        stage::echo(attempt)
    });
    // Most jobs have to wait for their turn, so that their input is read from the store.
    echo.0.concurrency = 8;
    let engine = start(&scratch, vec![echo]);
    let clients = (0..1_000).map(|at| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let input = format!(r#"{{"n":{at}}}"#);
            let job = ended(&submit(&engine, keyed("echo", &input, &format!("r{at}"))).await).await;
            assert_eq!(outcome(&job)["outputs"]["n"].as_u64(), Some(at));
            assert_eq!(names(&events(&engine, job.id(), 0).await), ["accepted", "started", "completed"]);
            job.id()
        })
    });
    let mut ids: Vec<JobId> = join_all(clients).await.into_iter().map(|id| id.expect("nobody panics")).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), runs.load(Ordering::Relaxed)), (1_000, 1_000));
    assert_eq!((engine.jobs_live(), engine.attempts()), (0, 0));
    stop(engine).await;
}

#[tokio::test]
async fn lists_show_what_is_under_way_as_it_is() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![gated("slow", &gate), agent("echo", stage::echo)]);
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.insert(0, (submit(&engine, new_job("slow", "{}")).await.job().id(), Phase::Running));
        let done = ended(&submit(&engine, new_job("echo", "{}")).await).await;
        expected.insert(0, (done.id(), Phase::Completed));
    }
    let list = async |phase: Option<Phase>, limit: usize| {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let filter = Filter { phase, before, limit, ..Filter::default() };
            let page = engine.list(filter).await.expect("it can be read");
            found.extend(page.jobs.iter().map(|job| (job.id(), job.phase())));
            before = page.next.map(JobId::seq);
            if before.is_none() {
                return found;
            }
        }
    };
    for limit in [1, 2, 3, 10, 50] {
        assert_eq!(list(None, limit).await, expected);
        for phase in [Phase::Running, Phase::Completed, Phase::Queued] {
            let some: Vec<(JobId, Phase)> = expected.iter().filter(|(_, of)| *of == phase).copied().collect();
            assert_eq!(list(Some(phase), limit).await, some);
        }
    }
    stop(engine).await;
}

#[tokio::test]
async fn an_end_waits_for_what_is_under_way_and_takes_nothing_new() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    let watch = submit(&engine, new_job("slow", "{}")).await;
    let stopping = tokio::spawn({
        let engine = engine.clone();
        async move { engine.stop(Duration::from_secs(60)).await }
    });
    gate.add_permits(1);
    stopping.await.expect("it stops");
    assert_eq!(watch.job().phase(), Phase::Completed);
    assert!(matches!(engine.submit(new_job("slow", "{}")).await, Err(Unaccepted::Closed)));
    assert!(matches!(engine.cancel(watch.job().id()).await, Err(Denied::Closed)));
    let engine = start(&scratch, vec![gated("slow", &gate)]);
    let found = engine.job(watch.job().id()).await.expect("it can be read").expect("it is there");
    assert_eq!(found.job().phase(), Phase::Completed);
    stop(engine).await;
}

#[tokio::test]
async fn an_agent_that_was_not_heard_of_for_long_is_said_to_be_silent() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("work", never)]);
    let watch = submit(&engine, new_job("work", "{}")).await;
    let job = reaches(&watch, Phase::Running).await;
    assert_eq!(engine.stuck(&job, Ahead::Counted), None, "it was just heard of");
    // The same job, last heard of earlier.
    let heard = |seconds_ago: i64| {
        let mut job = Job::clone(&job);
        let State::Running(running) = &mut job.state else { panic!("it runs") };
        running.heard_at = running.heard_at.shifted(-seconds_ago * 1_000_000);
        let heard_at = running.heard_at;
        (job, heard_at)
    };
    let (long_ago, heard_at) = heard(11);
    let stuck = engine.stuck(&long_ago, Ahead::Left).expect("it says why");
    assert_eq!(stuck.reason, format!("agent work has been silent since {heard_at}"));
    assert_eq!(stuck.since, heard_at);
    engine.cancel(watch.job().id()).await.expect("it can be cancelled");
    assert_eq!(engine.stuck(&*ended(&watch).await, Ahead::Counted), None, "what has ended is not stuck");
    stop(engine).await;
}
