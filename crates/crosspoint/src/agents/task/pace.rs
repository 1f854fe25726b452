//! When to ask again how a task stands.
//!
//! At once and soon at first, because most tasks are short; then less and less often, because the others are long. An agent that answers
//! only when the task has ended, or when the wait is over (TASK-4), keeps the pace itself: what a poll took counts as rest.

use std::time::Duration;

/// The shortest pause: short beside any work worth handing over, long beside what a poll costs.
const FIRST: Duration = Duration::from_millis(100);

/// Progress, a question and the end are at most so much older than they look.
const LAST: Duration = Duration::from_secs(2);

/// While a person thinks, the agent is only asked whether it still waits.
const LAST_ASKING: Duration = Duration::from_secs(10);

/// The longest wait that a poll asks for, in whole seconds: an agent that tells of nothing but the end until then tells of progress
/// as often as one that does not wait at all.
pub(super) const WAIT_MAX: Duration = LAST;

/// The pauses between polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    next: Duration,
    last: Duration,
}

impl Pace {
    /// While the agent works. The first look is at once: an agent that waits for the end answers when it is there.
    pub(super) fn working() -> Pace {
        Pace { next: Duration::ZERO, last: LAST }
    }

    /// While a person is asked.
    pub(super) fn asking() -> Pace {
        Pace { next: FIRST, last: LAST_ASKING }
    }

    /// Something has happened, so more may.
    pub(super) fn quicken(&mut self) {
        self.next = FIRST;
    }

    /// How long to rest after a poll that took so long.
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
