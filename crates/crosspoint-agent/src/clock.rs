//! The time.

use crosspoint_contracts::time::Time;

/// Returns the time by the system's clock.
pub(crate) fn now() -> Time {
    Time(jiff::Timestamp::now().as_microsecond())
}
