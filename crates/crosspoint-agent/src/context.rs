//! What a handler may know and say about its job.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_exchange::backend::Followed;
use crosspoint_exchange::trace::Trace;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use crate::places::Place;
use crate::record::{Asked, Job, Phase};
use crate::{Failure, Output};

/// The job that a handler works on; cloning shares it.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    job: Job,
    asked: Arc<Asked>,
    place: Place,
    /// The artifacts so far, each as a JSON object.
    artifacts: Mutex<Vec<String>>,
    answers: tokio::sync::Mutex<UnboundedReceiver<Body>>,
}

impl Context {
    pub(crate) fn new(job: Job, answers: UnboundedReceiver<Body>, place: Place) -> Context {
        let asked = job.now().asked.clone();
        let answers = tokio::sync::Mutex::new(answers);
        Context(Arc::new(Shared { job, asked, place, artifacts: Mutex::default(), answers }))
    }

    /// Returns the place among the jobs that are done at a time.
    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns the id under which the caller knows the work. The same id comes again when the work is asked for again.
    pub fn request_id(&self) -> &str {
        &self.0.asked.request_id
    }

    /// Returns the name of the work.
    pub fn work(&self) -> &str {
        &self.0.asked.work
    }

    /// Returns the caller's document as it came, in its own contract.
    pub fn document(&self) -> &[u8] {
        &self.0.asked.document.0
    }

    /// Returns the job's place in a trace: the value of a `traceparent` header.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.asked.trace.as_deref().and_then(|trace| trace.lines().next())
    }

    /// Returns what tracing systems noted about the trace: the value of a `tracestate` header.
    pub fn tracestate(&self) -> Option<&str> {
        self.0.asked.trace.as_deref().and_then(|trace| trace.lines().nth(1))
    }

    /// Returns the id of the job, and its own place in the trace.
    #[doc(hidden)]
    pub fn id_and_trace(&self) -> (Uuid, Trace) {
        let asked = &self.0.asked;
        (asked.id, Trace::of_attempt(asked.id, asked.trace.as_deref(), 1))
    }

    /// Returns how much memory a program that does the work may use, in bytes, if the caller says so.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.0.asked.memory_bytes
    }

    /// Returns until when the caller wants the work done.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.asked.deadline
    }

    /// Whether the caller no longer wants the work.
    pub fn is_cancelled(&self) -> bool {
        self.0.job.stop().is_cancelled()
    }

    /// Waits until the caller no longer wants the work. A handler that goes on is dropped a few seconds later.
    pub async fn cancelled(&self) {
        self.0.job.stop().cancelled().await;
    }

    /// Says how far the work is, from 0 to 100, and what is being done.
    pub fn progress(&self, percent: f64, step: &str) {
        self.advanced(Some(percent), Some(step));
    }

    /// Says as [`Context::progress`] does how far the work is, as far as that is known.
    #[doc(hidden)]
    pub fn advanced(&self, percent: Option<f64>, step: Option<&str>) {
        let percent = percent.filter(|percent| percent.is_finite()).map(|percent| percent.clamp(0.0, 100.0));
        let said = Progress { percent, step: step.map(|step| Body::of(&step)), ..Progress::default() };
        self.0.job.change(|record| {
            record.progress = Some(said);
            record.progress_at = crate::clock::now();
        });
    }

    /// Returns a writer for the text of the job.
    pub fn output(&self) -> Output {
        self.0.job.output().clone()
    }

    /// Gives the caller a named piece of output.
    pub fn artifact(&self, name: &str, media_type: &str, content: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
        let content = serde_json::value::to_raw_value(content)?;
        let artifact = Artifact { name, media_type, content };
        let artifact = serde_json::to_string(&artifact)?;
        self.0.artifacts.lock().unwrap_or_else(PoisonError::into_inner).push(artifact);
        Ok(())
    }

    /// Asks a person, and waits for the answer. `schema` is a JSON Schema of it.
    pub async fn ask<A: DeserializeOwned>(
        &self,
        prompt: &str,
        schema: Option<&serde_json::Value>,
    ) -> Result<A, Failure> {
        let question = serde_json::to_string(&Asking { prompt, schema })?;
        let answer = self.answered(Question::read(Body::trusted(question))).await.ok_or_else(Failure::cancelled)?;
        serde_json::from_slice(answer.bytes())
            .map_err(|_| Failure::new("the answer has another type").code("INVALID_ANSWER"))
    }

    /// Asks a person as [`Context::ask`] does, with a question that is written already. `None` if the caller no longer
    /// wants the work.
    #[doc(hidden)]
    pub async fn answered(&self, question: Question) -> Option<Body> {
        let mut answers = self.0.answers.lock().await;
        self.0.job.change(|record| {
            let number = u32::try_from(record.answers).unwrap_or(u32::MAX).saturating_add(1);
            record.phase = Phase::Waiting { question, number };
        });
        let asked = async {
            tokio::select! {
                answer = answers.recv() => answer,
                () = self.cancelled() => None,
            }
        };
        self.0.place.without(asked).await
    }

    /// Returns what was printed so far, as a JSON string, and forgets it.
    #[doc(hidden)]
    pub fn take_text(&self) -> Option<Body> {
        let text = self.0.job.output().take();
        (!text.is_empty()).then(|| Body::of(&text))
    }

    /// Returns the artifacts so far, as a JSON array, and forgets them.
    pub(crate) fn take_artifacts(&self) -> Option<Body> {
        let artifacts = std::mem::take(&mut *self.0.artifacts.lock().unwrap_or_else(PoisonError::into_inner));
        (!artifacts.is_empty()).then(|| Body::trusted(format!("[{}]", artifacts.join(","))))
    }
}

#[derive(Serialize)]
struct Artifact<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    media_type: &'a str,
    content: Box<serde_json::value::RawValue>,
}

#[derive(Serialize)]
struct Asking<'a> {
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a serde_json::Value>,
}
