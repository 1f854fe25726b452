//! One output that comes in chunks: what is held of it, and which bytes of it go into the output of the attempt next.
//!
//! Bytes of a set have places: a byte of the output at its own offset, and after the longest output that is taken, text
//! that the same step printed without a chunk while the set was open. Such text must wait. In the output of the attempt
//! the set is one stretch, so that an outcome can name it, and a line in the middle would be in the middle of the text.

use std::ops::Range;

use crosspoint_contracts::message::chunk::{BLOCK_BYTES_MAX, Chunk, Reassembler, Refusal};
use serde::{Deserialize, Serialize};

/// The step that a status belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepId {
    number: i64,
    /// A digest of the name, which is content.
    name: u128,
}

impl StepId {
    pub(super) fn new(number: i64, name: &str) -> StepId {
        StepId { number, name: super::digest(name.as_bytes()).as_u128() }
    }
}

/// One output that comes in chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub(super) struct Set {
    pub(super) step: StepId,
    /// Where the set begins in the output of the attempt.
    pub(super) base: u64,
    pub(super) held: Reassembler,
    /// Whether the step has ended, so that nothing is added.
    is_closed: bool,
    /// Whether the agent broke a rule, so that nobody can say what the output should be.
    pub(super) is_refused: bool,
    /// How much text waits for the end of the set, in bytes.
    waiting_bytes: u64,
}

impl Set {
    /// Begins a set where the output of the attempt ends. It may be as long as the output may become.
    pub(super) fn new(step: StepId, output_bytes: u64, bytes_max: u64) -> Set {
        let held = Reassembler::new(bytes_max.saturating_sub(output_bytes));
        Set { step, base: output_bytes, held, is_closed: false, is_refused: false, waiting_bytes: 0 }
    }

    /// Whether nothing is added to the set any more: it is complete, or its step has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.is_closed || self.held.is_complete()
    }

    /// Ends the set. Bytes that never came are a refusal, unless something was refused before and explains it.
    pub(super) fn close(&mut self) -> Option<Refusal> {
        self.is_closed = true;
        let gap = self.held.finish().err().filter(|_| !self.is_refused);
        self.is_refused |= gap.is_some();
        gap
    }

    /// Whether a chunk that comes after the end of the set begins another one. It does unless it repeats what is held,
    /// or contradicts that, or itself.
    pub(super) fn is_followed_by(&self, chunk: Chunk, bytes: &[u8]) -> bool {
        match self.held.clone().take(chunk, bytes) {
            Ok(plan) => !plan.store.is_empty(),
            Err(Refusal::WrongLength { .. }) => false,
            Err(
                Refusal::TotalChanged { .. }
                | Refusal::BeyondTotal { .. }
                | Refusal::Differs { .. }
                | Refusal::Gap { .. }
                | Refusal::OverLimit { .. }
                | Refusal::TooManyRanges,
            ) => true,
        }
    }

    /// Whether a chunk goes on where the set ended, though another step came in between: an agent that prints all the
    /// while also says how far it is. It can where the set came without a fault, its length was not given, and the
    /// output of the attempt, of which there are this many bytes, still ends with it.
    pub(super) fn goes_on_with(&self, chunk: Chunk, output_bytes: u64) -> bool {
        let is_end = self.faultless_bytes() == Some(chunk.start) && chunk.end > chunk.start;
        let is_last = self.waiting_bytes == 0 && self.output_bytes() == output_bytes;
        is_end && is_last && self.is_closed && self.held.total().is_none()
    }

    /// Lets the set grow again.
    pub(super) fn go_on(&mut self) {
        self.is_closed = false;
    }

    /// Whether this much text may wait for the end of the set. More than the output may have would only fill the disk.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        self.waiting_bytes.saturating_add(bytes) <= self.held.bytes_max()
    }

    /// Makes room for text that waits for the end of the set, and returns its place.
    pub(super) fn wait(&mut self, bytes: u64) -> u64 {
        let place = self.waiting().end;
        self.waiting_bytes += bytes;
        place
    }

    /// Returns the places of the next bytes that go into the output, of which there are this many. As long as the set
    /// may grow, only what is held from the beginning on goes in; at its end all that is held, gaps left out.
    pub(super) fn next(&self, output_bytes: u64) -> Option<Range<u64>> {
        let mut given = output_bytes.saturating_sub(self.base);
        let is_ended = self.is_ended();
        let prefix = 0..self.held.prefix_bytes();
        let growing = Some(prefix).filter(|_| !is_ended);
        let ended = self.held.ranges().chain([self.waiting()]).filter(|_| is_ended);
        for place in growing.into_iter().chain(ended) {
            let bytes = place.end - place.start;
            if given < bytes {
                let start = place.start + given;
                return Some(start..place.end.min(start + BLOCK_BYTES_MAX as u64));
            }
            given -= bytes;
        }
        None
    }

    /// Whether the output of the attempt may have this many bytes, as far as the set can tell. It may not if the file
    /// of the set, or the store, was damaged or exchanged.
    pub(super) fn fits(&self, output_bytes: u64) -> bool {
        let given = output_bytes.checked_sub(self.base);
        given.is_some_and(|given| self.is_ended() || given <= self.held.prefix_bytes())
    }

    /// Returns how long the output is or would be, in bytes, as far as the agent has said.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.held.total().unwrap_or(self.held.end())
    }

    /// Returns how long the output of the attempt will be when the set has ended, in bytes, as far as can be told.
    pub(super) fn output_bytes(&self) -> u64 {
        self.base.saturating_add(self.whole_bytes()).saturating_add(self.waiting_bytes)
    }

    /// Returns how long the output is if it came without a fault and is ended.
    pub(super) fn faultless_bytes(&self) -> Option<u64> {
        self.held.finish().ok().filter(|_| self.is_ended() && !self.is_refused)
    }

    fn waiting(&self) -> Range<u64> {
        let start = self.held.bytes_max();
        start..start + self.waiting_bytes
    }
}

/// A set as it is written down.
#[derive(Serialize, Deserialize)]
struct Written {
    step: StepId,
    base: u64,
    bytes_max: u64,
    total: Option<u64>,
    end: u64,
    held: Vec<(u64, u64)>,
    is_closed: bool,
    is_refused: bool,
    waiting_bytes: u64,
}

impl From<Set> for Written {
    fn from(set: Set) -> Written {
        Written {
            step: set.step,
            base: set.base,
            bytes_max: set.held.bytes_max(),
            total: set.held.total(),
            end: set.held.end(),
            held: set.held.ranges().map(|range| (range.start, range.end)).collect(),
            is_closed: set.is_closed,
            is_refused: set.is_refused,
            waiting_bytes: set.waiting_bytes,
        }
    }
}

impl TryFrom<Written> for Set {
    type Error = Refusal;

    fn try_from(written: Written) -> Result<Set, Refusal> {
        let Written { step, base, bytes_max, total, end, held: ranges, is_closed, is_refused, waiting_bytes } = written;
        let mut held = Reassembler::new(bytes_max);
        for (start, end) in ranges {
            held.recall(Chunk { start, end, total })?;
        }
        // An empty chunk holds nothing, and tells total and end.
        held.recall(Chunk { start: end, end, total })?;
        Ok(Set { step, base, held, is_closed, is_refused, waiting_bytes })
    }
}
