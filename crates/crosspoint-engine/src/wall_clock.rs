//! The clock of the system. Only code at the edge may look at it: everything that decides is told the time.

use crosspoint_contracts::time::Time;

/// Returns the time of the system clock.
pub fn now() -> Time {
    Time(jiff::Timestamp::now().as_microsecond())
}
