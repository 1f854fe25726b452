//! What a handler may know and say about its job.

mod given;
mod workflow;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_exchange::reply;
use crosspoint_exchange::trace::Trace;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use self::given::{Artifact, Given};
pub use self::workflow::{Operation, Recommendation, Workflow};
use crate::places::Place;
use crate::record::{Asked, Job};
use crate::{Failure, Output, questions};

/// Namespace of the ids of jobs that are asked for again: that of nothing else.
const SAME_JOBS: Uuid = Uuid::from_u128(0x5c1f_0d6a_2b7e_4f38_8f52_1c9a_7d03_e64b);

/// The job that a handler works on; cloning shares it.
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
/// # use doc::*;
/// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
///     context.progress(10.0, "Reading");
///     let copy = context.clone();
///     tokio::spawn(async move { copy.progress(90.0, "Writing") }).await?;
///     Ok(json!({"done": true}))
/// }
/// # let agent = Agent::new("worker").on("work", work).forgetful();
/// # let answer = called(agent, "work", json!({}));
/// # assert_eq!(answer["outputs"], json!({"done": true}));
/// ```
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    job: Job,
    asked: Arc<Asked>,
    place: Place,
    /// The agent's own type in the message contract.
    agent_type: Option<Arc<str>>,
    given: Mutex<Given>,
    /// Held while a person is asked: one question at a time.
    asking: tokio::sync::Mutex<()>,
    /// How many questions were asked.
    questions: AtomicU32,
}

/// A question that is asked. It is taken back when its handler no longer waits for the answer.
struct Open<'j> {
    job: &'j Job,
    number: u32,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.job.withdraw(self.number);
    }
}

impl Context {
    pub(crate) fn new(job: Job, asked: Arc<Asked>, agent_type: Option<Arc<str>>, place: Place) -> Context {
        let (given, asking, questions) = (Mutex::default(), tokio::sync::Mutex::default(), AtomicU32::new(0));
        Context(Arc::new(Shared { job, asked, place, agent_type, given, asking, questions }))
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place among the jobs that are done at a time.
    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns the id under which the caller knows the work. The same id comes again when the work is asked for again.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     Ok(json!({"order": context.request_id()}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert_eq!(answer["outputs"], json!({"order": "r-1"}));
    /// ```
    pub fn request_id(&self) -> &str {
        &self.0.asked.request_id
    }

    /// Returns the name of the work.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     Ok(json!({"did": context.work()}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert_eq!(answer["outputs"], json!({"did": "work"}));
    /// ```
    pub fn work(&self) -> &str {
        &self.0.asked.work
    }

    /// Returns the caller's document as it came, in its own contract.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     // A member of the run beside its inputs.
    ///     let document: Value = serde_json::from_slice(context.document())?;
    ///     Ok(json!({"stage": document["stage_id"]}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let run = json!({"request_id": "r", "task_type": "work", "stage_id": "s-2"});
    /// # let answer = serving(agent, |post| post("/agents/run/sync", run));
    /// # assert_eq!(answer["outputs"], json!({"stage": "s-2"}));
    /// ```
    pub fn document(&self) -> &[u8] {
        &self.0.asked.document.0
    }

    /// Returns the job's place in a trace: the value of a `traceparent` header.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     let trace = context.traceparent().and_then(|parent| parent.split('-').nth(1));
    ///     Ok(json!({"trace": trace}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert_eq!(answer["outputs"], json!({"trace": "0af7651916cd43dd8448eb211c80319c"}));
    /// ```
    pub fn traceparent(&self) -> Option<&str> {
        self.0.asked.trace.as_deref().and_then(|trace| trace.lines().next())
    }

    /// Returns an id of the job that is the same when the same request comes again, also after a restart, and its own
    /// place in the trace.
    #[doc(hidden)]
    pub fn id_and_trace(&self) -> (Uuid, Trace) {
        let asked = &self.0.asked;
        let id = asked.names.first().map_or(asked.id, |name| Uuid::new_v5(&SAME_JOBS, name.text().as_bytes()));
        (id, Trace::of_attempt(asked.id, asked.trace.as_deref(), 1))
    }

    /// Returns how much memory a program that does the work may use, in bytes, if the caller says so.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     Ok(json!({"bytes": context.memory_bytes()}))
    /// }
    /// # let run = json!({"request_id": "r-1", "task_type": "work", "budgets": {"max_memory_mb": 64}});
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = serving(agent, |post| post("/agents/run/sync", run));
    /// # assert_eq!(answer["outputs"], json!({"bytes": 64 << 20}));
    /// ```
    pub fn memory_bytes(&self) -> Option<u64> {
        self.0.asked.memory_bytes
    }

    /// Returns until when the caller wants the work done.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     let rest = context.deadline().map(|end| end.saturating_duration_since(std::time::Instant::now()));
    ///     Ok(json!({"hurry": rest.is_some_and(|rest| rest.as_secs() < 60)}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let run = json!({"request_id": "r", "task_type": "work", "budgets": {"max_seconds": 30}});
    /// # let answer = serving(agent, |post| post("/agents/run/sync", run));
    /// # assert_eq!(answer["outputs"], json!({"hurry": true}));
    /// ```
    pub fn deadline(&self) -> Option<Instant> {
        self.0.asked.deadline
    }

    /// Whether the caller no longer wants the work.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     for page in 0..3 {
    ///         if context.is_cancelled() {
    ///             return Err(Failure::new(format!("stopped at page {page}")));
    ///         }
    ///     }
    ///     Ok(json!({"pages": 3}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert_eq!(answer["outputs"], json!({"pages": 3}));
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.job.is_stopped()
    }

    /// Waits until the caller no longer wants the work. A handler that goes on is dropped a few seconds later.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     tokio::select! {
    ///         () = context.cancelled() => Err(Failure::new("no longer wanted")),
    ///         () = tokio::time::sleep(std::time::Duration::from_secs(3_600)) => Ok(json!({"slept": true})),
    ///     }
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let task = json!({"id": "t-1", "type": "work", "payload": {}});
    /// # let task = serving(agent, |post| {
    /// #     post("/tasks", task);
    /// #     post("/tasks/t-1/cancel", json!({}))
    /// # });
    /// # assert_eq!(task["status"], "cancelled");
    /// ```
    pub async fn cancelled(&self) {
        self.0.job.stop().cancelled().await;
    }

    /// Says how far the work is, from 0 to 100, and what is being done. Of a step, the first KiB is shown.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     for (number, step) in ["Fetch", "Build", "Ship"].iter().enumerate() {
    ///         context.progress(number as f64 / 3.0 * 100.0, step);
    ///     }
    ///     Ok(json!({"shipped": true}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert_eq!(answer["outputs"], json!({"shipped": true}));
    /// ```
    pub fn progress(&self, percent: f64, step: &str) {
        self.advanced(Some(percent), Some(step));
    }

    /// Says as [`Context::progress`] does how far the work is, as far as that is known.
    #[doc(hidden)]
    pub fn advanced(&self, percent: Option<f64>, step: Option<&str>) {
        let percent = percent.filter(|percent| percent.is_finite()).map(|percent| percent.clamp(0.0, 100.0));
        let said =
            Progress { percent, step: step.map(|step| Body::of(&reply::shortened(step))), ..Progress::default() };
        self.0.job.change(|record| {
            record.progress = Some(said);
            record.progress_at = crate::clock::now();
        });
    }

    /// Returns a writer for the text of the job.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     use tokio::io::AsyncWriteExt as _;
    ///     context.output().write_all(b"PLAY [all]\n").await?;
    ///     Ok(json!({"changed": 3}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert!(answer.to_string().contains("PLAY [all]"), "{answer}");
    /// ```
    pub fn output(&self) -> Output {
        self.0.job.output().clone()
    }

    /// Gives the caller a named piece of output. A job has at most 16 MiB of them.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     context.artifact("report.md", "text/markdown", "# All is well\n")?;
    ///     Ok(json!({"reports": 1}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert!(answer.to_string().contains("report.md"), "{answer}");
    /// ```
    pub fn artifact(&self, name: &str, media_type: &str, content: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
        self.given().artifact(&Artifact { name, media_type, operation: None, content })
    }

    /// Asks a person, and waits for the answer. `schema` is a JSON Schema of it. A question whose future is dropped, as
    /// by a timeout, is taken back.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     let schema = json!({"type": "boolean"});
    ///     let is_wanted: bool = context.ask("Ship it?", Some(&schema)).await?;
    ///     Ok(json!({"shipped": is_wanted}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let task = serving(agent, |post| {
    /// #     let asked = post("/tasks?wait=60", json!({"id": "t-1", "type": "work", "payload": {}}));
    /// #     assert_eq!(asked["inputRequest"]["prompt"], "Ship it?", "{asked}");
    /// #     post("/tasks/t-1/input?wait=60", json!({"input": true}))
    /// # });
    /// # assert_eq!(task["result"], json!({"shipped": true}), "{task}");
    /// ```
    pub async fn ask<A: DeserializeOwned>(
        &self,
        prompt: &str,
        schema: Option<&serde_json::Value>,
    ) -> Result<A, Failure> {
        let question = serde_json::to_string(&Asking { prompt, schema })?;
        let answer = self.answered(Question::read(Body::trusted(question))).await?;
        serde_json::from_slice(answer.bytes())
            .map_err(|_| Failure::new("the answer has another type").code("INVALID_ANSWER"))
    }

    /// Asks a person as [`Context::ask`] does, with a question that is written already.
    #[doc(hidden)]
    pub async fn answered(&self, question: Question) -> Result<Body, Failure> {
        if !self.0.asked.can_be_answered() {
            let why = "callers of this contract cannot be asked; give the work as a task or as a message";
            return Err(Failure::new(why).code("CANNOT_ASK"));
        }
        let _asking = self.0.asking.lock().await;
        let number = self.0.questions.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (question, job) = (questions::numbered(&question, number), &self.0.job);
        // A person who has answered it before the work was interrupted is not asked again.
        if let Some(known) = job.known_answer(&question) {
            return Ok(known);
        }
        job.ask(question, number).await;
        let _open = Open { job, number };
        // A job that is cancelled does not wait for a place.
        tokio::select! {
            biased;
            () = self.cancelled() => Err(Failure::cancelled()),
            answer = self.0.place.without(job.answered(number)) => Ok(answer),
        }
    }

    /// Returns what was printed so far, and forgets it.
    #[doc(hidden)]
    pub fn take_text(&self) -> Option<String> {
        self.0.job.take_text()
    }

    /// Whether some of what was printed was no UTF-8.
    pub(crate) fn is_lossy(&self) -> bool {
        self.0.job.output().is_lossy()
    }

    /// Returns the artifacts so far, as a JSON array, and forgets them.
    pub(crate) fn take_artifacts(&self) -> Option<Body> {
        self.given().take_artifacts()
    }

    /// Returns what else the handler gave, as an object of the homes that hold it, and forgets it.
    pub(crate) fn take_rest(&self) -> Option<Body> {
        self.given().take_rest()
    }
}

#[derive(Serialize)]
struct Asking<'a> {
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a serde_json::Value>,
}
