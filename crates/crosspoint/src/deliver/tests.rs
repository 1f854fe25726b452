//! Deliveries with a real engine, and recipients behind real sockets.

mod away;
mod callback;
mod message;
mod pulling;
mod recipient;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::request::{Door, Key, Limits, NewJob, Priority};
use crosspoint_engine::core::Mode;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Submitted;
use serde_json::{Value, json};

use super::telling::Ids;
use super::*;
use crate::agent_side::AgentSide;
use crate::config::{Config, Flags};

const NAME: &str = "planner";
/// Longer than anything here takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// An engine with the sample agents, on a store of its own.
struct Place {
    directory: PathBuf,
    engine: Engine,
}

impl Place {
    fn new(name: &str) -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = format!("crosspoint-deliver-{name}-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        Place { engine: started(&directory), directory }
    }

    /// Submits work whose outcome the recipient is owed.
    async fn submit(&self, work: &str, input: &Value) -> Watch {
        let document = input.to_string();
        let new = NewJob {
            door: Door::Native,
            caller: "".into(),
            request_id: None,
            key: Key::None,
            work: work.into(),
            agent: None,
            addressed: None,
            priority: Priority::Normal,
            limits: Limits::default(),
            input: 0..document.len(),
            document: Block(Bytes::from(document)),
            trace: None,
            echo: None,
            notify: Some(NAME.into()),
        };
        let submitted = self.engine.submit(new).await.expect("it is accepted");
        let (Submitted::New(watch) | Submitted::Repeat(watch)) = submitted;
        watch
    }

    /// Has work done whose outcome the recipient is owed.
    async fn done(&self) -> Arc<Job> {
        let job = self.submit("echo", &json!({})).await.ended(Instant::now() + LONG).await;
        assert!(job.outcome().is_some());
        job
    }

    /// How many outcomes are owed.
    async fn owed(&self) -> u64 {
        self.engine.owed_counts().await.expect("it can be read").iter().map(|count| count.jobs).sum()
    }

    /// Waits until so many outcomes are owed.
    async fn until_owed(&self, wanted: u64) {
        let until = Instant::now() + LONG;
        while self.owed().await != wanted {
            assert!(Instant::now() < until, "{} are owed, and not {wanted}", self.owed().await);
            tokio::task::yield_now().await;
        }
    }

    async fn stop(self) {
        self.engine.stop(Duration::ZERO).await;
        let _ = std::fs::remove_dir_all(self.directory);
    }
}

fn started(directory: &std::path::Path) -> Engine {
    let flags =
        Flags { data: Some(directory.to_owned()), config: Some(directory.join("none.toml")), ..Flags::default() };
    std::fs::write(directory.join("none.toml"), "").expect("it can be written");
    let config = Config::load(&flags).expect("it can be read");
    Engine::start(config.engine(Mode::Serve, &AgentSide::new(&config))).expect("it starts")
}

fn document(job: &Job, part: &str) -> Value {
    let (id, state) = (format!("{}-{}-{part}", job.id(), job.events), job.phase().name());
    json!({ "id": id, "job": job.id().to_string(), "request": &*job.request.request_id, "state": state, "part": part })
}

/// Tells an outcome by this many documents.
fn telling(parts: usize) -> Telling {
    let written = |document: Value| Bytes::from(document.to_string());
    Telling {
        path: "inbox",
        now: Box::new(move |job| Some(written(document(job, "now")))),
        outcome: Box::new(move |job| (1..=parts).map(|part| written(document(job, &part.to_string()))).collect()),
        ids: |document| {
            let document: Value = serde_json::from_slice(document).expect("JSON");
            let text = |name: &str| Box::from(document[name].as_str().unwrap_or_default());
            Ids { message: text("id"), job: vec![text("request"), "task".into()] }
        },
    }
}

fn recipient(callback: Option<Url>) -> Recipient {
    Recipient { name: NAME.into(), callback, token: None }
}

fn start(place: &Place, callback: Option<Url>, parts: usize) -> Arc<Deliveries> {
    Deliveries::start(place.engine.clone(), vec![recipient(callback)], telling(parts))
}

impl Deliveries {
    /// Takes what there is for the recipient of these tests, which shows no token.
    async fn pulled(&self, max: usize, until: Instant, acks: &[String]) -> Vec<Bytes> {
        self.take((NAME, None), max, until, acks).await.expect("nothing is to be written")
    }
}
