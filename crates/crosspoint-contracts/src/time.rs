//! Points in time as the machine and the store know them: whole microseconds of UTC.
//!
//! One integer can be compared, stored and added to without a calendar, and adding saturates instead of overflowing: a
//! limit of a million years ends at the end of time, and not in a panic.

use core::time::Duration;
use std::fmt;

/// Microseconds since 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(pub i64);

impl Time {
    /// A time that never comes: later than all others.
    pub const NEVER: Time = Time(i64::MAX);

    /// Returns the time that is this much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the time that is this much earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns how long after `earlier` this time is; zero if it is not after it.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }

    /// Returns the time moved by a jump of the clock, in microseconds. [`Time::NEVER`] stays as it is.
    #[must_use]
    pub fn shifted(self, micros: i64) -> Time {
        if self == Time::NEVER { self } else { Time(self.0.saturating_add(micros)) }
    }
}

/// Writes RFC 3339 with milliseconds and `Z`, as in every answer.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(timestamp) => write!(f, "{timestamp:.3}"),
            Err(_) => f.write_str("9999-12-30T22:00:00.000Z"),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
