//! The rulings, written down a second time and in another way than the engine has them: tables and plain arithmetic on
//! microseconds of a clock that never jumps.

use crosspoint_contracts::failure::Failure;
use crosspoint_engine::core::Spec;
use crosspoint_engine::job::Limits;
use crosspoint_engine::policy::{Backoff, Recovery, Repeats, Schedule};

/// A reason to fail, or none.
pub(crate) type Verdict = Result<(), String>;

/// Fails unless something holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}
pub(crate) use ensure;

/// MSG-7, in microseconds.
pub(crate) const OPEN_MICROS: i64 = 60_000_000;
pub(crate) const BAD_MARKS: u32 = 5;

/// So long an agent that joined has to say what it has, in microseconds.
pub(crate) const LEASE_MICROS: i64 = 15_000_000;

/// What is known of an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    NeverBegan,
    MayHaveBegun,
    /// It may have begun, and surely goes on no more.
    Died,
}

/// Whether another attempt may be made after this one (ALL-3, MSG-5, TASK-7).
pub(crate) fn may_repeat(failure: Failure, reason: Reason, limits: &Limits, spec: &Spec) -> bool {
    let retried = [Failure::Timeout, Failure::Unavailable, Failure::ResourceLimit].contains(&failure);
    let wanted = limits.retry.is_some() || spec.policy.repeats == Repeats::Always;
    let dead = [Recovery::Rerun, Recovery::Resume].contains(&spec.policy.recovery);
    retried && (wanted || reason == Reason::NeverBegan || (reason == Reason::Died && dead))
}

/// The shortest pause before the repeat of this number, counted from 1; `None` if there is no such repeat.
pub(crate) fn pause_micros(schedule: &Schedule, repeat: u32) -> Option<i64> {
    if repeat + 1 > schedule.attempts_max || repeat + 1 > 10 {
        return None;
    }
    let first = i64::try_from(schedule.first.as_micros()).ok()?;
    let times = match schedule.backoff {
        Backoff::Exponential => [1, 2, 4, 8, 16, 32, 64, 128, 256][repeat as usize - 1],
        Backoff::Linear => i64::from(repeat),
        Backoff::Fixed => 1,
    };
    Some((first * times).min(3_600_000_000))
}

pub(crate) fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

/// What a breaker should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fuse {
    /// With so many bad marks in a row.
    Closed(u32),
    /// Until then; for good if an operator did it.
    Open(Option<i64>),
    Checking,
}

impl Fuse {
    pub(crate) fn marked(self, bad: bool, now: i64) -> Fuse {
        match (self, bad) {
            (Fuse::Closed(_), false) => Fuse::Closed(0),
            (Fuse::Closed(marks), true) if marks + 1 < BAD_MARKS => Fuse::Closed(marks + 1),
            (Fuse::Closed(_) | Fuse::Checking, true) => Fuse::Open(Some(now + OPEN_MICROS)),
            (Fuse::Checking, false) | (Fuse::Open(_), _) => self,
        }
    }

    pub(crate) fn checked(self, well: bool, now: i64) -> Fuse {
        match (self, well) {
            (Fuse::Checking, true) => Fuse::Closed(0),
            (Fuse::Checking, false) => Fuse::Open(Some(now + OPEN_MICROS)),
            (Fuse::Closed(_) | Fuse::Open(_), _) => self,
        }
    }
}
