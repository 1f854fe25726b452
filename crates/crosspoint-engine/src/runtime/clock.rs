//! The time that the core is told.
//!
//! It is the system time, carried on by the clock that never jumps. If the system time is set, or the machine slept,
//! the two drift apart. Then the time is corrected, and the core is told by how much, so that pauses and silences stay
//! as long as they were meant. Without this, setting a server's clock would end everything that it does as timed out.

use std::time::{Duration, Instant};

use crosspoint_contracts::time::Time;

/// Largest difference between the two clocks that does not count as a jump.
const DRIFT_MAX: Duration = Duration::from_secs(2);

pub(super) struct Clock {
    wall: Time,
    at: Instant,
}

/// What a look at the clock shows.
pub(super) struct Look {
    pub(super) now: Time,
    /// By how many microseconds the clock jumped since the last look.
    pub(super) jump_micros: Option<i64>,
}

impl Clock {
    pub(super) fn new() -> Clock {
        Clock { wall: crate::wall_clock::now(), at: Instant::now() }
    }

    /// Returns the time as of the last look, carried on. For code that must not notice a jump in place of the code that
    /// acts on it.
    pub(super) fn now(&self) -> Time {
        self.wall.plus(self.at.elapsed())
    }

    pub(super) fn look(&mut self) -> Look {
        self.look_at(crate::wall_clock::now(), Instant::now())
    }

    fn look_at(&mut self, wall: Time, at: Instant) -> Look {
        let ours = self.wall.plus(at.duration_since(self.at));
        let jump_micros = wall.0.saturating_sub(ours.0);
        if jump_micros.unsigned_abs() < DRIFT_MAX.as_micros().try_into().unwrap_or(u64::MAX) {
            return Look { now: ours, jump_micros: None };
        }
        *self = Clock { wall, at };
        Look { now: wall, jump_micros: Some(jump_micros) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_the_wall_is_told_once_and_small_differences_are_not() {
        let start = Instant::now();
        let mut clock = Clock { wall: Time(0), at: start };
        let second = Duration::from_secs(1);
        let look = clock.look_at(Time(1_500_000), start + second);
        assert_eq!((look.now, look.jump_micros), (Time(1_000_000), None));
        let look = clock.look_at(Time(3_602_000_000), start + second * 2);
        assert_eq!((look.now, look.jump_micros), (Time(3_602_000_000), Some(3_600_000_000)));
        let look = clock.look_at(Time(3_603_000_000), start + second * 3);
        assert_eq!((look.now, look.jump_micros), (Time(3_603_000_000), None));
        let back = clock.look_at(Time(4_000_000), start + second * 4);
        assert_eq!((back.now, back.jump_micros), (Time(4_000_000), Some(-3_600_000_000)));
    }
}
