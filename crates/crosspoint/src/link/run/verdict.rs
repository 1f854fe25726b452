//! What an answer of an agent means for its attempt: pure.

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::run::StreamEvent;
use crosspoint_contracts::run::clause::{RUN_5_3, RUN_7, RUN_9, RUN_104};
use crosspoint_contracts::run::failure::{read_answer, write};
use crosspoint_exchange::reply::{self, Meaning, Reply, Unreadable};
use crosspoint_http::long;
use reqwest::StatusCode;

use crate::link::record::{found, note};
use crate::link::status;
use crate::link::whole::{Head, UNREADABLE, Verdict, by_status, of_unreadable};

/// Clauses whose breach does no harm: what they recommend is missing.
const RECOMMENDED: [&Clause; 1] = [&RUN_104];

/// Judges the answer to a sync run, or to a stream that was refused.
pub(super) fn of_answer(head: Head, body: &Bytes, request_id: &str) -> Verdict {
    #[cfg(feature = "leaks")]
    crate::leak::reply(body);
    match read(body) {
        Ok(reply) => of_reply(head, reply, body, request_id),
        Err(unreadable) => of_unreadable(head, unreadable, body, &RECOMMENDED),
    }
}

/// Like `of_answer`, if the answer is a document of the contract, which it shows by the id of the request: many servers
/// say in words like those of the contract that there is nothing at a path.
pub(super) fn of_document(head: Head, body: &Bytes, request_id: &str) -> Option<Verdict> {
    let reply = read(body).ok().filter(|reply| reply.request_id.is_some())?;
    Some(of_reply(head, reply, body, request_id))
}

fn read(body: &Bytes) -> Result<Reply, Unreadable> {
    long::look(body.len(), || reply::read(Kind::RunResponse, body))
}

fn of_reply(head: Head, reply: Reply, body: &Bytes, request_id: &str) -> Verdict {
    let status = head.status;
    let mut violations = found(reply.report, &RECOMMENDED);
    // An answer without an id, on the connection that carried the request, is the answer to it (ALL-11).
    let ours = reply.request_id.as_deref().is_none_or(|id| id == request_id);
    if !ours {
        violations.push(note(&RUN_9, "the answer's `request_id` differs from that of the request"));
    }
    let refused = !status.is_success();
    let result = match reply.meaning {
        // A refusal may come before the id was read; any other answer with another id answers another request.
        Meaning::Ended(Err(failed)) if ours || refused => Err(weighed(head, reply.code.as_deref(), *failed)),
        Meaning::Ended(Ok(success)) if ours => Ok(success),
        Meaning::Ended(_) => Err(reply::unreadable("The agent answered another request.", body)),
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => Err(reply::unreadable(UNREADABLE, body)),
    };
    let is_refusal = status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE;
    if refused && (result.is_ok() || !is_refusal) {
        violations.push(note(&RUN_5_3, "the answer is that of a run, and its HTTP status says otherwise"));
    }
    Verdict { result, violations }
}

/// Judges the outcome of a stream; what is wrong with it was recorded when it was read.
pub(super) fn of_event(event: StreamEvent) -> Result<Success, Failed> {
    let data = Bytes::from(event.data);
    match read(&data).map(|reply| reply.meaning) {
        Ok(Meaning::Ended(result)) => result.map_err(|failed| *failed),
        Ok(Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_)) => Err(reply::unreadable(UNREADABLE, &data)),
        Err(unreadable) => Err(reply::unreadable(unreadable.lack.sentence(), &data)),
    }
}

/// Judges a stream that ended without an outcome. `refused` is the last terminal event that could not be taken for one.
pub(super) fn of_unended_stream(head: Head, refused: &[u8]) -> Verdict {
    let result = if head.status.is_success() {
        let message = "The agent ended its stream without an outcome that can be taken; the job's violations say more.";
        Err(reply::unreadable(message, refused))
    } else {
        Err(by_status(head, refused))
    };
    let what = match refused {
        [] => "the stream ended before its terminal event",
        [..] => "the stream has no terminal event that can be taken",
    };
    Verdict { result, violations: vec![note(&RUN_7, what)] }
}

/// Judges a stream whose connection was lost before there was an outcome.
pub(super) fn of_lost_stream() -> Verdict {
    let message = "The connection to the agent was lost before there was an outcome.";
    Verdict {
        result: Err(Failed::dropped(message)),
        violations: vec![note(&RUN_7, "the connection was lost before the terminal event")],
    }
}

/// Judges a stream whose framing went wrong before there was an outcome.
pub(super) fn of_garbled_stream() -> Verdict {
    Verdict {
        result: Err(Failed::said(Failure::BrokenContract, Dispatched::Yes, "The agent's stream could not be read.")),
        violations: vec![note(&RUN_7, "the framing of the stream is wrong before the terminal event")],
    }
}

/// Returns the failure of an answer that says it failed: what it says, and if that says little, what its status says
/// (RUN-3.11).
fn weighed(head: Head, code: Option<&str>, failed: Failed) -> Failed {
    let Head { status, retry_after } = head;
    let meaning = status::meaning(status).filter(|_| status::is_at_the_gate(status));
    let is_plain = failed.failure == Failure::AgentFailed && code != Some(write(Failure::AgentFailed).0);
    let failure = if !is_plain || status.is_success() {
        failed.failure
    } else {
        meaning.as_ref().map_or_else(|| read_answer(code, status.as_u16()), |meaning| meaning.failure)
    };
    let dispatched = meaning.map_or(Dispatched::Yes, |meaning| meaning.dispatched);
    Failed { failure, dispatched, ..failed }.asking_for(retry_after)
}
