//! What a core is made from: the content of the store, and the operator's configuration.

use crosspoint_contracts::time::Time;

use super::committer::Settled;
use crate::core::{Mode, Origin};
use crate::retention::Ended;
use crate::store::{Fault, Store};

/// Collects what a core is made from. `now` is the time by the clock that the store knows; `wall` is the time after
/// jumps that are not on disk.
pub(super) fn origin(
    store: &Store,
    settled: &Settled,
    mode: Mode,
    (now, wall): (Time, Time),
    mut ended: Ended,
) -> Result<Origin, Fault> {
    let loaded = store.load_telling(|seq, at| ended.note_again(seq, at, wall))?;
    if !loaded.unrepaired.is_empty() {
        tracing::error!(jobs = loaded.unrepaired.len(), "jobs have an outcome and did not say so; they are put right");
    }
    Ok(Origin {
        agents: settled.agents.clone(),
        members: loaded.members,
        present: std::collections::BTreeMap::new(),
        grants: loaded.grants,
        standings: loaded.standings,
        jobs: loaded.jobs,
        keys: loaded.keys,
        last_seq: loaded.last_seq,
        ids: settled.ids.clone(),
        ended,
        unrepaired: loaded.unrepaired,
        room: settled.room,
        mode,
        end: loaded.end,
        visited: loaded.visited,
        alive_at: loaded.alive_at,
        now,
    })
}
