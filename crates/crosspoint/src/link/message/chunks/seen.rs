//! Which statuses were taken before.
//!
//! An agent repeats its last status at least every 10 s, as a sign of life (MSG-6.4), and sends a message again whose
//! acknowledgement it missed. What such a status printed must not be stored twice. A repeat is recognised in two ways:
//!
//! - the same `message_id` is the same message. The last few ids are kept, because an agent may send its next status
//!   before it repeats one that failed;
//! - a status that says what the last one said is that one again: the same state, progress, step and output. Agents
//!   give a repeat a new id and a new timestamp, so these do not count.
//!
//! The price: of an agent that prints the same line twice in a row, in the same step and with the same progress, the
//! line is stored once. The other decision is worse: the contract asks agents to repeat themselves, so it would store
//! the last line of every quiet agent six times a minute.
//!
//! Chunks that were taken are not looked for here: a chunk that comes again is compared with the bytes that are held. A
//! chunk that was refused is, so that its agent is not told again with every sign of life.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Most ids of messages that are kept.
const IDS_MAX: usize = 16;

/// The statuses that were taken, as far as they are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    last: Option<Last>,
    /// The ids of such messages, the last one at the end.
    ids: Vec<u128>,
}

/// The last status, if its repeat is to be recognised here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    fingerprint: u128,
    id: Option<u128>,
    /// Where its text ends in the output of the attempt. 0 if none of it goes there now.
    end: u64,
}

impl Seen {
    /// Whether a status with this fingerprint and this id of its message was seen before. The fingerprint of a long
    /// text takes time, and is made only if there is one to compare it with.
    pub(super) fn has(&self, fingerprint: impl FnOnce() -> Uuid, id: Option<Uuid>) -> bool {
        let is_known = id.is_some_and(|id| self.ids.contains(&id.as_u128()));
        is_known || self.last.as_ref().is_some_and(|last| last.fingerprint == fingerprint().as_u128())
    }

    /// Remembers a status whose text is about to be stored up to `end` of the output.
    pub(super) fn note(&mut self, fingerprint: Uuid, id: Option<Uuid>, end: u64) {
        let id = id.map(|id| id.as_u128());
        if self.ids.len() >= IDS_MAX {
            self.ids.remove(0);
        }
        self.ids.extend(id);
        self.last = Some(Last { fingerprint: fingerprint.as_u128(), id, end });
    }

    /// Notes that a status came of which nothing is stored here: the one before it is no longer the last.
    pub(super) fn pass(&mut self) {
        self.last = None;
    }

    /// Forgets the last status if its text never got into the output. It was not acknowledged, so it comes again.
    pub(super) fn settle(&mut self, output_bytes: u64) {
        if let Some(lost) = self.last.take_if(|last| last.end > output_bytes) {
            self.ids.retain(|id| Some(*id) != lost.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(seen: &Seen, fingerprint: Uuid, id: Option<Uuid>) -> bool {
        seen.has(|| fingerprint, id)
    }

    fn id(number: u128) -> Option<Uuid> {
        Some(Uuid::from_u128(number))
    }

    const PRINT: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    #[test]
    fn the_same_message_and_the_same_words_are_repeats_and_nothing_else_is() {
        let mut seen = Seen::default();
        assert!(!has(&seen, PRINT, id(7)) && !has(&seen, PRINT, None));
        seen.note(PRINT, id(7), 10);
        assert!(has(&seen, PRINT, id(8)), "agents give repeats new ids");
        assert!(has(&seen, PRINT, None) && has(&seen, OTHER, id(7)));
        assert!(!has(&seen, OTHER, id(8)) && !has(&seen, OTHER, None));
        seen.note(OTHER, id(8), 20);
        assert!(!has(&seen, PRINT, id(9)), "it was said before, but not last");
        assert!(has(&seen, PRINT, id(7)), "the message itself is still known");
        seen.pass();
        assert!(!has(&seen, OTHER, id(9)), "another status came in between");
    }

    #[test]
    fn a_status_that_was_never_stored_was_never_taken() {
        let mut seen = Seen::default();
        seen.note(PRINT, id(7), 10);
        seen.note(OTHER, id(8), 20);
        seen.settle(20);
        assert!(has(&seen, OTHER, id(8)));
        seen.settle(19);
        assert!(!has(&seen, OTHER, id(8)) && has(&seen, PRINT, id(7)));
    }

    #[test]
    fn as_many_ids_are_kept_as_are_allowed() {
        let mut seen = Seen::default();
        for number in 0..=IDS_MAX as u128 {
            seen.note(Uuid::from_u128(100 + number), id(number), 0);
        }
        assert!(!has(&seen, PRINT, id(0)) && has(&seen, PRINT, id(1)), "the oldest is forgotten");
        assert_eq!(seen.ids.len(), IDS_MAX);
    }
}
