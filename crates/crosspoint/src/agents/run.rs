//! Agents of the run contract.
//!
//! The stream is asked for first, because progress arrives by it, and silence can be told from work. An agent that has none is
//! asked for the whole answer, with the same document, and that is remembered for a while. What comes is read as leniently as
//! the contract allows (RUN-3, RUN-7, RUN-8), and what is wrong with it is on record beside the job.

mod report;
mod stream;
mod verdict;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::run::clause::{RUN_121, RUN_122};
use crosspoint_engine::breaker::Health;
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use tokio::sync::Semaphore;

use super::http::{Answer, Media, Place, Unanswered};
use super::record::Record;
use super::remote::{self, Agent};
use super::status::is_absent;
use super::{Fate, Spoken};
use crate::passage::outgoing::Outgoing;
use crate::passage::trace::Trace;

/// An agent without a stream is asked for one again after this: somebody may have given it one.
const STREAMLESS_FOR: Duration = Duration::from_secs(600);

/// So many streams of one agent at most are read on after their outcome; others are closed at once.
const LINGERING_MAX: usize = 64;

/// While an answer is awaited in one piece its silence is not told more often than this.
const PATIENCE_MIN: Duration = Duration::from_millis(10);

/// RUN-1, ALL-3, ALL-4: a run that our end cut short is nobody's, because it cannot be asked after.
pub(super) static SPOKEN: Spoken = Spoken {
    contract: Contract::Run,
    silence: Duration::from_secs(60),
    fate: Fate::Unknown,
    has_mode: true,
    endpoints: &["/agents/run/stream", "/agents/run/sync", "/agents/run"],
    link: |agent, _| Arc::new(Run::new(agent)),
};

/// The way to one agent of the run contract.
pub(super) struct Run {
    agent: Agent,
    stream: Place,
    sync: Place,
    /// Until when it is taken to have no stream. In memory: a restart asks again.
    streamless: Mutex<Option<Instant>>,
    lingering: Arc<Semaphore>,
}

/// One attempt on its way.
struct Errand {
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
        let [stream, sync] = ["agents/run/stream", "agents/run/sync"].map(|path| agent.http.place(path));
        let lingering = Arc::new(Semaphore::new(LINGERING_MAX));
        Run { agent, stream, sync, streamless: Mutex::default(), lingering }
    }
}

impl Link for Run {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move {
            let attempt = Arc::new(attempt);
            tokio::select! {
                // What the agent has answered counts, though somebody stops it in this very moment.
                biased;
                result = self.answer(&attempt) => result,
                // The contract has no way to cancel: whatever is open is closed.
                () = attempt.stopped() => Err(super::gone(Gone)),
            }
        })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        // RUN-1. An agent that was written from the document alone has no such place.
        Box::pin(async move { self.agent.health().await })
    }
}

impl Run {
    async fn answer(&self, attempt: &Arc<Attempt>) -> Result<Success, Failed> {
        let Outgoing { text, trace, .. } = self.agent.request(attempt).await?;
        let mut errand = Errand {
            attempt: attempt.clone(),
            request_id: attempt.job().id().to_string(),
            document: text,
            trace,
            record: Record::new(attempt.clone()),
            began: Instant::now(),
        };
        if self.is_streamless() {
            return self.sync(errand).await;
        }
        let answer = self.agent.http.post(&self.stream, errand.document.clone(), &errand.trace, Media::Events).await;
        let answer = errand.answered(answer)?;
        if is_absent(answer.status) {
            return match self.absent(answer, &mut errand).await {
                Some(result) => result,
                None => self.sync(errand).await,
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

    /// Nothing is at that path, or so its status says. In the words of the contract that is the answer to this request; only where none are said,
    /// the work has not been looked at (RUN-5).
    async fn absent(&self, answer: Answer, errand: &mut Errand) -> Option<Result<Success, Failed>> {
        let status = answer.status;
        let body = answer.whole(self.agent.answer_bytes_max).await.unwrap_or_default();
        let verdict = verdict::of_document(status, &body, &errand.request_id)?;
        errand.record.all(verdict.violations);
        Some(verdict.result)
    }

    /// Asks for the answer in one piece.
    async fn sync(&self, mut errand: Errand) -> Result<Success, Failed> {
        let asked = self.agent.http.post(&self.sync, errand.document.clone(), &errand.trace, Media::Json);
        let answer = self.patiently(&errand.attempt, asked).await;
        let answer = errand.answered(answer)?;
        if is_absent(answer.status) {
            let result = self.absent(answer, &mut errand).await;
            return result.unwrap_or_else(|| Err(errand.elsewhere()));
        }
        self.note_streamless();
        if answer.status.is_success() && answer.media == Media::Events {
            errand.record.clause(&RUN_121, "the answer to a sync run is a stream");
            return self.follow(answer, errand).await;
        }
        self.whole(answer, errand).await
    }

    /// Reads an answer that comes in one piece.
    async fn whole(&self, answer: Answer, mut errand: Errand) -> Result<Success, Failed> {
        let status = answer.status;
        let body = self.patiently(&errand.attempt, answer.whole(self.agent.answer_bytes_max)).await;
        match body {
            Ok(body) => {
                let verdict = verdict::of_answer(status, &body, &errand.request_id);
                errand.record.all(verdict.violations);
                verdict.result
            }
            Err(unread) => {
                let cut = verdict::of_unread(unread, status, self.agent.answer_bytes_max);
                errand.record.all(cut.violations);
                cut.result
            }
        }
    }

    /// Whoever answers in one piece cannot show that it is alive, so only the total time counts (ALL-4).
    async fn patiently<T>(&self, attempt: &Attempt, answer: impl Future<Output = T>) -> T {
        let Some(silence) = self.agent.silence(attempt) else { return answer.await };
        let mut period = tokio::time::interval((silence / 3).max(PATIENCE_MIN));
        // The first is at once.
        period.reset();
        tokio::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => return answered,
                // Where nobody wants to hear it any more, it is stopped.
                _ = period.tick() => drop(attempt.heard().await),
            }
        }
    }

    /// It was asked for a stream just now, and had none.
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

impl Errand {
    /// Nothing is where the agent should be. Whatever answers there speaks of the path, and the caller has not chosen it.
    fn elsewhere(&mut self) -> Failed {
        self.record.clause(&RUN_121, "neither endpoint is there");
        let message = "The agent has neither endpoint of its contract at its address.";
        Failed::said(Failure::Unsupported, Dispatched::No, message)
    }

    /// The head of an answer, or why there is none.
    fn answered(&mut self, answer: Result<Answer, Unanswered>) -> Result<Answer, Failed> {
        let told = answer.as_ref().map(|answer| (answer.status, None));
        remote::log(&self.attempt, self.began, told.map_err(|why| why as _));
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
