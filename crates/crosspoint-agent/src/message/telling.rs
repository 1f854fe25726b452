//! Telling an orchestrator of the message contract how a job goes: a `work_status` at every step, again every ten
//! seconds (MSG-6.4), what it prints in blocks, and at the end the outcome, until it is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::message::chunk::BLOCK_BYTES_MAX;
use crosspoint_contracts::message::{About, Cancel};
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::backend::{Backend, Followed};
use crosspoint_exchange::snapshot::{Snapshot, State};
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{AnswerRoom, Endpoint, Http, Media};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use url::Url;

use crate::Output;
use crate::backend::OwnJobs;
use crate::record::{Job, Record};

/// An agent that works says so at least this often.
const STATUS_PERIOD: Duration = Duration::from_secs(10);

/// Shortest time between two statuses, and between blocks of output: a handler may report progress in a loop, and print
/// a word at a time.
const PAUSE_BETWEEN: Duration = Duration::from_millis(200);

/// Pauses between attempts to tell an outcome: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Longest pause between attempts to send what was printed.
const BLOCK_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Longest time for which an outcome is told again, and most outcomes that wait for it. The answers to all requests are
/// in the store, so an orchestrator that was away for longer loses nothing.
const OUTCOME_TIME_MAX: Duration = Duration::from_secs(3_600);
const WAITING_MAX: usize = 1_000;

/// Longest time for one message and its answer.
const POST_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Where messages go.
const PATH: &str = "api/agent/message";

/// The way to an orchestrator.
pub(crate) struct Orchestrator {
    /// Its address, by which the store knows who is owed an outcome.
    pub(crate) name: Arc<str>,
    pub(crate) http: Http,
    messages: Endpoint,
    /// Whether it has refused the agent's token, which is logged once.
    is_shut_out: AtomicBool,
    waiting: Waiting,
}

/// The outcomes that were lost on their way and wait to be told again.
struct Waiting(Semaphore);

impl Waiting {
    fn new() -> Waiting {
        Waiting(Semaphore::new(WAITING_MAX))
    }

    /// Takes a place among them, if there is one.
    fn take(&self) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire().ok()
    }
}

impl Orchestrator {
    /// Makes the way to the orchestrator at this address.
    pub(crate) fn at(url: &Url, token: Option<&str>) -> Orchestrator {
        let mut base = url.clone();
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", url.path()));
        }
        // Long answers are messages with work, of which few come at a time.
        let http = Http::to_orchestrator(&base, token, &AnswerRoom::new(256 << 20));
        let messages = http.endpoint(PATH);
        let name = Arc::from(format!("{}{}", base.origin().ascii_serialization(), base.path()));
        Orchestrator { name, http, messages, is_shut_out: AtomicBool::new(false), waiting: Waiting::new() }
    }

    /// Posts a message.
    pub(crate) async fn post(&self, message: Bytes, trace: &Trace) -> Posted {
        let Ok((status, body)) = self.post_to(&self.messages, message, trace).await else { return Posted::Lost };
        match status.as_u16() {
            200..=299 => Posted::Taken(body),
            408 | 425 | 429 | 500..=599 => Posted::Lost,
            status @ (401 | 403) => {
                if !self.is_shut_out.swap(true, Ordering::Relaxed) {
                    tracing::warn!(status, "the orchestrator does not take the agent's token: it is told of no work");
                }
                Posted::Refused
            }
            _ => Posted::Refused,
        }
    }

    /// Posts a document, and returns the answer or why there is none.
    pub(crate) async fn post_to(
        &self,
        endpoint: &Endpoint,
        document: Bytes,
        trace: &Trace,
    ) -> Result<(StatusCode, Bytes), String> {
        let posted = async {
            let answer = self.http.post(endpoint, document, trace, Media::Json).await;
            let answer = answer.map_err(|why| format!("{why:?}"))?;
            let status = answer.status;
            Ok((status, answer.whole(ANSWER_BYTES_MAX).await.unwrap_or_default()))
        };
        let answered = tokio::time::timeout(POST_TIME_MAX, posted).await;
        answered.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
    }

    /// Tells how a job goes, until its outcome was taken. Returns whether it was, or never will be.
    pub(crate) async fn tell(&self, backend: &OwnJobs, job: Job, beside: Beside, asked: Option<u32>) -> bool {
        let mut now = job.now();
        let trace = Trace::of_attempt(now.asked.id, now.asked.trace.as_deref(), 1);
        let mut telling = Telling { to: self, beside, trace, sent: Sent::default(), asked };
        let mut status_due = Instant::now();
        while Job::snapshot(&now).ended().is_none() {
            // What was printed before a question is told before it.
            let mut is_unwanted = telling.blocks(&now, job.output()).await;
            if status_due <= Instant::now() {
                is_unwanted |= telling.status(&now).await;
                status_due = Instant::now() + STATUS_PERIOD;
            }
            if is_unwanted {
                let _ = backend.cancel(&Caller::everyone(), &job).await;
            }
            tokio::time::sleep(PAUSE_BETWEEN).await;
            let printed = telling.sent.more(job.output());
            tokio::select! {
                _ = job.moved(&now, status_due.into_std()) => {}
                () = printed => {}
            }
            // Both may have happened, and a question that was answered is not told again.
            let then = job.now();
            if then.events != now.events {
                status_due = Instant::now();
            }
            now = then;
        }
        telling.outcome(&now).await
    }
}

/// What came of a message.
pub(crate) enum Posted {
    /// It was taken, and this was the answer.
    Taken(Bytes),
    /// It will never be taken.
    Refused,
    /// It may not have arrived, and can be sent again.
    Lost,
}

/// One job that an orchestrator is told of.
struct Telling<'t> {
    to: &'t Orchestrator,
    beside: Beside,
    trace: Trace,
    sent: Sent,
    /// The number of the last question that was told.
    asked: Option<u32>,
}

/// What was sent of the text of a job while it was printed.
#[derive(Default)]
struct Sent {
    bytes: usize,
    digest: Sha256,
    /// Whether the orchestrator wants no blocks.
    is_refused: bool,
    /// The pause after a block that was lost, and when it ends.
    pause: Duration,
    again_at: Option<Instant>,
}

impl Telling<'_> {
    /// Says how far the job is. Returns whether the orchestrator no longer wants it.
    async fn status(&mut self, now: &Record) -> bool {
        let status = answer::document(&now.snapshot(), Contract::Message, &self.beside);
        self.asked = now.question_number();
        now.is_shown();
        match self.to.post(status.into(), &self.trace).await {
            Posted::Taken(said) => is_about(&said, now),
            Posted::Refused | Posted::Lost => false,
        }
    }

    /// Sends what was printed. What is lost on the way is sent again after a pause. Returns whether the orchestrator no
    /// longer wants the job.
    async fn blocks(&mut self, now: &Record, output: &Output) -> bool {
        // Without the question, it would be taken back; before it is told, no block tells it.
        let is_asking = self.asked.is_some() && self.asked == now.question_number();
        let state = if is_asking { now.snapshot().state } else { State::Running };
        if is_asking {
            now.is_shown();
        }
        while !self.sent.is_refused && self.sent.again_at.is_none_or(|at| at <= Instant::now()) {
            let text = output.after(self.sent.bytes, BLOCK_BYTES_MAX);
            let job = Snapshot { state, ..now.snapshot() };
            let block = answer::block(&job, Contract::Message, &self.beside, self.sent.bytes, &text);
            let Some(block) = block.filter(|_| !text.is_empty()) else { return false };
            match self.to.post(block.into(), &self.trace).await {
                Posted::Taken(said) => {
                    self.sent.add(&text);
                    if is_about(&said, now) {
                        return true;
                    }
                }
                Posted::Refused => self.sent.is_refused = true,
                Posted::Lost => self.sent.lost(),
            }
        }
        false
    }

    /// Tells the outcome, until it is taken. Returns whether the orchestrator has decided about it.
    async fn outcome(&self, now: &Record) -> bool {
        let messages: Vec<Bytes> = {
            let ended = now.snapshot();
            match answer::pieces(&ended, Contract::Message, &self.beside, |text| self.sent.of(text)) {
                Some(pieces) => pieces.map(Bytes::from).collect(),
                None => vec![answer::document(&ended, Contract::Message, &self.beside).into()],
            }
        };
        let give_up_at = Instant::now() + OUTCOME_TIME_MAX;
        for message in messages {
            if !self.outcome_message(message, give_up_at).await {
                // The same request again gets the answer.
                tracing::warn!(job = %now.asked.id, "the orchestrator cannot be told how a job ended");
                return false;
            }
        }
        true
    }

    /// Sends a message of an outcome, again and again if it is lost. Returns whether the orchestrator has decided about
    /// it.
    async fn outcome_message(&self, message: Bytes, give_up_at: Instant) -> bool {
        let (mut pause, mut place) = (PAUSE_FIRST, None);
        while matches!(self.to.post(message.clone(), &self.trace).await, Posted::Lost) {
            place = place.or_else(|| self.to.waiting.take());
            if place.is_none() || Instant::now() >= give_up_at {
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        true
    }
}

impl Sent {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.digest.update(text);
        (self.pause, self.again_at) = (Duration::ZERO, None);
    }

    fn lost(&mut self) {
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, BLOCK_PAUSE_MAX);
        self.again_at = Some(Instant::now() + self.pause);
    }

    /// Waits until there is more to send, and it may be sent.
    async fn more(&self, output: &Output) {
        if self.is_refused {
            return std::future::pending().await;
        }
        if let Some(at) = self.again_at {
            tokio::time::sleep_until(at).await;
        }
        output.longer_than(self.bytes).await;
    }

    /// Returns how many bytes of a text were sent: none if what was sent is not how the text begins.
    fn of(&self, text: &str) -> usize {
        let begins = text.get(..self.bytes).is_some_and(|sent| Sha256::digest(sent) == self.digest.clone().finalize());
        if begins && !self.is_refused { self.bytes } else { 0 }
    }
}

/// Whether an answer says that this work is no longer wanted (MSG-19).
fn is_about(answer: &[u8], now: &Record) -> bool {
    Cancel::read(answer).is_some() && About::of(answer).ids.iter().any(|id| **id == *now.asked.request_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_outcomes_wait_as_there_are_places() {
        let waiting = Waiting::new();
        let mut places: Vec<_> = std::iter::from_fn(|| waiting.take()).take(2_000).collect();
        assert_eq!(places.len(), 1_000);
        places.pop();
        assert!(waiting.take().is_some(), "a place that is left is taken again");
    }
}
