//! Agents of the run contract.
//!
//! The stream is asked for first, because progress arrives by it, and silence can be told from work. An agent without a
//! stream is asked for the whole answer, with the same document, and its lack of a stream is remembered for a while. An
//! agent that streams badly can be configured to be asked for the whole answer alone (RUN-6).
//! Answers are read as leniently as the contract allows (RUN-3, RUN-7, RUN-8), and what is wrong with them is recorded
//! beside the job.

mod report;
mod stream;
mod verdict;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::run::clause::{RUN_121, RUN_122};
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::Health;
use crosspoint_engine::runtime::{Attempt, Link, Reached};
use crosspoint_exchange::outgoing::Outgoing;
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{Answer, Endpoint, Media, Unanswered};
use tokio::sync::Semaphore;

use super::record::Record;
use super::remote::{self, Agent};
use super::status::is_absent;
use super::whole::{self, Head};
use super::{Fate, Spoken};

/// How long an agent is taken to have no stream. After this it is asked for one again, because it may have got one.
const STREAMLESS_FOR: Duration = Duration::from_secs(600);

/// Most streams of one agent that are read on after their outcome; further ones are closed at once.
const LINGERING_MAX: usize = 64;

/// RUN-1, ALL-3, ALL-4: what became of a run that the end of the server cut short is not known, because a run cannot be
/// asked after.
pub(super) static SPOKEN: Spoken = Spoken {
    contract: Contract::Run,
    silence: Duration::from_secs(60),
    fate: Fate::Unknown,
    has_mode: true,
    has_stream: true,
    whole_address: false,
    program: None,
    endpoints: &["/agents/run/stream", "/agents/run/sync", "/agents/run"],
    link: |agent, _| Arc::new(Run::new(agent)),
};

/// The way to one agent of the run contract.
pub(super) struct Run {
    agent: Agent,
    stream: Endpoint,
    sync: Endpoint,
    /// Until when the agent is taken to have no stream. It is kept in memory: after a restart the agent is asked again.
    streamless: Mutex<Option<Instant>>,
    lingering: Arc<Semaphore>,
}

/// One attempt on its way.
struct RunAttempt {
    attempt: Arc<Attempt>,
    /// The request's id, as the agent was told it (ALL-2).
    request_id: String,
    document: Bytes,
    trace: Trace,
    record: Record,
    began: Instant,
}

impl Run {
    pub(super) fn new(agent: Agent) -> Run {
        let [stream, sync] = ["agents/run/stream", "agents/run/sync"].map(|path| agent.http.endpoint(path));
        let lingering = Arc::new(Semaphore::new(LINGERING_MAX));
        Run { agent, stream, sync, streamless: Mutex::default(), lingering }
    }
}

impl Link for Run {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move {
            let attempt = Arc::new(attempt);
            self.agent.until_stopped(&attempt, self.answer(&attempt)).await
        })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        // RUN-1. An agent that was written from the contract alone has no such path.
        Box::pin(async move { self.agent.health().await })
    }

    fn token_refused_since(&self) -> Option<Time> {
        self.agent.token_refused_since()
    }

    fn reached(&self) -> Option<Reached> {
        self.agent.reached()
    }
}

impl Run {
    async fn answer(&self, attempt: &Arc<Attempt>) -> Result<Success, Failed> {
        let Outgoing { text, trace, .. } = self.agent.request(attempt).await?;
        let mut errand = RunAttempt {
            attempt: attempt.clone(),
            request_id: attempt.job().id().to_string(),
            document: text,
            trace,
            record: Record::new(attempt.clone()),
            began: Instant::now(),
        };
        if !self.agent.streams || self.is_streamless() {
            return self.sync(errand).await;
        }
        let answer = self.agent.http.post(&self.stream, errand.document.clone(), &errand.trace, Media::Events).await;
        let answer = errand.answered(answer)?;
        if is_absent(answer.status) {
            return match self.absent(answer, &mut errand).await {
                Ok(result) => result,
                Err(_) => self.sync(errand).await,
            };
        }
        if answer.media == Media::Events {
            return self.follow(answer, errand).await;
        }
        if answer.status.is_success() {
            errand.record.clause(&RUN_122, "the stream's content type is not text/event-stream");
            if answer.media == Media::Other {
                // The events may be there all the same.
                return self.follow(answer, errand).await;
            }
        }
        self.whole(answer, errand).await
    }

    /// Reads an answer whose status says that there is nothing at the path. If it is a document of the contract, it is
    /// the answer to this request. Only if it is none has the work not been looked at (RUN-5): then the error is what
    /// the status says.
    async fn absent(&self, answer: Answer, errand: &mut RunAttempt) -> Result<Result<Success, Failed>, Failed> {
        let head = Head::of(&answer);
        let (body, _) = answer.beginning(self.agent.answer_bytes_max).await;
        let verdict = verdict::of_document(head, &body, &errand.request_id);
        let verdict = verdict.ok_or_else(|| whole::by_status(head, &body))?;
        errand.record.all(verdict.violations);
        Ok(verdict.result)
    }

    /// Asks for the answer in one piece.
    async fn sync(&self, mut errand: RunAttempt) -> Result<Success, Failed> {
        let asked = self.agent.http.post(&self.sync, errand.document.clone(), &errand.trace, Media::Json);
        let answer = self.agent.patiently(&errand.attempt, asked).await;
        let answer = errand.answered(answer)?;
        if is_absent(answer.status) {
            let result = self.absent(answer, &mut errand).await;
            return result.unwrap_or_else(|failed| Err(errand.elsewhere(failed)));
        }
        self.note_streamless();
        if answer.status.is_success() && answer.media == Media::Events {
            errand.record.clause(&RUN_121, "the answer to a sync run is a stream");
            return self.follow(answer, errand).await;
        }
        self.whole(answer, errand).await
    }

    /// Reads an answer that comes in one piece.
    async fn whole(&self, answer: Answer, mut errand: RunAttempt) -> Result<Success, Failed> {
        let head = Head::of(&answer);
        let bytes_max = self.agent.answer_bytes_max;
        let (body, cut) = self.agent.patiently(&errand.attempt, answer.beginning(bytes_max)).await;
        let verdict = match cut {
            None => verdict::of_answer(head, &body, &errand.request_id),
            Some(unread) => whole::of_unread(unread, head, &body, bytes_max),
        };
        errand.record.all(verdict.violations);
        verdict.result
    }

    /// Notes that the agent was asked for a stream just now, and had none.
    fn note_streamless(&self) {
        let mut streamless = self.streamless.lock().unwrap_or_else(PoisonError::into_inner);
        streamless.get_or_insert_with(|| Instant::now() + STREAMLESS_FOR);
    }

    fn is_streamless(&self) -> bool {
        let mut streamless = self.streamless.lock().unwrap_or_else(PoisonError::into_inner);
        if streamless.is_some_and(|until| until <= Instant::now()) {
            *streamless = None;
        }
        streamless.is_some()
    }
}

impl RunAttempt {
    /// Records that no endpoint is there. Whatever answers there speaks of the path, which the caller has not chosen.
    fn elsewhere(&mut self, failed: Failed) -> Failed {
        self.record.clause(&RUN_121, "no endpoint of the contract is there");
        failed
    }

    /// Returns the head of an answer, or why there is none; logs the exchange.
    fn answered(&mut self, answer: Result<Answer, Unanswered>) -> Result<Answer, Failed> {
        let status = answer.as_ref().map(|answer| (answer.status, None));
        remote::log(&self.attempt, self.began, status.map_err(|why| why as _));
        match &answer {
            Ok(_) | Err(Unanswered::Unconnected) => {}
            Err(Unanswered::Lost) => {
                self.record.clause(&RUN_121, "the connection was lost before there was an answer");
            }
            Err(Unanswered::Garbled) => self.record.clause(&RUN_121, "what came is no HTTP that can be read"),
        }
        answer.map_err(remote::unanswered)
    }
}
