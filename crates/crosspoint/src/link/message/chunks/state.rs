//! What is known of the output of one attempt, beside the bytes themselves. It has no content, and is written down with
//! every change.

use std::ops::Range;

use crosspoint_contracts::message::chunk::{Chunk, Refusal};
use serde::{Deserialize, Serialize};

use super::Status;
use super::seen::Seen;
use super::set::{Set, StepId};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) seen: Seen,
    /// The last output that came in chunks. It is kept after its end: chunks may be repeated, and the result may be its
    /// end.
    pub(super) set: Option<Set>,
    /// How long the longest output would be of which a part was refused or never came, in bytes.
    pub(super) lost_bytes: Option<u64>,
}

impl State {
    /// Returns the state of an attempt whose file is damaged. What was printed before may be all or not.
    pub(super) fn damaged(output_bytes: u64) -> State {
        State { lost_bytes: Some(output_bytes), ..State::default() }
    }

    /// Whether the output of the attempt may have this many bytes.
    pub(super) fn fits(&self, output_bytes: u64) -> bool {
        self.set.as_ref().is_none_or(|set| set.fits(output_bytes))
    }

    /// Returns the places of the next bytes that go into the output of the attempt, of which there are this many.
    pub(super) fn next(&self, output_bytes: u64) -> Option<Range<u64>> {
        self.set.as_ref()?.next(output_bytes)
    }

    /// Returns the set that may still grow.
    pub(super) fn open(&self) -> Option<&Set> {
        self.set.as_ref().filter(|set| !set.is_ended())
    }

    /// Whether a status ends the set that is open: it is of another step, or it has more text than may wait.
    pub(super) fn ends_with(&self, status: &Status) -> bool {
        let waits = |set: &Set| status.chunk.is_some() || set.has_room_for(status.output.len() as u64);
        self.open().is_some_and(|set| set.step != status.step_id() || !waits(set))
    }

    /// Ends the set, if one is open.
    pub(super) fn close(&mut self) -> Option<Refusal> {
        let set = self.set.as_mut().filter(|set| !set.is_ended())?;
        let gap = set.close()?;
        self.lost_bytes = self.lost_bytes.max(Some(set.whole_bytes()));
        Some(gap)
    }

    /// Whether a chunk begins a set: there is none of its step, or that has ended and the chunk is no repeat.
    pub(super) fn begins(&self, step: StepId, chunk: Chunk, bytes: &[u8]) -> bool {
        match &self.set {
            Some(set) if set.step == step => set.is_ended() && set.is_followed_by(chunk, bytes),
            Some(_) | None => true,
        }
    }

    /// Lets the set go on that has ended, if a chunk continues it. Returns whether it does.
    pub(super) fn goes_on(&mut self, step: StepId, chunk: Chunk, output_bytes: u64) -> bool {
        let Some(set) = &mut self.set else { return false };
        let goes_on = set.step == step && set.goes_on_with(chunk, output_bytes);
        if goes_on {
            set.go_on();
        }
        goes_on
    }

    /// Notes that a chunk of the set was refused. The bytes that are held stay.
    pub(super) fn refuse(&mut self, chunk: Chunk) {
        let Some(set) = &mut self.set else { return };
        set.is_refused = true;
        let said = chunk.total.unwrap_or(chunk.end);
        self.lost_bytes = self.lost_bytes.max(Some(set.whole_bytes().max(said)));
    }
}
