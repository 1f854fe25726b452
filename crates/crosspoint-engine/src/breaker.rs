//! The circuit breaker of one agent: a pure state machine (MSG-7).
//!
//! Five attempts in a row in which the agent was silent or not there open the breaker. For 60 s the agent then gets no
//! new work, while the jobs that it has go on. After that, one health check decides. The usual half-open breaker lets
//! one real job through as its test. Here that would send a caller's work to an agent that is probably still down, so a
//! health check without work goes first.
//!
//! An agent that drops a connection after it had taken the request may be down, or may have stumbled over one caller's
//! input. The first must count, and the second must not close the agent for other callers. So a dropped connection
//! counts only if a health check fails too. [`Doubt`] keeps the drops until then; any number of them share one check.

use std::time::Duration;

use crosspoint_contracts::time::Time;

/// How many bad marks in a row open the breaker.
pub const FAILURES_MAX: u32 = 5;

/// How long the breaker stays open before the agent's health is checked.
pub const OPEN_FOR: Duration = Duration::from_secs(60);

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// New work goes to the agent.
    Closed {
        /// How many bad marks there were in a row.
        failures: u32,
    },
    /// No new work goes to the agent.
    Open {
        /// When the health check is due; [`Time::NEVER`] if an operator opened the breaker.
        until: Time,
    },
    /// The health check is under way, and still no new work goes to the agent.
    HalfOpen,
}

/// How an agent behaved in one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The agent answered, whatever it said.
    Good,
    /// The agent was silent, or not there.
    Bad,
    /// The agent dropped the connection after it had taken the request. A health check decides whether that was bad.
    Dropped,
}

/// The dropped connections of one agent whose meaning is not known yet. It is not stored: after a restart such drops
/// count as nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// How many connections the agent has dropped in a row.
    drops: u32,
    /// Whether a health check is under way because of drops. It stays so if the drops are forgotten meanwhile: an agent
    /// that answers and drops in turn has one check at a time, too.
    checking: bool,
}

/// What a health check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The agent answered.
    Well,
    /// The agent did not answer.
    Sick,
}

/// Something that happens to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An attempt ended.
    Marked(Mark),
    /// A time has come that [`Breaker::alarm`] returned.
    Clock,
    /// The health check ended.
    Checked(Health),
    /// An operator wants the breaker open until an operator closes it.
    Open,
    /// An operator wants the breaker closed.
    Close,
    /// The orchestrator was restarted, and a health check that was under way is lost.
    Interrupted,
}

/// What has to be done after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// Check the agent's health, and report the result with [`Event::Checked`].
    Check,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker::Closed { failures: 0 }
    }
}

impl Doubt {
    /// Decides what one event does to an agent's breaker and to the drops that it has not counted.
    #[must_use]
    pub fn step(self, breaker: Breaker, event: Event, now: Time) -> (Doubt, Breaker, Action) {
        let (next, action) = breaker.step(event, now);
        let unsure = Doubt { drops: self.drops.saturating_add(1), checking: true };
        let sure = Doubt { drops: 0, ..self };
        match event {
            Event::Marked(Mark::Dropped) if breaker.is_closed() => {
                (unsure, next, if self.checking { Action::None } else { Action::Check })
            }
            Event::Checked(Health::Sick) if breaker.is_closed() => {
                (Doubt::default(), self.confirmed(breaker, now), action)
            }
            Event::Checked(_) => (Doubt::default(), next, action),
            // The agent has answered since, or an operator has decided, or its drops say nothing new.
            Event::Marked(Mark::Good | Mark::Dropped) | Event::Open | Event::Close => (sure, next, action),
            Event::Marked(Mark::Bad) | Event::Clock | Event::Interrupted => {
                (if next.is_closed() { self } else { sure }, next, action)
            }
        }
    }

    /// Returns the breaker with all drops counted, because the agent is sick.
    fn confirmed(self, breaker: Breaker, now: Time) -> Breaker {
        let bad = |breaker: Breaker, _| breaker.step(Event::Marked(Mark::Bad), now).0;
        (0..self.drops.min(FAILURES_MAX)).fold(breaker, bad)
    }
}

impl Breaker {
    /// Decides what one event does to the breaker alone, without the drops of [`Doubt`].
    #[must_use]
    pub fn step(self, event: Event, now: Time) -> (Breaker, Action) {
        let open = Breaker::Open { until: now.plus(OPEN_FOR) };
        let next = match (self, event) {
            (_, Event::Open) => Breaker::Open { until: Time::NEVER },
            (_, Event::Close) | (Breaker::Closed { .. }, Event::Marked(Mark::Good)) => Breaker::default(),
            (Breaker::Closed { failures }, Event::Marked(Mark::Bad)) if failures + 1 >= FAILURES_MAX => open,
            (Breaker::Closed { failures }, Event::Marked(Mark::Bad)) => Breaker::Closed { failures: failures + 1 },
            // A check decides: that of `Doubt`, or the one of this half-open breaker.
            (Breaker::Closed { .. } | Breaker::HalfOpen, Event::Marked(Mark::Dropped)) => self,
            // Attempts that were under way when the breaker opened go on; how they end says nothing new.
            (Breaker::Open { .. }, Event::Marked(_) | Event::Checked(_) | Event::Interrupted) => self,
            (Breaker::Open { until }, Event::Clock) if until <= now => return (Breaker::HalfOpen, Action::Check),
            (Breaker::Open { .. } | Breaker::HalfOpen | Breaker::Closed { .. }, Event::Clock) => self,
            (Breaker::HalfOpen, Event::Checked(Health::Well)) => Breaker::default(),
            (Breaker::HalfOpen, Event::Checked(Health::Sick) | Event::Marked(Mark::Bad)) => open,
            // Only the check decides: a queue in between may answer for work that was sent before the breaker opened.
            (Breaker::HalfOpen, Event::Marked(Mark::Good)) => self,
            (Breaker::HalfOpen, Event::Interrupted) => return (Breaker::HalfOpen, Action::Check),
            (Breaker::Closed { .. }, Event::Checked(_) | Event::Interrupted) => self,
        };
        (next, Action::None)
    }

    /// Whether new work may go to the agent.
    pub fn is_closed(self) -> bool {
        match self {
            Breaker::Closed { .. } => true,
            Breaker::Open { .. } | Breaker::HalfOpen => false,
        }
    }

    /// Returns when [`Event::Clock`] is due.
    pub fn alarm(self) -> Option<Time> {
        match self {
            Breaker::Open { until } if until != Time::NEVER => Some(until),
            Breaker::Open { .. } | Breaker::Closed { .. } | Breaker::HalfOpen => None,
        }
    }

    /// Returns the breaker moved along with a clock that jumped.
    #[must_use]
    pub fn shifted(self, micros: i64) -> Breaker {
        match self {
            Breaker::Open { until } => Breaker::Open { until: until.shifted(micros) },
            Breaker::Closed { .. } | Breaker::HalfOpen => self,
        }
    }

    /// Returns the breaker open for no longer than [`OPEN_FOR`] from now, whatever happened to the clock while no
    /// orchestrator ran. A breaker that an operator opened stays as it is.
    #[must_use]
    pub fn bound_by(self, now: Time) -> Breaker {
        match self {
            Breaker::Open { until } if until != Time::NEVER => Breaker::Open { until: until.min(now.plus(OPEN_FOR)) },
            Breaker::Open { .. } | Breaker::Closed { .. } | Breaker::HalfOpen => self,
        }
    }

    /// Returns the word for the breaker's state.
    pub fn name(self) -> &'static str {
        match self {
            Breaker::Closed { .. } => "closed",
            Breaker::Open { .. } => "open",
            Breaker::HalfOpen => "half_open",
        }
    }
}
