//! Telling an orchestrator of the message contract how a job goes: a `work_status` at every step, again every ten
//! seconds (MSG-6.4), and at the end the outcome, until it is taken.

use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::message::{About, Cancel};
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::backend::{Backend, Followed};
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{AnswerRoom, Endpoint, Http, Media};
use url::Url;

use crate::desk::Desk;
use crate::record::{Job, Record};

/// An agent that works says so at least this often.
const STATUS_PERIOD: Duration = Duration::from_secs(10);

/// Shortest time between two statuses: a handler may report progress in a loop.
const STATUS_PAUSE: Duration = Duration::from_millis(200);

/// Pauses between attempts to tell an outcome: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Where messages go.
const PATH: &str = "api/agent/message";

/// The way to an orchestrator.
pub(crate) struct Orchestrator {
    pub(crate) http: Http,
    messages: Endpoint,
}

impl Orchestrator {
    /// Makes the way to the orchestrator at this address.
    pub(crate) fn at(url: &Url, token: Option<&str>) -> Orchestrator {
        let mut base = url.clone();
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", url.path()));
        }
        // Long answers are messages with work, of which few come at a time.
        let http = Http::new(&base, token, &AnswerRoom::new(256 << 20));
        let messages = http.endpoint(PATH);
        Orchestrator { http, messages }
    }

    /// Posts a message. Returns the answer if the message was taken or will never be; `None` if it may be sent again.
    pub(crate) async fn post(&self, message: Bytes, trace: &Trace) -> Option<Bytes> {
        let answer = self.http.post(&self.messages, message, trace, Media::Json).await.ok()?;
        let status = answer.status;
        let body = answer.whole(ANSWER_BYTES_MAX).await.unwrap_or_default();
        (!status.is_server_error() && status.as_u16() != 429).then_some(body)
    }

    /// Tells how a job goes, until its outcome was taken.
    pub(crate) async fn tell(&self, desk: &Desk, job: Job, beside: Beside) {
        let mut now = job.now();
        let trace = Trace::of_attempt(now.asked.id, now.asked.trace.as_deref(), 1);
        while Job::snapshot(&now).ended().is_none() {
            let status = answer::document(&Job::snapshot(&now), Contract::Message, &beside);
            let said = self.post(status.into(), &trace).await;
            if said.is_some_and(|said| is_about(&said, &now)) {
                let _ = desk.cancel(&Caller::everyone(), &job).await;
            }
            tokio::time::sleep(STATUS_PAUSE).await;
            now = job.moved(&now, Instant::now() + STATUS_PERIOD).await;
        }
        let messages: Vec<Bytes> = {
            let ended = Job::snapshot(&now);
            match answer::pieces(&ended, Contract::Message, &beside) {
                Some(pieces) => pieces.map(Bytes::from).collect(),
                None => vec![answer::document(&ended, Contract::Message, &beside).into()],
            }
        };
        for message in messages {
            let mut pause = PAUSE_FIRST;
            while self.post(message.clone(), &trace).await.is_none() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// Whether an answer says that this work is no longer wanted (MSG-19).
fn is_about(answer: &[u8], now: &Record) -> bool {
    Cancel::read(answer).is_some() && About::of(answer).ids.iter().any(|id| **id == *now.asked.request_id)
}
