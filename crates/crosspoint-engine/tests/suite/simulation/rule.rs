//! The rulings, written down a second time and in another way than the engine has them: tables and plain arithmetic on
//! microseconds of a clock that never jumps.

use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::request::{Backoff, Limits, Schedule};
use crosspoint_engine::core::Spec;
use crosspoint_engine::policy::{Recovery, Repeats};

/// Why the run fails, if it does.
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

/// How long an open breaker stays open (MSG-7), in microseconds.
pub(crate) const OPEN_MICROS: i64 = 60_000_000;
pub(crate) const BAD_MARKS: u32 = 5;

/// Longest time that an agent that joined has to say what it holds, in microseconds.
pub(crate) const LEASE_MICROS: i64 = 15_000_000;

/// What an agent that failed says of the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It would be in vain.
    Never,
    /// Not before this many microseconds, of which a day counts.
    After(i64),
}

impl Wish {
    pub(crate) fn of(failed: &Failed) -> Wish {
        match failed.repeat {
            Some(Repeat::Never) => Wish::Never,
            Some(Repeat::Safe | Repeat::Unknown) | None => {
                Wish::After((i64::from(failed.retry_after_seconds) * 1_000_000).min(86_400_000_000))
            }
        }
    }
}

/// What is known of how an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    NeverBegan,
    MayHaveBegun,
    /// It may have begun, and certainly does not go on.
    Died,
}

/// Whether another attempt may be made after this one (ALL-3, MSG-5, TASK-7).
pub(crate) fn may_repeat(failure: Failure, reason: Reason, limits: &Limits, spec: &Spec) -> bool {
    let retried = [Failure::Timeout, Failure::Unavailable, Failure::ResourceLimit].contains(&failure);
    let wanted = limits.retry.is_some() || spec.policy.repeats != Repeats::BeforeStart;
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

/// The time of all attempts that a request allows, with the longest pauses between them.
pub(crate) fn attempts_micros(limit: std::time::Duration, schedule: &Schedule) -> i64 {
    let pauses = (1..).map_while(|repeat| pause_micros(schedule, repeat));
    pauses.fold(micros(limit), |all, pause| all + pause + pause / 2 + micros(limit))
}

pub(crate) fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

/// The state that a breaker should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fuse {
    /// Closed, with this number of bad marks in a row.
    Closed(u32),
    /// Open until this time; with `None`, until the operator that opened it closes it.
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
