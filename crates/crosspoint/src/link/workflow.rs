//! Agents of the workflow contract.
//!
//! The input envelope is posted to the agent's address, and the output envelope is the answer (WF-8). The header
//! `Idempotency-Key` has the job's id, so that an agent can tell a repeat from other work. A program speaks the
//! contract too: [`super::exec`] runs it. What the agent recommends is carried, not followed, and its artifacts are
//! written nowhere (WF-8.2); a path that leaves the repository is a violation on record (WF-4).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::time::Time;
use crosspoint_contracts::workflow::clause::WF_8;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::breaker::Health;
use crosspoint_engine::runtime::{Attempt, Link, Reached};
use crosspoint_exchange::reply::{self, Meaning, Reply};
use crosspoint_http::call::{Endpoint, Unanswered};
use crosspoint_http::long;
use reqwest::StatusCode;

use super::record::{Record, found, note};
use super::remote::{self, Agent};
use super::whole::{self, Head, UNREADABLE, Verdict};
use super::{Fate, Spoken, status};

/// WF-8, ALL-3, ALL-4: what became of an envelope that the end of the server cut short is not known, because an
/// envelope cannot be asked after. A program died with the server.
pub(super) static SPOKEN: Spoken = Spoken {
    contract: Contract::Workflow,
    silence: Duration::from_secs(60),
    fate: Fate::Unknown,
    has_mode: false,
    has_stream: false,
    whole_address: true,
    program: Some(&WF_8),
    endpoints: &[],
    link: |agent, _| Arc::new(Workflow { place: agent.http.endpoint(""), agent }),
};

/// The way to one agent of the workflow contract.
struct Workflow {
    agent: Agent,
    place: Endpoint,
}

impl Link for Workflow {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move {
            let attempt = Arc::new(attempt);
            self.agent.until_stopped(&attempt, self.answer(&attempt)).await
        })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(async move { self.agent.health().await })
    }

    fn token_refused_since(&self) -> Option<Time> {
        self.agent.token_refused_since()
    }

    fn reached(&self) -> Option<Reached> {
        self.agent.reached()
    }
}

impl Workflow {
    async fn answer(&self, attempt: &Arc<Attempt>) -> Result<Success, Failed> {
        let request = self.agent.request(attempt).await?;
        let began = Instant::now();
        // ALL-2: an envelope has no id, so the job's id is in the header.
        let key = attempt.job().id().to_string();
        let asked = self.agent.http.post_with_key(&self.place, request.text, &request.trace, &key);
        let answer = self.agent.patiently(attempt, asked).await;
        remote::log(attempt, began, answer.as_ref().map(|answer| (answer.status, None)).map_err(|why| why as _));
        let mut record = Record::new(attempt.clone());
        match &answer {
            Ok(_) | Err(Unanswered::Unconnected) => {}
            Err(Unanswered::Lost) => record.clause(&WF_8, "the connection was lost before there was an answer"),
            Err(Unanswered::Garbled) => record.clause(&WF_8, "what came is no HTTP that can be read"),
        }
        let answer = answer.map_err(remote::unanswered)?;
        let (head, bytes_max) = (Head::of(&answer), self.agent.answer_bytes_max);
        let (body, cut) = self.agent.patiently(attempt, answer.beginning(bytes_max)).await;
        let verdict = match cut {
            None => of_answer(head, &body),
            Some(unread) => whole::of_unread(unread, head, &body, bytes_max),
        };
        record.all(verdict.violations);
        verdict.result
    }
}

/// Judges an answer: pure.
fn of_answer(head: Head, body: &Bytes) -> Verdict {
    match long::look(body.len(), || reply::read(Kind::WorkflowOutput, body)) {
        Ok(reply) => of_reply(head, reply, body),
        Err(unreadable) => whole::of_unreadable(head, unreadable, body, &[]),
    }
}

fn of_reply(head: Head, reply: Reply, body: &[u8]) -> Verdict {
    let mut violations = found(reply.report, &[]);
    let result = match reply.meaning {
        Meaning::Ended(result) => result.map_err(|failed| weighed(head, *failed)),
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => Err(reply::unreadable(UNREADABLE, body)),
    };
    let is_refusal = head.status.is_client_error() || head.status == StatusCode::SERVICE_UNAVAILABLE;
    if !head.status.is_success() && (result.is_ok() || !is_refusal) {
        violations.push(note(&WF_8, "the answer is an output envelope, and its HTTP status says otherwise"));
    }
    Verdict { result, violations }
}

/// Returns the failure of an envelope. The contract has no words for failures, so the HTTP status of a refusal says
/// which it is, unless the envelope carries it.
fn weighed(Head { status, retry_after }: Head, failed: Failed) -> Failed {
    let meaning = status::meaning(status);
    let failure = match (failed.failure, &meaning) {
        (Failure::AgentFailed, Some(meaning)) => meaning.failure,
        (carried, _) => carried,
    };
    let at_the_gate = meaning.filter(|_| status::is_at_the_gate(status));
    let dispatched = at_the_gate.map_or(Dispatched::Yes, |meaning| meaning.dispatched);
    Failed { failure, dispatched, ..failed }.asking_for(retry_after)
}
