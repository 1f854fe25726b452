//! Whether an agent of the message contract is there: decided from what was heard of it and when (MSG-12).
//!
//! A pushed agent gets work as long as nothing says that it is away. An agent that pulls gets work while it polls:
//! otherwise its messages would lie here and look like work that it does not begin. An agent that has sent a heartbeat
//! and then says nothing for 90 s is gone, and so is the work that it had.

use std::time::{Duration, Instant};

use crosspoint_contracts::content::Body;
use crosspoint_contracts::message::Presence;
use crosspoint_contracts::time::Time;

/// How long an agent may say nothing after its first heartbeat (MSG-12.3). An agent that pulls is taken to be away
/// after the same time without a poll.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(90);

/// How an agent gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// They are posted to it.
    Pushed,
    /// It asks for them.
    Pulled,
}

/// What was heard of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    /// When something was last heard; `None` if nothing was since the start.
    heard_at: Option<Instant>,
    /// The last heartbeat.
    beat: Option<Beat>,
    /// When a poll last came or ended; `None` if none has come since the start.
    polled_at: Option<Instant>,
    /// How many of its polls wait for messages.
    polls: u32,
    /// How many messages those polls ask for together.
    asked: u32,
    /// How many jobs it takes together with those that it has, according to its last poll.
    wanted: u32,
}

/// A heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// When it came.
    pub(crate) at: Time,
    /// What the agent says of itself.
    pub(crate) status: Presence,
    /// What the agent has left, as it wrote it. It is shown, and not used for routing (MSG-19).
    pub(crate) resources: Option<Body>,
}

impl Life {
    /// Something came from the agent.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = Some(now);
        // Whatever it says after it said that it leaves, it is there.
        if let Some(beat) = self.beat.as_mut().filter(|beat| beat.status == Presence::Offline) {
            beat.status = Presence::Online;
        }
    }

    pub(super) fn beats(&mut self, beat: Beat, now: Instant) {
        self.heard_at = Some(now);
        self.beat = Some(beat);
    }

    /// A poll begins. It takes `max` jobs beside those that the agent has, and those that its other polls ask for.
    pub(super) fn poll_begins(&mut self, held: u32, max: u32, now: Instant) {
        self.heard(now);
        self.polled_at = Some(now);
        self.polls += 1;
        self.asked = self.asked.saturating_add(max);
        self.wanted = held.saturating_add(self.asked);
    }

    /// A poll for `max` jobs ends. Until then the agent was there, but it has not said anything: an agent that leaves
    /// also drops its polls.
    pub(super) fn poll_ends(&mut self, max: u32, now: Instant) {
        (self.heard_at, self.polled_at) = (Some(now), Some(now));
        self.polls = self.polls.saturating_sub(1);
        self.asked = self.asked.saturating_sub(max);
    }

    pub(super) fn last_beat(&self) -> Option<&Beat> {
        self.beat.as_ref()
    }

    /// Whether something was heard within this time.
    pub(super) fn is_fresh(&self, within: Duration, now: Instant) -> bool {
        self.polls > 0 || self.heard_at.is_some_and(|at| now.duration_since(at) < within)
    }

    /// Whether the agent is gone (MSG-12.3).
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.beat.is_some() && !self.is_fresh(SILENT_AFTER, now)
    }

    /// Whether the agent asks for messages.
    fn is_polling(&self, now: Instant) -> bool {
        self.polls > 0 || self.polled_at.is_some_and(|at| now.duration_since(at) < SILENT_AFTER)
    }

    /// Whether a message for the agent would not reach it at present.
    pub(super) fn is_away(&self, manner: Manner, now: Instant) -> bool {
        let has_left = self.beat.as_ref().is_some_and(|beat| beat.status == Presence::Offline);
        has_left
            || match manner {
                Manner::Pushed => self.is_gone(now),
                Manner::Pulled => !self.is_polling(now),
            }
    }

    /// Returns how many jobs the agent may have at present; 0 if it gets no new ones.
    pub(super) fn capacity(&self, manner: Manner, concurrency: u32, now: Instant) -> u32 {
        let is_busy = self.beat.as_ref().is_some_and(|beat| beat.status == Presence::Busy);
        match manner {
            _ if is_busy || self.is_away(manner, now) => 0,
            Manner::Pushed => concurrency,
            Manner::Pulled => self.wanted.clamp(1, concurrency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn beat(status: Presence) -> Beat {
        Beat { at: Time(0), status, resources: None }
    }

    #[test]
    fn an_agent_that_has_beaten_and_says_nothing_for_90_s_is_gone() {
        let start = Instant::now();
        let mut life = Life::default();
        assert_eq!(life.capacity(Manner::Pushed, 4, start + 1_000 * SECOND), 4, "it never sent a heartbeat");
        life.beats(beat(Presence::Online), start);
        assert_eq!(life.capacity(Manner::Pushed, 4, start + 89 * SECOND), 4);
        assert_eq!(life.capacity(Manner::Pushed, 4, start + 90 * SECOND), 0);
        life.heard(start + 100 * SECOND);
        assert_eq!(life.capacity(Manner::Pushed, 4, start + 101 * SECOND), 4, "replies and polls are life");
    }

    #[test]
    fn an_agent_that_pulls_is_there_while_it_polls() {
        let start = Instant::now();
        let mut life = Life::default();
        assert_eq!(life.capacity(Manner::Pulled, 4, start), 0, "nothing was heard of it yet");
        life.poll_begins(0, 2, start);
        assert_eq!(life.capacity(Manner::Pulled, 4, start + 500 * SECOND), 2, "its poll waits");
        life.poll_ends(2, start + 500 * SECOND);
        assert_eq!(life.capacity(Manner::Pulled, 4, start + 589 * SECOND), 2);
        assert_eq!(life.capacity(Manner::Pulled, 4, start + 590 * SECOND), 0);
        life.poll_begins(3, 10, start + 600 * SECOND);
        assert_eq!(life.capacity(Manner::Pulled, 4, start + 600 * SECOND), 4, "no more than it may have");
        assert!(!life.is_gone(start + 5_000 * SECOND), "it never sent a heartbeat, so its work goes on");
    }

    #[test]
    fn heartbeats_alone_bring_no_work_to_an_agent_that_pulls() {
        let start = Instant::now();
        let mut life = Life::default();
        life.beats(beat(Presence::Online), start);
        assert!(life.is_away(Manner::Pulled, start) && !life.is_away(Manner::Pushed, start));
        life.poll_begins(0, 1, start);
        life.poll_ends(1, start);
        life.beats(beat(Presence::Online), start + 89 * SECOND);
        assert_eq!(life.capacity(Manner::Pulled, 4, start + 89 * SECOND), 1);
        assert_eq!(life.capacity(Manner::Pulled, 4, start + 90 * SECOND), 0, "it no longer asks");
        assert!(!life.is_gone(start + 90 * SECOND), "the work that it has goes on");
    }

    #[test]
    fn polls_that_wait_together_take_what_they_ask_for_together() {
        let start = Instant::now();
        let mut life = Life::default();
        life.poll_begins(0, 1, start);
        life.poll_begins(0, 2, start);
        assert_eq!(life.capacity(Manner::Pulled, 8, start), 3);
        life.poll_ends(1, start);
        assert_eq!(life.capacity(Manner::Pulled, 8, start), 3, "it has what the first one got");
        life.poll_begins(1, 1, start);
        assert_eq!(life.capacity(Manner::Pulled, 8, start), 4);
    }

    #[test]
    fn an_agent_that_leaves_and_drops_its_poll_has_left() {
        let start = Instant::now();
        let mut life = Life::default();
        life.poll_begins(0, 1, start);
        life.beats(beat(Presence::Offline), start);
        assert!(life.is_away(Manner::Pulled, start));
        life.poll_ends(1, start);
        assert!(life.is_away(Manner::Pulled, start));
        life.poll_begins(0, 1, start);
        assert!(!life.is_away(Manner::Pulled, start), "it is back");
    }

    #[test]
    fn an_agent_that_is_busy_or_leaves_gets_no_new_work() {
        let start = Instant::now();
        for (status, capacity) in [(Presence::Online, 4), (Presence::Busy, 0), (Presence::Offline, 0)] {
            let mut life = Life::default();
            life.beats(beat(status), start);
            assert_eq!(life.capacity(Manner::Pushed, 4, start), capacity, "{status:?}");
        }
    }
}
