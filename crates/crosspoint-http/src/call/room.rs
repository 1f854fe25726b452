//! Room for the answers of agents that are being read, shared by all agents.
//!
//! An answer is in memory until it is whole. Each has its own limit, but there are as many as there are jobs under way.
//! So beyond its beginning an answer takes room, and waits if there is none: nothing more is read, and the agent cannot
//! send more than the network holds. The job's clocks go on meanwhile.
//!
//! Answers that all have a part of the room and wait for more would wait for each other. So one of them may go on
//! without room, until it is read; then the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of each answer that take no room. Nearly all answers are shorter.
const FREE_BYTES: usize = 256 << 10;

/// The room for answers; cloning shares it.
#[derive(Clone)]
pub struct AnswerRoom(Arc<Inner>);

struct Inner {
    bytes: Arc<Semaphore>,
    /// The right to go on without room.
    exempt: Arc<Semaphore>,
    waits: AtomicU64,
}

/// The room of one answer, until this value is dropped.
pub(super) struct Taken {
    room: AnswerRoom,
    /// Bytes of the answer that are in memory.
    held: usize,
    bytes: Option<OwnedSemaphorePermit>,
    exempt: Option<OwnedSemaphorePermit>,
    /// Whether it is counted that this answer waits.
    waits: bool,
}

impl AnswerRoom {
    /// Makes room for this many bytes.
    pub fn new(bytes_max: usize) -> AnswerRoom {
        AnswerRoom(Arc::new(Inner {
            bytes: Arc::new(Semaphore::new(bytes_max.min(Semaphore::MAX_PERMITS))),
            exempt: Arc::new(Semaphore::new(1)),
            waits: AtomicU64::new(0),
        }))
    }

    /// Returns how many answers had to wait.
    pub fn waits(&self) -> u64 {
        self.0.waits.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) -> Taken {
        Taken { room: self.clone(), held: 0, bytes: None, exempt: None, waits: false }
    }
}

impl Taken {
    /// Says that this many more bytes are in memory.
    pub(super) fn add(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// Says how many bytes are in memory, and gives back what is not needed for them.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.held = bytes;
        let needed = self.needed();
        if needed == 0 {
            (self.bytes, self.exempt) = (None, None);
        } else if let Some(taken) = &mut self.bytes {
            drop(taken.split(taken.num_permits().saturating_sub(needed)));
        }
    }

    /// Completes when there is room for everything that is in memory. The future may be dropped.
    pub(super) async fn settle(&mut self) {
        let taken = self.bytes.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = self.needed().saturating_sub(taken);
        if wanted == 0 || self.exempt.is_some() {
            return;
        }
        let Inner { bytes, exempt, waits } = &*self.room.0;
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        if let Ok(more) = bytes.clone().try_acquire_many_owned(wanted) {
            return self.take(more);
        }
        if !std::mem::replace(&mut self.waits, true) {
            waits.fetch_add(1, Ordering::Relaxed);
        }
        // The semaphores are never closed.
        tokio::select! {
            biased;
            Ok(more) = bytes.clone().acquire_many_owned(wanted) => self.take(more),
            Ok(right) = exempt.clone().acquire_owned() => self.exempt = Some(right),
            else => {}
        }
        self.waits = false;
    }

    fn take(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.bytes {
            Some(taken) => taken.merge(more),
            None => self.bytes = Some(more),
        }
    }

    fn needed(&self) -> usize {
        self.held.saturating_sub(FREE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn reads(taken: &mut Taken, bytes: usize) -> bool {
        taken.add(bytes);
        taken.settle().now_or_never().is_some()
    }

    #[test]
    fn beyond_its_beginning_an_answer_waits_for_room_and_one_at_a_time_goes_on_without() {
        let room = AnswerRoom::new(1_000);
        let [mut first, mut second, mut third] = [room.begin(), room.begin(), room.begin()];
        assert!(reads(&mut first, FREE_BYTES) && reads(&mut second, FREE_BYTES) && reads(&mut third, FREE_BYTES));
        assert!(reads(&mut first, 1_000), "it has all of the room");
        assert!(reads(&mut second, 500) && reads(&mut second, 1 << 20), "it goes on without room");
        assert!(!reads(&mut third, 1) && !reads(&mut third, 0) && !reads(&mut first, 1));
        assert_eq!(room.waits(), 3);
        drop(second);
        assert!(reads(&mut third, 0), "it is the next to go on without");
        drop(third);
        assert!(reads(&mut first, 0));
        drop(first);
        assert_eq!(room.0.bytes.available_permits(), 1_000);
    }

    #[test]
    fn what_is_used_is_given_back_while_the_answer_goes_on() {
        let room = AnswerRoom::new(1_000);
        let mut taken = room.begin();
        for _ in 0..100 {
            assert!(reads(&mut taken, FREE_BYTES + 900));
            taken.keep(FREE_BYTES + 10);
            assert_eq!(room.0.bytes.available_permits(), 990);
            taken.keep(10);
            assert_eq!(room.0.bytes.available_permits(), 1_000);
        }
        assert_eq!(room.waits(), 0);
    }
}
