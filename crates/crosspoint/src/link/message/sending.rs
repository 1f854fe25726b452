//! What is sent to an agent: the request of an attempt, and that work is no longer wanted.

use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::clause::all::ALL_129;
use crosspoint_contracts::message::code;
use crosspoint_contracts::reply::Failed;
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::Attempt;
use crosspoint_engine::wall_clock;
use crosspoint_exchange::outgoing;
use crosspoint_exchange::trace::Trace;
use serde_json::json;
use uuid::Uuid;

use super::agent::MessageAgent;
use crate::backend::assignment;

/// How much longer than its request says an attempt may take (ALL-4).
const GRACE: Duration = Duration::from_secs(30);

/// A request on its way to an agent.
pub(super) struct Request {
    pub(super) message_id: Uuid,
    pub(super) text: Bytes,
    pub(super) trace: Trace,
}

/// Writes the request of an attempt, with a person's answer in it if there is one. Every sending has the same request
/// id and a new message id (MSG-5.2).
pub(super) async fn request(agent: &MessageAgent, attempt: &Attempt, answer: Option<Body>) -> Result<Request, Failed> {
    let document = attempt.document().await?;
    let message_id = Uuid::new_v4();
    let mut assignment = assignment(attempt.job(), attempt.number(), &document, attempt.time_left());
    assignment.message_id = message_id;
    assignment.now = wall_clock::now();
    assignment.answer = answer.as_ref();
    let outgoing = outgoing::request(&assignment, &agent.options)?;
    if let Some(lost) = &outgoing.lost {
        attempt.noted(ALL_129.id, ALL_129.level, lost.clone());
    }
    Ok(Request { message_id, text: outgoing.text, trace: outgoing.trace })
}

/// Returns how long the agent of an attempt may be silent, because its request says how long the work may take
/// (MSG-6.2).
pub(super) fn quiet_for(attempt: &Attempt) -> Option<Duration> {
    let limits = &attempt.job().request.limits;
    limits.attempt.map(|attempt| attempt.saturating_sub(GRACE)).or_else(|| attempt.time_left())
}

/// Writes that work is no longer wanted (MSG-19).
pub(super) fn cancel(agent: &MessageAgent, job: JobId, trace: &Trace) -> (Uuid, Bytes) {
    let message_id = Uuid::new_v4();
    let trace_id = Uuid::parse_str(&trace.trace_id).unwrap_or(job.uuid());
    let message = json!({
        "protocol_version": "1.0",
        "message_id": message_id,
        "from_agent": "orchestrator",
        "to_agent": agent.agent_type.as_deref().unwrap_or("code"),
        "timestamp": wall_clock::now().to_string(),
        "trace_id": trace_id,
        "request_id": job.uuid(),
        "type": "error",
        "payload": {
            "error_code": code::CANCELLED,
            "error_message": "The work is no longer wanted.",
            "error_context": { "task_id": job.uuid(), "request_id": job.uuid() },
        },
        "x_custom_fields": {},
    });
    (message_id, message.to_string().into())
}
