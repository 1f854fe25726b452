//! An engine to try things on, and agents that are closures.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::request::{Door, Key, NewJob, Priority};
use crosspoint_engine::core::{Mode, Spec};
use crosspoint_engine::event::Entry;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::policy::Policy;
use crosspoint_engine::retention::Rule;
use crosspoint_engine::runtime::{Attempt, Config, Engine, Limits, Link, Submitted, Watch};
use crosspoint_engine::store::Options;
use tokio::sync::Semaphore;

use crate::scratch::Scratch;

/// The result of an attempt.
pub(crate) type Came = Result<Success, Failed>;

struct Closure<F>(F);

impl<F, R> Link for Closure<F>
where
    F: Fn(Attempt) -> R + Send + Sync + 'static,
    R: Future<Output = Came> + Send + 'static,
{
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Came> + Send>> {
        Box::pin((self.0)(attempt))
    }
}

/// An agent, and its link.
pub(crate) type Agent = (Spec, Arc<dyn Link>);

/// An agent that takes the work of its own name.
pub(crate) fn agent<F, R>(name: &str, run: F) -> Agent
where
    F: Fn(Attempt) -> R + Send + Sync + 'static,
    R: Future<Output = Came> + Send + 'static,
{
    let spec = Spec {
        name: name.into(),
        contract: "builtin".into(),
        agent_type: None,
        awaited: false,
        works: vec![name.into()],
        concurrency: 10_000,
        waiting_max: u32::MAX,
        policy: Policy::default(),
    };
    (spec, Arc::new(Closure(run)))
}

pub(crate) fn with_policy((spec, link): Agent, policy: Policy) -> Agent {
    (Spec { policy, ..spec }, link)
}

pub(crate) async fn echo(attempt: Attempt) -> Came {
    Ok(Success::of(attempt.input().await?))
}

pub(crate) fn success(outputs: &str) -> Came {
    Ok(Success::of(Body::trusted(outputs.to_owned())))
}

pub(crate) fn failed(failure: Failure, dispatched: Dispatched) -> Came {
    Err(Failed::of(failure, dispatched))
}

pub(crate) fn config(scratch: &Scratch, agents: Vec<Agent>) -> Config {
    Config {
        store: scratch.options(),
        agents,
        queues: None,
        member_link: None,
        limits: Limits::default(),
        retention: Rule::FOR_EVER,
        audit_age: None,
        mode: Mode::Serve,
        judge: None,
    }
}

pub(crate) fn bounded(scratch: &Scratch, agents: Vec<Agent>, bytes_max: u64) -> Config {
    let store = Options { bytes_max: Some(bytes_max), ..scratch.options() };
    Config { store, ..config(scratch, agents) }
}

pub(crate) fn start(scratch: &Scratch, agents: Vec<Agent>) -> Engine {
    Engine::start(config(scratch, agents)).expect("it starts")
}

/// A request whose document is nothing but its input.
pub(crate) fn new_job(work: &str, input: &str) -> NewJob {
    NewJob {
        door: Door::Native,
        caller: "".into(),
        request_id: None,
        key: Key::None,
        work: work.into(),
        agent: None,
        addressed: None,
        priority: Priority::Normal,
        limits: crosspoint_contracts::request::Limits::default(),
        document: Block(Bytes::from(input.to_owned())),
        input: 0..input.len(),
        trace: None,
        echo: None,
        notify: None,
    }
}

/// The same with a request id that makes a repeat the same job.
pub(crate) fn keyed(work: &str, input: &str, request_id: &str) -> NewJob {
    NewJob { request_id: Some(request_id.into()), key: Key::RequestId, ..new_job(work, input) }
}

/// A time by which everything in these tests has long happened. A test that reaches it has hung.
pub(crate) fn patience() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Waits until this holds. The engine's threads work in real time and notify no test, so this asks again and again, and
/// lets the tasks of the engine run in between.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = patience();
    while !holds().await {
        assert!(Instant::now() < end, "waited in vain: {what}");
        tokio::task::yield_now().await;
    }
}

/// Submits a request that must become a new job.
pub(crate) async fn submit(engine: &Engine, new: NewJob) -> Watch {
    match engine.submit(new).await {
        Ok(Submitted::New(watch)) => watch,
        Ok(Submitted::Repeat(_)) => panic!("it is no repeat"),
        Err(unaccepted) => panic!("{unaccepted:?}"),
    }
}

pub(crate) async fn ended(watch: &Watch) -> Arc<Job> {
    let job = watch.ended(patience()).await;
    assert!(job.outcome().is_some(), "{job:?} has not ended");
    job
}

/// The outcome of a job that has ended, as the API shows it.
pub(crate) fn outcome(job: &Job) -> serde_json::Value {
    crate::rows::outcome_shown(job.outcome().expect("it has ended"))
}

/// Stops an engine without waiting for its agents.
pub(crate) async fn stop(engine: Engine) {
    engine.stop(Duration::ZERO).await;
}

pub(crate) async fn reaches(watch: &Watch, phase: Phase) -> Arc<Job> {
    loop {
        let job = watch.job();
        if job.phase() == phase {
            return job;
        }
        assert!(job.outcome().is_none(), "it ended as {} instead", job.phase().name());
        let moved = watch.moved(job.events, patience()).await;
        assert!(moved.events > job.events, "{job:?} does not move");
    }
}

/// All events of a job after number `after`, up to its end.
pub(crate) async fn events(engine: &Engine, id: JobId, after: u32) -> Vec<Entry> {
    let mut follow = engine.follow(id, after).await.expect("it can be read").expect("it is there");
    let mut entries = Vec::new();
    while let Some(entry) = follow.next(patience()).await.expect("it can be read") {
        entries.push(entry);
    }
    assert!(follow.is_done(), "it never ended");
    entries
}

pub(crate) fn names(entries: &[Entry]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.what.name()).collect()
}

pub(crate) async fn never(_: Attempt) -> Came {
    std::future::pending().await
}

/// An agent that waits at a gate and completes.
pub(crate) fn gated(name: &str, gate: &Arc<Semaphore>) -> Agent {
    let gate = gate.clone();
    agent(name, move |_| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.expect("the gate stays").forget();
            success("{}")
        }
    })
}
