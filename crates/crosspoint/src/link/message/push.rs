//! The way to an agent that work is pushed to: messages are posted to its endpoint (MSG-14).

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::reply::Failed;
use crosspoint_engine::runtime::Attempt;
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{Media, Unanswered, Unread};
use reqwest::StatusCode;

use super::agent::MessageAgent;
use super::sending;
use super::steps::Refused;
use super::verdict::Answered;
use crate::backend::trace_of;
use crate::link::cancelling::ANSWER_BYTES_MAX;
use crate::link::{remote, status};

/// Posts a request, and reads the answer whole.
pub(super) async fn request(agent: &MessageAgent, request: sending::Request) -> Result<Answered, Failed> {
    let Some(push) = &agent.push else { return Err(remote::unanswered(Unanswered::Unconnected)) };
    let answer = push.http.post(&push.endpoint, request.text, &request.trace, Media::Json).await;
    let answer = answer.map_err(remote::unanswered)?;
    let (status, retry_after) = (answer.status, answer.retry_after);
    let (body, cut) = answer.beginning(agent.answer_bytes_max).await;
    match cut {
        // A refusal is complete with its status line.
        Some(_) if status::meaning(status).is_some() => {}
        None => {}
        Some(Unread::TooLong) => return Err(remote::too_long(agent.answer_bytes_max)),
        Some(Unread::Lost) => return Err(remote::unanswered(Unanswered::Lost)),
        Some(Unread::Garbled) => return Err(remote::unanswered(Unanswered::Garbled)),
    }
    Ok(Answered { status, retry_after, body })
}

/// Posts a message that needs no answer. Returns the status of the answer; `None` if there was none.
pub(super) async fn tell(agent: &MessageAgent, document: Bytes, trace: &Trace) -> Option<StatusCode> {
    let push = agent.push.as_ref()?;
    let answer = push.http.post(&push.endpoint, document, trace, Media::Json).await.ok()?;
    let status = answer.status;
    drop(answer.whole(ANSWER_BYTES_MAX).await);
    Some(status)
}

/// Tells an agent that has its answer already what is wrong with what it printed (MSG-9.4). The outcome stands and says
/// that its text is not whole, so it is told once, and nothing depends on it.
pub(super) fn object(agent: &Arc<MessageAgent>, attempt: &Attempt, refused: Refused) {
    let (agent, trace) = (agent.clone(), trace_of(attempt.job(), attempt.number()));
    let document = sending::objection(&agent, attempt.job().id(), &trace, refused);
    tokio::spawn(async move { tell(&agent, document, &trace).await });
}
