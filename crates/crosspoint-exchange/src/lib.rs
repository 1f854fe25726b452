//! Between the contracts and the engine.
//!
//! A caller's document becomes a job ([`admission`], [`incoming`]) or is refused ([`refusal`]). A job becomes the
//! request of an agent's contract ([`outgoing`]), the agent's words become progress and an outcome ([`reply`]), and
//! those become a document of the caller's contract ([`answer`]). Doors and links move bytes. Their meaning is decided
//! here, by pure functions, once for each contract on each side: N + N.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod refusal;
pub(crate) mod reply;
pub(crate) mod trace;

#[cfg(test)]
mod tests;

use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, Fresh};
use crosspoint_engine::id::JobId;

/// Returns what a writer needs for a document about this job.
fn fresh(id: JobId, now: &str) -> Fresh<'_> {
    Fresh {
        now,
        id: id.uuid(),
        agent_types: &[],
        // Agents of these contracts have no type.
        agent_type: "code",
        carrying: Carrying::On,
        known_as: None,
        completing: false,
        levels: Levels::Received,
    }
}
