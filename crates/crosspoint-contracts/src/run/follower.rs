//! Follows a stream that is still coming: what each event means for the run, and what is wrong with it.
//!
//! A document can be judged at its end; a live stream cannot. Its caller must know at once whether an event is news to
//! pass on or the outcome, and an agent that ends badly must not lose the outcome. So a terminal event that lacks a
//! required member does not end the stream: a better one may follow (RUN-7.2). If none does, the first that says how
//! the run ended counts. Once a terminal event has counted, no later event counts, however good it is.
//!
//! Violations are clauses and fixed texts, fit for a log. They hold no pointer, because the agent chooses the names of
//! the members in a pointer.

use std::borrow::Cow;

use super::event::{Echo, EventData, Examined, StreamEvent, examine, framing};
use super::life::{Breach, Life, Role};
use crate::clause::{Clause, Level};
use crate::exchange::Lack;
use crate::json::Levels;
use crate::report::Finding;
use crate::sse::Event;

/// Takes the events of one upstream stream, one at a time.
#[derive(Debug)]
pub struct Follower {
    life: Life,
    echo: Echo,
    /// The first terminal event that says how the run ended and lacks a required member.
    held: Option<StreamEvent>,
    /// Whether any terminal event came, also one that does not count.
    any_terminal: bool,
}

/// What one event means for its run, and what is wrong with it.
#[derive(Debug)]
pub struct Heard {
    /// What to do with the event.
    pub meaning: Meaning,
    /// What is wrong with the event, up to [`FINDINGS_MAX`](crate::report::FINDINGS_MAX) of each level.
    pub violations: Vec<Violation>,
    /// A terminal event that does not count, from before any has counted. It is not the outcome, but shows what the
    /// agent meant.
    pub refused: Option<StreamEvent>,
}

/// What one event means for its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The run goes on: `started`, `progress`, or an event that only the agent knows, without an error in its data.
    News(StreamEvent),
    /// The run has ended with this event: the first terminal event of this request that has all required fields.
    ///
    /// Another part of it may still be broken. Then the violations include an error, and [`StreamEvent::read`] returns
    /// `None`.
    Outcome(StreamEvent),
    /// The event says how the run ended and lacks a required member. It counts if no better one follows: see
    /// [`Follower::end`].
    Held,
    /// Nothing, because the event came too late, or its data cannot be used. The violations say why.
    Nothing,
}

/// One clause that an upstream broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub clause: &'static Clause,
    /// How much it matters.
    pub level: Level,
    /// What is wrong. It never holds content.
    pub message: Cow<'static, str>,
}

impl From<Breach> for Violation {
    fn from(breach: Breach) -> Violation {
        Violation { clause: breach.clause(), level: breach.clause().level, message: Cow::Borrowed(breach.message()) }
    }
}

impl From<Finding> for Violation {
    fn from(finding: Finding) -> Violation {
        Violation { clause: finding.clause, level: finding.level, message: finding.message }
    }
}

impl Follower {
    /// Returns a follower at the start of the stream that answers this request.
    pub fn new(request_id: &str) -> Follower {
        let echo = Echo::OfRequest(request_id.to_owned());
        Follower { life: Life::New, echo, held: None, any_terminal: false }
    }

    /// Takes the next event.
    pub fn hear(&mut self, mut event: Event) -> Heard {
        let mut violations: Vec<Violation> = framing(&event)
            .map(|(clause, message)| Violation { clause, level: clause.level, message: Cow::Borrowed(message) })
            .collect();
        let Some(data) = event.data.take() else {
            violations.extend(self.step(Role::of(event.name.as_deref().unwrap_or_default()), Use::None));
            return Heard { meaning: Meaning::Nothing, violations, refused: None };
        };
        let examined = examine(event.name.as_deref(), &data, &mut self.echo, Levels::Received);
        let usable = self.weigh(&examined);
        let name = examined.name;
        violations.extend(examined.report.findings.into_iter().map(Violation::from));
        let could_end = Role::of(&name) == Role::Terminal && self.life != Life::Ended;
        violations.extend(self.step(Role::of(&name), usable));
        let mut refused = None;
        let meaning = match (usable, String::from_utf8(data)) {
            (Use::News, Ok(data)) => Meaning::News(StreamEvent { name, data }),
            (Use::Outcome, Ok(data)) => Meaning::Outcome(StreamEvent { name, data }),
            (Use::Held, Ok(data)) => {
                self.held = Some(StreamEvent { name, data });
                Meaning::Held
            }
            (_, data) => {
                let data = data.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                refused = could_end.then_some(StreamEvent { name, data });
                Meaning::Nothing
            }
        };
        Heard { meaning, violations, refused }
    }

    /// Takes the end of the stream, in whatever way it came. Returns the event that counts after all, if none has
    /// counted before, or what is wrong with a stream that had no terminal event at all.
    ///
    /// Without an event, a run that has no outcome yet has failed, and its own stream must be ended so.
    pub fn end(self) -> (Option<StreamEvent>, Option<Violation>) {
        let unended = self.life.end().filter(|_| !self.any_terminal);
        (self.held.filter(|_| self.life != Life::Ended), unended.map(Violation::from))
    }

    /// Decides what use an event has.
    fn weigh(&self, examined: &Examined<'_>) -> Use {
        if self.life == Life::Ended {
            return Use::None;
        }
        match &examined.data {
            Some(EventData::Terminal(terminal)) => {
                let id = terminal.response.request_id.get();
                // An id that is missing is that of the request, because the stream answers no other.
                let ours = id.is_empty() || self.echo.allows(&id);
                if !ours || examined.lack == Some(Lack::Sense) {
                    Use::None
                } else if terminal.is_complete() {
                    Use::Outcome
                } else if examined.lack.is_none() && self.held.is_none() {
                    Use::Held
                } else {
                    Use::None
                }
            }
            Some(EventData::Started(_) | EventData::Progress(_) | EventData::Other(_))
                if examined.report.is_valid() =>
            {
                Use::News
            }
            Some(EventData::Started(_) | EventData::Progress(_) | EventData::Other(_)) | None => Use::None,
        }
    }

    /// Steps the state machine. A terminal event that does not count is treated as an event of the agent's own until
    /// one has counted. After that it is treated as a terminal event, and is one too many.
    fn step(&mut self, role: Role, usable: Use) -> Option<Violation> {
        self.any_terminal |= role == Role::Terminal;
        let held_back = role == Role::Terminal && usable != Use::Outcome && self.life != Life::Ended;
        if held_back && self.held.is_some() {
            return Some(Breach::SecondTerminal.into());
        }
        let (life, breach) = self.life.step(if held_back { Role::Other } else { role });
        self.life = life;
        breach.map(Violation::from)
    }
}

/// The use of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    News,
    Outcome,
    Held,
    None,
}
