//! What an agent's operator has settled: clocks, repeats, limits.
//!
//! The schedule of repeats is that of the message contract (MSG-5) for every agent, because it is the only one that the
//! contracts name; a request may bring its own (TASK-7), within [`ATTEMPTS_MAX`] and [`DELAY_MAX`].

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::retry;

/// More attempts than this are not made, whatever a request asks for: somebody pays for each.
pub const ATTEMPTS_MAX: u32 = 10;

/// No pause between attempts is longer, jitter apart.
pub const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// How long a job may take in all where nobody says (ALL-4).
pub const TOTAL_DEFAULT: Duration = Duration::from_secs(3_600);

/// How much output a job may give where nobody says, and what nobody may exceed, in bytes: 64 MiB and 4 GiB.
pub const OUTPUT_BYTES_DEFAULT: u64 = 64 << 20;
/// See [`OUTPUT_BYTES_DEFAULT`].
pub const OUTPUT_BYTES_MAX: u64 = 4 << 30;

/// How much a link may remember of an attempt, in bytes: it is written with the job's row each time that the row changes.
pub const MEMORY_BYTES_MAX: usize = 64 << 10;

/// How long an attempt that is taken up has at least, where nobody says: long enough for its agent to be asked once.
pub const TAKE_UP_DEFAULT: Duration = Duration::from_secs(30);

/// After so many attempts in a row that were cut short by our own unclean end, the work of built-in agents and programs is not begun
/// again (ALL-13).
pub const CUT_SHORT_MAX: u32 = 3;

/// What holds for the attempts that one agent makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long the agent may be silent (ALL-4); `None` lets it.
    pub silence: Option<Duration>,
    /// How long a job may take in all, from its first attempt; waiting for people does not count.
    pub total: Duration,
    /// Whether work that may have begun may begin again.
    pub repeats: Repeats,
    /// What becomes of an attempt that our own end cut short.
    pub recovery: Recovery,
    /// An attempt that is taken up after an end of ours is not given up before so long: its agent is asked once (ALL-3).
    pub take_up: Duration,
    /// After so many attempts in a row that our unclean end cut short the work is not begun again; `None` begins it always.
    pub cut_short_max: Option<u32>,
    /// When a failed attempt is repeated.
    pub schedule: Schedule,
    /// How much output a job may give.
    pub output_bytes_max: u64,
}

/// Whether work that may have begun may begin again (ALL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The agent never does the same request twice, or the operator says that it does no harm.
    Always,
    /// Only if the work surely never began.
    BeforeStart,
}

/// What becomes, at the next start, of an attempt that our own end cut short (ALL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// It died with us, or the agent knows the request id: it is dispatched again.
    Rerun,
    /// The agent goes on without us: the attempt is taken up where it is.
    Resume,
    /// The same; but what dies with the agent is not begun again.
    ResumeOnce,
    /// Nobody can know what it did: the job fails as unavailable.
    Fail,
}

/// How often an attempt is made, and how long to wait in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// In all, the first included.
    pub attempts_max: u32,
    /// How the pauses grow.
    pub backoff: Backoff,
    /// The pause before the second attempt.
    pub first: Duration,
}

/// How pauses grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Each is twice the last.
    Exponential,
    /// Each is the first longer than the last.
    Linear,
    /// All are the same.
    Fixed,
}

impl Policy {
    /// What holds where nobody has settled anything.
    pub const DEFAULT: Policy = Policy {
        silence: None,
        total: TOTAL_DEFAULT,
        repeats: Repeats::BeforeStart,
        recovery: Recovery::Rerun,
        take_up: TAKE_UP_DEFAULT,
        cut_short_max: None,
        schedule: Schedule::DEFAULT,
        output_bytes_max: OUTPUT_BYTES_DEFAULT,
    };
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::DEFAULT
    }
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule::DEFAULT
    }
}

impl Schedule {
    /// MSG-5: four attempts, 1, 2 and 4 s apart.
    pub const DEFAULT: Schedule =
        Schedule { attempts_max: retry::ATTEMPTS_MAX, backoff: Backoff::Exponential, first: Duration::from_secs(1) };

    /// How long to wait before an attempt, counted from 1; `None` says that there is no such attempt.
    ///
    /// `chance` is from 0 to 1 and lengthens the pause by at most half, never shortens it.
    pub fn delay_before(&self, attempt: u32, chance: f64) -> Option<Duration> {
        if attempt > self.attempts_max.min(ATTEMPTS_MAX) {
            return None;
        }
        let Some(pauses_before) = attempt.checked_sub(2) else { return Some(Duration::ZERO) };
        let least = match self.backoff {
            Backoff::Exponential => self.first.saturating_mul(1 << pauses_before.min(31)),
            Backoff::Linear => self.first.saturating_mul(pauses_before + 1),
            Backoff::Fixed => self.first,
        };
        let least = least.min(DELAY_MAX);
        let chance = if chance.is_nan() { 0.0 } else { chance.clamp(0.0, 1.0) };
        Some(least + least.mul_f64(retry::JITTER_SHARE_MAX * chance))
    }
}

impl Recovery {
    /// Whether work that died with whoever did it is begun again: it goes on nowhere, but it may have begun.
    pub fn begins_the_dead_again(self) -> bool {
        match self {
            Recovery::Rerun | Recovery::Resume => true,
            Recovery::ResumeOnce | Recovery::Fail => false,
        }
    }
}

impl Repeats {
    /// Whether the engine may try again after this (ALL-3, MSG-5).
    pub fn allow(self, failure: Failure, dispatched: Dispatched) -> bool {
        failure.is_retried() && (self == Repeats::Always || dispatched == Dispatched::No)
    }
}
