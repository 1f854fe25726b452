//! Between a caller and an agent: what is decided when work and its results pass from one to the other.
//!
//! Pure: no transport, no engine, no clock. Doors and links move bytes; what the bytes mean is decided here, once for
//! each side: N + N.
//!
//! In reading order, along the way of one piece of work:
//! - [`incoming`]: a caller's document is read into a new job;
//! - [`admission`]: the job is given to the [`backend`] that does the work, or the request is refused;
//! - [`refusal`]: why a request is refused, in words, and as a document of the caller's contract;
//! - [`outgoing`]: a job becomes the request of an agent's contract, with its place in a [`trace`];
//! - [`reply`]: what the agent says becomes progress and an outcome; [`words`]: what it says that is no document;
//! - [`answer`]: a job as it is becomes a document of the caller's contract, from its [`snapshot`].

pub mod admission;
pub mod answer;
pub mod backend;
mod caller;
mod echo;
pub mod incoming;
pub mod listed;
pub mod outgoing;
pub mod refusal;
pub mod reply;
pub mod snapshot;
pub mod trace;
mod unaccepted;
pub mod words;

use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, WriteContext};
use uuid::Uuid;

/// The type of an agent that has none, where no type was addressed either.
const AGENT_TYPE: &str = "code";

/// What a writer needs, for a document about the job with this id.
fn write_context(id: Uuid, now: &str) -> WriteContext<'_> {
    WriteContext {
        now,
        id,
        message_id: id,
        agent_types: &[],
        agent_type: AGENT_TYPE,
        carrying: Carrying::On,
        known_as: None,
        completing: false,
        levels: Levels::Received,
        facts: &[],
    }
}
