//! How callers of the message contract are told: by a `work_status` for each state, and at the end by a `work_result`
//! or an `error` (MSG-17.4). A long text goes before it in pieces (MSG-9).

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::json::{Tape, Value};
use crosspoint_contracts::message::About;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Engine;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::snapshot::Snapshot;
use crosspoint_http::door::message::CONTRACT;

use super::telling::{Ids, Telling};
use crate::backend::snapshot;

/// Where messages are posted, below the address of their recipient (MSG-14).
const PATH: &str = "api/agent/message";

/// Returns how jobs are told.
pub(crate) fn telling(engine: &Engine) -> Telling {
    let (for_states, for_outcomes) = (engine.clone(), engine.clone());
    let now = move |job: &Job| Some(state(job, agent_type(&for_states, job).as_deref()));
    let outcome = move |job: &Job| outcome(job, agent_type(&for_outcomes, job).as_deref());
    Telling { path: PATH, now: Box::new(now), outcome: Box::new(outcome), ids }
}

/// Returns the type of the agent of a job, if the messages are from it (MSG-18.2).
fn agent_type(engine: &Engine, job: &Job) -> Option<Arc<str>> {
    let agent = job.agent.as_ref().filter(|_| snapshot(job).lacks_sender())?;
    engine.agent(agent)?.spec.agent_type
}

fn state(job: &Job, agent_type: Option<&str>) -> Bytes {
    let job = Snapshot { agent_type, ..snapshot(job) };
    answer::document(&job, CONTRACT, &Beside::default()).into()
}

fn outcome(job: &Job, agent_type: Option<&str>) -> Vec<Bytes> {
    let (job, beside) = (Snapshot { agent_type, ..snapshot(job) }, Beside::default());
    match answer::pieces(&job, CONTRACT, &beside, |_| 0) {
        Some(pieces) => pieces.map(Bytes::from).collect(),
        None => vec![answer::document(&job, CONTRACT, &beside).into()],
    }
}

/// A message is acknowledged by its own id, or by that of its task or request.
fn ids(document: &[u8]) -> Ids {
    let tape = Tape::scan(document).ok();
    let own = tape.as_ref().and_then(Tape::root).and_then(|root| root.get("message_id")).and_then(Value::text);
    let message = own.map(|id| id.decode().into_owned()).unwrap_or_default();
    let job = About::of(document).ids;
    Ids { message: message.into(), job: job.into_iter().map(String::into_boxed_str).collect() }
}
