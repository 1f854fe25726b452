//! The breaker of one agent: a pure machine (MSG-7).
//!
//! Five attempts in a row that met silence or nobody open it, and for 60 s the agent gets no new work, while what it has
//! goes on. Then one health check decides. The usual half-open breaker lets one real job through as its test; here that would
//! be somebody's work thrown at an agent that is probably still down, so a check without work goes first.

use std::time::Duration;

use crate::time::Time;

/// So many bad marks in a row open it.
pub const FAILURES_MAX: u32 = 5;

/// For so long.
pub const OPEN_FOR: Duration = Duration::from_secs(60);

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Work goes to the agent.
    Closed {
        /// Bad marks in a row.
        failures: u32,
    },
    /// No new work goes to it.
    Open {
        /// Until then; [`Time::NEVER`] if an operator opened it.
        until: Time,
    },
    /// The health check is under way, and still no new work goes to it.
    HalfOpen,
}

/// How an agent behaved in one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It answered, whatever it said.
    Good,
    /// It was silent, or not there.
    Bad,
}

/// What a health check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answered.
    Well,
    /// It did not.
    Sick,
}

/// Something that happens to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An attempt ended.
    Marked(Mark),
    /// A time has come that [`Breaker::alarm`] named.
    Clock,
    /// The health check ended.
    Checked(Health),
    /// An operator wants it open until they close it.
    Open,
    /// An operator wants it closed.
    Close,
    /// We were gone, and so is the health check that was under way.
    Interrupted,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// Check the agent's health and say so with [`Event::Checked`].
    Check,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker::Closed { failures: 0 }
    }
}

impl Breaker {
    /// Decides what one event does.
    #[must_use]
    pub fn step(self, event: Event, now: Time) -> (Breaker, Action) {
        let open = Breaker::Open { until: now.plus(OPEN_FOR) };
        let next = match (self, event) {
            (_, Event::Open) => Breaker::Open { until: Time::NEVER },
            (_, Event::Close) | (Breaker::Closed { .. }, Event::Marked(Mark::Good)) => Breaker::default(),
            (Breaker::Closed { failures }, Event::Marked(Mark::Bad)) if failures + 1 >= FAILURES_MAX => open,
            (Breaker::Closed { failures }, Event::Marked(Mark::Bad)) => Breaker::Closed { failures: failures + 1 },
            // What was under way when it opened goes on, and says nothing new.
            (Breaker::Open { .. }, Event::Marked(_) | Event::Checked(_) | Event::Interrupted) => self,
            (Breaker::Open { until }, Event::Clock) if until <= now => return (Breaker::HalfOpen, Action::Check),
            (Breaker::Open { .. } | Breaker::HalfOpen | Breaker::Closed { .. }, Event::Clock) => self,
            (Breaker::HalfOpen, Event::Checked(Health::Well)) => Breaker::default(),
            (Breaker::HalfOpen, Event::Checked(Health::Sick) | Event::Marked(Mark::Bad)) => open,
            // Only the check decides: work that was sent before it opened may be answered by a queue in between.
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

    /// When [`Event::Clock`] is due.
    pub fn alarm(self) -> Option<Time> {
        match self {
            Breaker::Open { until } if until != Time::NEVER => Some(until),
            Breaker::Open { .. } | Breaker::Closed { .. } | Breaker::HalfOpen => None,
        }
    }

    /// Moved along with a clock that jumped.
    #[must_use]
    pub fn shifted(self, micros: i64) -> Breaker {
        match self {
            Breaker::Open { until } => Breaker::Open { until: until.shifted(micros) },
            Breaker::Closed { .. } | Breaker::HalfOpen => self,
        }
    }

    /// Not open for longer than it can be, whatever was done to the clock while we were gone.
    #[must_use]
    pub fn bound_by(self, now: Time) -> Breaker {
        match self {
            Breaker::Open { until } if until != Time::NEVER => Breaker::Open { until: until.min(now.plus(OPEN_FOR)) },
            Breaker::Open { .. } | Breaker::Closed { .. } | Breaker::HalfOpen => self,
        }
    }

    /// The word for its state.
    pub fn name(self) -> &'static str {
        match self {
            Breaker::Closed { .. } => "closed",
            Breaker::Open { .. } => "open",
            Breaker::HalfOpen => "half_open",
        }
    }
}
