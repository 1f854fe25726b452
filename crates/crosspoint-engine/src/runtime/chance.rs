//! The random part of ids.
//!
//! Real randomness is used once, at the start. After that a generator is used, because a system call for every job
//! would cost more than the rest of its id.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// A source of numbers that cannot be guessed from outside.
pub(super) struct Chance(AtomicU64);

impl Chance {
    pub(super) fn new() -> Chance {
        Chance(AtomicU64::new(Uuid::new_v4().as_u128() as u64))
    }

    /// Returns a number that differs every time.
    pub(super) fn next(&self) -> u64 {
        let seed = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
