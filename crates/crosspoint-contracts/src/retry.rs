//! When failed work is sent again: at most three times, after 1, 2 and 4 s (MSG-5).
//!
//! Senders that failed together would also retry together, and the agent that failed under their load would fail once
//! more. Jitter spreads them. The usual jitter, any time between zero and the full delay, is not possible here: the
//! contract's delays are minimums, so jitter is added on top. Its share of the delay is bounded, so that a caller can
//! say beforehand how long all attempts may take.
//!
//! [`Schedule`](crate::request::Schedule) applies these numbers.

/// Most times that work is sent again.
pub const RETRIES_MAX: u32 = 3;

/// Most times that work is sent in all.
pub const ATTEMPTS_MAX: u32 = RETRIES_MAX + 1;

/// Largest part of a delay that jitter adds to it: 1, 2 and 4 s become at most 1.5, 3 and 6 s.
pub const JITTER_SHARE_MAX: f64 = 0.5;
