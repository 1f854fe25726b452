//! When failed work is sent again: at most three times, after 1, 2 and 4 s (MSG-5).
//!
//! Senders that failed together would also come again together, and the agent that fell over under them would fall over
//! once more. Jitter spreads them. The usual way, any time between nothing and the full delay, is not open here: the
//! contract's delays are minimums, so jitter is added on top. Its share of the delay is bounded, so that a caller
//! can say beforehand how long all attempts may take.
//!
//! Chance comes in as an argument, because this crate has none.

use core::time::Duration;

/// How often it is sent again.
pub const RETRIES_MAX: u32 = 3;

/// How often it is sent in all.
pub const ATTEMPTS_MAX: u32 = RETRIES_MAX + 1;

/// The largest part of a delay that jitter adds to it: 1, 2 and 4 s become at most 1.5, 3 and 6 s.
pub const JITTER_SHARE_MAX: f64 = 0.5;

/// How much of the jitter there may be is used, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Jitter(f64);

impl Jitter {
    /// Delays as they stand in the contract.
    pub const NONE: Jitter = Jitter(0.0);

    /// Takes any float: below 0 and NaN count as 0, above 1 as 1. A broken source of chance must not stop retries.
    pub fn new(fraction: f64) -> Jitter {
        if fraction.is_nan() { Jitter::NONE } else { Jitter(fraction.clamp(0.0, 1.0)) }
    }
}

/// How long to wait before an attempt. `None` says that there is no such attempt.
///
/// Attempts count from 1, as in the document, and the first goes out at once.
pub fn delay_before(attempt: u32, jitter: Jitter) -> Option<Duration> {
    let least = match attempt {
        1 => Duration::ZERO,
        2..=ATTEMPTS_MAX => Duration::from_secs(1 << (attempt - 2)),
        _ => return None,
    };
    Some(least + least.mul_f64(JITTER_SHARE_MAX * jitter.0))
}
