//! What is sent to an agent: the request of an attempt, that work is no longer wanted, and what is wrong with its
//! output.

use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::clause::all::ALL_129;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::message::Notice;
use crosspoint_contracts::message::version::{SPOKEN, pick};
use crosspoint_contracts::reply::{Failed, Question};
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::Attempt;
use crosspoint_engine::wall_clock;
use crosspoint_exchange::outgoing;
use crosspoint_exchange::trace::Trace;
use uuid::Uuid;

use super::agent::MessageAgent;
use super::steps::Refused;
use crate::backend::assignment;

/// How much longer than its request says an attempt may take (ALL-4).
const GRACE: Duration = Duration::from_secs(30);

/// The type that an agent without one is addressed by.
pub(crate) const AGENT_TYPE_DEFAULT: &str = "code";

/// A request on its way to an agent.
pub(super) struct Request {
    pub(super) message_id: Uuid,
    pub(super) text: Bytes,
    pub(super) trace: Trace,
}

/// Writes the request of an attempt, with a person's answer in it if there is one. Every sending has the same request
/// id and a new message id (MSG-5.2).
pub(super) async fn request(
    agent: &MessageAgent,
    attempt: &Attempt,
    answer: Option<(Question, Body)>,
) -> Result<Request, Failed> {
    let document = attempt.document().await?;
    let mut assignment = assignment(attempt.job(), attempt.number(), &document, attempt.time_left());
    assignment.answer = answer.as_ref().map(|(question, answer)| (question, answer));
    let outgoing = outgoing::request(&assignment, &agent.options)?;
    if let Some(lost) = &outgoing.lost {
        attempt.noted(ALL_129.id, ALL_129.level, lost.clone());
    }
    Ok(Request { message_id: assignment.message_id, text: outgoing.text, trace: outgoing.trace })
}

/// Returns how long the agent of an attempt may be silent, because its request says how long the work may take
/// (MSG-6.2).
pub(super) fn quiet_for(attempt: &Attempt) -> Option<Duration> {
    let limits = &attempt.job().request.limits;
    limits.attempt.map(|attempt| attempt.saturating_sub(GRACE)).or_else(|| attempt.time_left())
}

/// Writes that work is no longer wanted (MSG-19).
pub(super) fn cancel(agent: &MessageAgent, job: JobId, trace: &Trace) -> (Uuid, Bytes) {
    let to_agent = agent.agent_type.as_deref().unwrap_or(AGENT_TYPE_DEFAULT);
    let message_id = Uuid::new_v4();
    (message_id, cancelled(message_id, to_agent, job, trace))
}

/// Writes that work is over, for an agent that goes on with it.
pub(crate) fn cancelled(message_id: Uuid, to_agent: &str, job: JobId, trace: &Trace) -> Bytes {
    notice(message_id, to_agent, (job, trace), None)
}

/// Writes what is wrong with what an agent printed (MSG-9.4).
pub(crate) fn objection(agent: &MessageAgent, job: JobId, trace: &Trace, refused: Refused) -> Bytes {
    let to_agent = agent.agent_type.as_deref().unwrap_or(AGENT_TYPE_DEFAULT);
    notice(Uuid::new_v4(), to_agent, (job, trace), Some(refused))
}

/// Writes what is wrong with the output, or that the work is no longer wanted.
fn notice(message_id: Uuid, to_agent: &str, (job, trace): (JobId, &Trace), refused: Option<Refused>) -> Bytes {
    let timestamp = wall_clock::now().to_string();
    let trace_id = Uuid::parse_str(&trace.trace_id).unwrap_or(job.uuid());
    // There is one version, which every side speaks.
    let Ok(version) = pick(SPOKEN, SPOKEN) else { return Bytes::new() };
    let notice = Notice { version, message_id, to_agent, timestamp: &timestamp, trace_id, work: job.uuid() };
    refused.map_or_else(|| notice.cancelled(), |refused| refused.notice(&notice)).into()
}
