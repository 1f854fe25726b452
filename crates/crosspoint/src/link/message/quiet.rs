//! How long an agent may say nothing about its work without being to blame.

use std::time::{Duration, Instant};

use super::outbox::{AGAIN_AFTER, Stage};

#[derive(Debug)]
pub(super) struct Quiet {
    /// Until when the request allows it (MSG-6.2).
    allowed_until: Option<Instant>,
    /// Until when a message that was given and not acknowledged may have been lost on its way.
    lost_until: Option<Instant>,
}

impl Quiet {
    /// An attempt begins, whose request allows so much silence.
    pub(super) fn new(began: Instant, allowed: Option<Duration>) -> Quiet {
        Quiet { allowed_until: allowed.and_then(|allowed| began.checked_add(allowed)), lost_until: None }
    }

    /// A message that waits to be pulled was given, or acknowledged. One that got lost comes again (MSG-14.2), which
    /// takes as long as an agent may be silent. So the first time does not count, and the next one does.
    pub(super) fn given(&mut self, stage: Stage, silence: Option<Duration>, now: Instant) {
        let again_after = silence.map_or(AGAIN_AFTER, |silence| silence.min(AGAIN_AFTER));
        self.lost_until = match stage {
            Stage::Waits | Stage::Acknowledged => None,
            Stage::Given => self.lost_until.or_else(|| now.checked_add(again_after)),
        };
    }

    /// The agent has said something about the work, so it has the message.
    pub(super) fn heard(&mut self) {
        self.lost_until = None;
    }

    /// Returns until when the request allows it; now if it does not.
    pub(super) fn allowed_until(&self, now: Instant) -> Instant {
        self.allowed_until.map_or(now, |until| until.max(now))
    }

    /// Whether silence says nothing about the agent at present.
    pub(super) fn is_fair(&self, now: Instant) -> bool {
        [self.allowed_until, self.lost_until].into_iter().flatten().any(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_message_that_was_lost_on_its_way_comes_again_before_the_agent_is_to_blame() {
        let now = Instant::now();
        let mut quiet = Quiet::new(now, None);
        assert!(!quiet.is_fair(now));
        quiet.given(Stage::Given, Some(SILENCE), now);
        let again = now + AGAIN_AFTER;
        assert!(quiet.is_fair(again - Duration::from_millis(1)));
        quiet.given(Stage::Given, Some(SILENCE), again);
        assert!(!quiet.is_fair(again), "from now on it has as long as any agent, and no longer");
    }

    #[test]
    fn an_agent_that_has_the_message_may_be_silent_for_as_long_as_any() {
        let now = Instant::now();
        let given = || {
            let mut quiet = Quiet::new(now, None);
            quiet.given(Stage::Given, Some(SILENCE), now);
            quiet
        };
        let (mut acknowledged, mut heard) = (given(), given());
        acknowledged.given(Stage::Acknowledged, Some(SILENCE), now);
        heard.heard();
        assert!(!acknowledged.is_fair(now) && !heard.is_fair(now));
    }

    #[test]
    fn what_the_request_allows_is_fair() {
        let now = Instant::now();
        let mut quiet = Quiet::new(now, Some(SILENCE));
        quiet.heard();
        assert!(quiet.is_fair(now + SILENCE / 2) && !quiet.is_fair(now + SILENCE));
    }
}
