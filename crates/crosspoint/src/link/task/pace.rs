//! When to poll a task again.
//!
//! The first poll is at once and the next follow soon, because most tasks are short. Then polls come less and less
//! often, because the remaining tasks are long. An agent that answers only when the task has ended, or when the wait is
//! over (TASK-4), keeps the pace itself: the time that a poll took counts as rest.

use std::time::Duration;

/// The shortest pause: short beside any work worth handing over, long beside what a poll costs.
const FIRST: Duration = Duration::from_millis(100);

/// The longest pause while the agent works. Progress, a question and the end are noticed at most this much late.
const LAST: Duration = Duration::from_secs(2);

/// The longest pause while a person thinks: the agent is only asked whether it still waits.
const LAST_ASKING: Duration = Duration::from_secs(10);

/// The longest wait that a poll asks for, in whole seconds. An agent that reports nothing but the end until then
/// reports progress as often as one that does not wait at all.
pub(super) const WAIT_MAX: Duration = LAST;

/// The pauses between polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    next: Duration,
    last: Duration,
}

impl Pace {
    /// The pace while the agent works. The first poll is at once: an agent that waits for the end answers when it is
    /// there.
    pub(super) fn working() -> Pace {
        Pace { next: Duration::ZERO, last: LAST }
    }

    /// The pace while a person is asked.
    pub(super) fn asking() -> Pace {
        Pace { next: FIRST, last: LAST_ASKING }
    }

    /// Shortens the next pause: something has happened, so more may.
    pub(super) fn quicken(&mut self) {
        self.next = FIRST;
    }

    /// Returns how long to rest after a poll that took this long.
    pub(super) fn rest(&mut self, took: Duration) -> Duration {
        let rest = self.next.saturating_sub(took);
        self.next = (self.next * 2).clamp(FIRST, self.last);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rests(pace: &mut Pace, took: Duration) -> Vec<u128> {
        (0..8).map(|_| pace.rest(took).as_millis()).collect()
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_begin_anew_when_something_happens() {
        let mut pace = Pace::working();
        assert_eq!(rests(&mut pace, Duration::ZERO), [0, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        pace.quicken();
        assert_eq!(pace.rest(Duration::from_millis(30)), Duration::from_millis(70));
        assert_eq!(rests(&mut Pace::asking(), Duration::ZERO)[6..], [6_400, 10_000]);
    }

    #[test]
    fn an_agent_that_waits_itself_is_asked_again_at_once() {
        assert_eq!(rests(&mut Pace::working(), WAIT_MAX), [0; 8]);
        assert_eq!(rests(&mut Pace::asking(), WAIT_MAX)[7], 8_000, "but not while a person thinks");
    }
}
