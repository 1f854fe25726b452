//! What a handler may know and say about its job.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_exchange::backend::Followed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::record::{Asked, Job, Phase};
use crate::{Failure, Output};

/// The job that a handler works on; cloning shares it.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    job: Job,
    asked: Arc<Asked>,
    output: Output,
    /// The artifacts so far, each as a JSON object.
    artifacts: Mutex<Vec<String>>,
    answers: tokio::sync::Mutex<UnboundedReceiver<Body>>,
}

impl Context {
    pub(crate) fn new(job: Job, answers: UnboundedReceiver<Body>) -> Context {
        let asked = job.now().asked.clone();
        let answers = tokio::sync::Mutex::new(answers);
        Context(Arc::new(Shared { job, asked, output: Output::default(), artifacts: Mutex::default(), answers }))
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
        let percent = percent.is_finite().then(|| percent.clamp(0.0, 100.0));
        let said = Progress { percent, step: Some(Body::of(&step)), ..Progress::default() };
        self.0.job.change(|record| {
            record.progress = Some(said);
            record.progress_at = crate::clock::now();
        });
    }

    /// Returns a writer for the text of the job.
    pub fn output(&self) -> Output {
        self.0.output.clone()
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
        let mut answers = self.0.answers.lock().await;
        let question = serde_json::to_string(&Asking { prompt, schema })?;
        let question = Question::read(Body::trusted(question));
        self.0.job.change(|record| {
            let number = u32::try_from(record.answers).unwrap_or(u32::MAX).saturating_add(1);
            record.phase = Phase::Waiting { question, number };
        });
        tokio::select! {
            answer = answers.recv() => {
                let answer = answer.ok_or_else(Failure::cancelled)?;
                serde_json::from_slice(answer.bytes()).map_err(|_| Failure::new("the answer has another type").code("INVALID_ANSWER"))
            }
            () = self.cancelled() => Err(Failure::cancelled()),
        }
    }

    /// Returns what was printed and given so far, for the outcome.
    pub(crate) fn given(&self) -> (Vec<u8>, Option<Body>) {
        let artifacts = std::mem::take(&mut *self.0.artifacts.lock().unwrap_or_else(PoisonError::into_inner));
        let listed = (!artifacts.is_empty()).then(|| Body::trusted(format!("[{}]", artifacts.join(","))));
        (self.0.output.take(), listed)
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
