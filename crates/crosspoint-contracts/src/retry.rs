//! When failed work is sent again: at most three times, after 1, 2 and 4 s (MSG-5).
//!
//! Senders that failed together would also retry together, and the agent that failed under their load would fail once
//! more. Jitter spreads them. The usual jitter, any time between zero and the full delay, is not possible here: the
//! contract's delays are minimums, so jitter is added on top. Its share of the delay is bounded, so that a caller can
//! say beforehand how long all attempts may take.
//!
//! Randomness comes in as an argument, because this crate has no source of it.

use core::time::Duration;

/// Most times that work is sent again.
pub const RETRIES_MAX: u32 = 3;

/// Most times that work is sent in all.
pub const ATTEMPTS_MAX: u32 = RETRIES_MAX + 1;

/// Largest part of a delay that jitter adds to it: 1, 2 and 4 s become at most 1.5, 3 and 6 s.
pub const JITTER_SHARE_MAX: f64 = 0.5;

/// How much of the possible jitter is used, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Jitter(f64);

impl Jitter {
    /// No jitter: the delays of the contract as they are.
    pub const NONE: Jitter = Jitter(0.0);

    /// Takes any float: values below 0 and NaN count as 0, values above 1 as 1. A broken random source must not stop
    /// retries.
    pub fn new(fraction: f64) -> Jitter {
        if fraction.is_nan() { Jitter::NONE } else { Jitter(fraction.clamp(0.0, 1.0)) }
    }
}

/// Returns how long to wait before an attempt, or `None` if there is no such attempt.
///
/// Attempts count from 1, as in the contract's document, and the first is sent at once.
pub fn delay_before(attempt: u32, jitter: Jitter) -> Option<Duration> {
    let least = match attempt {
        1 => Duration::ZERO,
        2..=ATTEMPTS_MAX => Duration::from_secs(1 << (attempt - 2)),
        _ => return None,
    };
    Some(least + least.mul_f64(JITTER_SHARE_MAX * jitter.0))
}
