//! The messages that wait for an agent that pulls (MSG-14).
//!
//! A message that was given and not acknowledged comes again after 30 s: the answer to the poll may have been lost, or
//! the agent may have died with it. It is acknowledged by a later poll, or by any reply to its request.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_engine::id::JobId;
use tokio::sync::watch;
use uuid::Uuid;

/// After this time a message that was not acknowledged is given again.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Most bytes of messages in the answer to one poll. The message that exceeds this is the last of the answer.
const GIVEN_BYTES_MAX: usize = 8 << 20;

/// Most messages that cancel work which wait for one agent. It was away for long, and hears of no more.
const CANCELS_MAX: usize = 10_000;

/// How long an agent is told that work is cancelled.
const CANCEL_FOR: Duration = Duration::from_secs(600);

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The agent has not asked for it yet.
    Waits,
    /// The agent was given it.
    Given,
    /// The agent has it.
    Acknowledged,
}

// No Debug: what is in it never prints itself.
#[derive(Default)]
pub(super) struct Outbox {
    entries: Vec<Entry>,
}

struct Entry {
    job: JobId,
    message_id: Uuid,
    document: Bytes,
    given_at: Option<Instant>,
    kind: EntryKind,
}

enum EntryKind {
    /// Work. It stays until the attempt is over.
    Work { attempt: u32, stage: watch::Sender<Stage> },
    /// Work that is no longer wanted. It stays until it is acknowledged, or until this time.
    Cancel { until: Instant },
}

impl Outbox {
    /// Adds the work of an attempt, in place of what was there of it. Returns what becomes of it.
    pub(super) fn put(
        &mut self,
        job: JobId,
        attempt: u32,
        (message_id, document): (Uuid, Bytes),
    ) -> watch::Receiver<Stage> {
        self.remove(job, attempt);
        let (stage, seen) = watch::channel(Stage::Waits);
        self.entries.push(Entry {
            job,
            message_id,
            document,
            given_at: None,
            kind: EntryKind::Work { attempt, stage },
        });
        seen
    }

    /// Removes the work of an attempt that is over.
    pub(super) fn remove(&mut self, job: JobId, attempt: u32) {
        let is_it = |entry: &Entry| matches!(entry.kind, EntryKind::Work { attempt: of, .. } if of == attempt);
        self.entries.retain(|entry| entry.job != job || !is_it(entry));
    }

    /// Adds a message that work is no longer wanted. Returns whether there was room.
    pub(super) fn cancel(&mut self, job: JobId, (message_id, document): (Uuid, Bytes), now: Instant) -> bool {
        let cancels = self.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Cancel { .. }));
        if cancels.count() >= CANCELS_MAX {
            return false;
        }
        let kind = EntryKind::Cancel { until: now + CANCEL_FOR };
        self.entries.push(Entry { job, message_id, document, given_at: None, kind });
        true
    }

    /// Returns the messages for a poll, the oldest first.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Vec<Bytes> {
        self.entries.retain(|entry| !matches!(entry.kind, EntryKind::Cancel { until } if until <= now));
        let mut given = Vec::new();
        let mut bytes = 0;
        for entry in self.entries.iter_mut().filter(|entry| entry.is_due(now)) {
            if given.len() >= max || bytes >= GIVEN_BYTES_MAX {
                break;
            }
            bytes += entry.document.len();
            given.push(entry.document.clone());
            entry.given_at = Some(now);
            entry.advance(Stage::Given);
        }
        given
    }

    /// Returns when a message is due that is not due now.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let due = self.entries.iter().filter(|entry| !entry.is_acknowledged() && !entry.is_due(now));
        due.filter_map(|entry| Some(entry.given_at? + AGAIN_AFTER)).min()
    }

    /// Notes which messages the agent has: by the id of the message, or by that of the request or task, which is the
    /// job's.
    pub(super) fn acknowledge(&mut self, ids: &[Uuid]) {
        let ids: BTreeSet<Uuid> = ids.iter().copied().collect();
        let is_meant = |entry: &Entry| {
            entry.given_at.is_some() && (ids.contains(&entry.message_id) || ids.contains(&entry.job.uuid()))
        };
        self.entries.retain(|entry| {
            let is_meant = is_meant(entry);
            if is_meant {
                entry.advance(Stage::Acknowledged);
            }
            !is_meant || matches!(entry.kind, EntryKind::Work { .. })
        });
    }

    /// Returns how much work the agent was given that is not over.
    pub(super) fn held(&self) -> u32 {
        let held = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.kind, EntryKind::Work { .. }) && entry.given_at.is_some());
        u32::try_from(held.count()).unwrap_or(u32::MAX)
    }
}

impl Entry {
    fn is_acknowledged(&self) -> bool {
        matches!(&self.kind, EntryKind::Work { stage, .. } if *stage.borrow() == Stage::Acknowledged)
    }

    fn is_due(&self, now: Instant) -> bool {
        !self.is_acknowledged() && self.given_at.is_none_or(|at| now.duration_since(at) >= AGAIN_AFTER)
    }

    fn advance(&self, to: Stage) {
        if let EntryKind::Work { stage, .. } = &self.kind {
            stage.send_if_modified(|stage| {
                let advances = *stage < to;
                *stage = (*stage).max(to);
                advances
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::time::Time;
    use crosspoint_engine::id::Seq;

    use super::*;

    fn job(number: u64) -> JobId {
        JobId::new(Seq(number), Time(1), 3)
    }

    fn message(text: &'static str) -> (Uuid, Bytes) {
        (Uuid::new_v4(), Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn what_is_not_acknowledged_comes_again_after_30_s() {
        let start = Instant::now();
        let mut outbox = Outbox::default();
        let stage = outbox.put(job(1), 1, message("work"));
        assert_eq!((*stage.borrow(), outbox.held()), (Stage::Waits, 0));
        assert_eq!(outbox.take(9, start), ["work"]);
        assert_eq!((*stage.borrow(), outbox.held()), (Stage::Given, 1));
        assert!(outbox.take(9, start + AGAIN_AFTER - Duration::from_millis(1)).is_empty());
        assert_eq!(outbox.next_due(start), Some(start + AGAIN_AFTER));
        assert_eq!(outbox.take(9, start + AGAIN_AFTER), ["work"]);
        outbox.acknowledge(&[job(1).uuid()]);
        assert_eq!((*stage.borrow(), outbox.next_due(start)), (Stage::Acknowledged, None));
        assert!(outbox.take(9, start + 10 * AGAIN_AFTER).is_empty());
        outbox.remove(job(1), 1);
        assert_eq!(outbox.held(), 0);
    }

    #[test]
    fn a_poll_gets_no_more_than_it_takes_and_acknowledges_by_message_id() {
        let now = Instant::now();
        let mut outbox = Outbox::default();
        let (id, document) = message("first");
        let first = outbox.put(job(1), 1, (id, document));
        outbox.put(job(2), 1, message("second"));
        outbox.acknowledge(&[id]);
        assert_eq!(*first.borrow(), Stage::Waits, "what was never given cannot be acknowledged");
        assert_eq!(outbox.take(1, now), ["first"]);
        outbox.acknowledge(&[id]);
        assert_eq!(*first.borrow(), Stage::Acknowledged);
        assert_eq!(outbox.take(1, now), ["second"]);
    }

    #[test]
    fn a_cancellation_stays_until_it_is_acknowledged_or_too_old() {
        let now = Instant::now();
        let mut outbox = Outbox::default();
        assert!(outbox.cancel(job(1), message("stop"), now) && outbox.cancel(job(2), message("stop two"), now));
        assert_eq!(outbox.take(9, now).len(), 2);
        outbox.acknowledge(&[job(1).uuid()]);
        assert_eq!(outbox.take(9, now + AGAIN_AFTER), ["stop two"]);
        assert!(outbox.take(9, now + CANCEL_FOR).is_empty());
    }
}
