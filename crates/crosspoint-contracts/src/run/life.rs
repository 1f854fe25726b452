//! The life of a stream: `started`, `progress` as it comes, one terminal event, nothing after it.
//!
//! Three parts that never meet must agree on this order: the judge of a stream that has ended, the follower of a stream
//! that is still coming, and the writer of a stream. So the order is stated here once, as a table of states and roles,
//! and no other code compares indices or keeps a flag. A breach does not stop the machine: it is reported, and the next
//! event is judged from where the stream really is.
//!
//! The user of the machine decides which events it is given. The judge of a document gives it every event. The follower
//! of a live stream holds back a terminal event that lacks what a result needs (RUN-7.2).

use super::clause::{RUN_6, RUN_6_2};
use crate::clause::Clause;

/// The name of the event that begins a stream.
pub(super) const STARTED: &str = "started";
/// The name of the event that may come any number of times after that.
pub(super) const PROGRESS: &str = "progress";
/// The name of the terminal event that we write (RUN-6.4).
pub(super) const FINAL: &str = "final";
/// The names under which a terminal event is read.
pub(super) const TERMINAL_NAMES: &[&str] = &[FINAL, "complete", "done"];

/// The role of an event in the life of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The run has begun.
    Started,
    /// The run is under way.
    Progress,
    /// The run has ended.
    Terminal,
    /// An event that only the agent knows.
    Other,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Started, Role::Progress, Role::Terminal, Role::Other];

    /// Returns the role of an event of that name. Case matters.
    pub fn of(name: &str) -> Role {
        match name {
            STARTED => Role::Started,
            PROGRESS => Role::Progress,
            name if TERMINAL_NAMES.contains(&name) => Role::Terminal,
            _ => Role::Other,
        }
    }
}

/// Where a stream is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// No event has come yet.
    #[default]
    New,
    /// An event has come, but no terminal one.
    Running,
    /// The terminal event has come.
    Ended,
}

impl Life {
    /// All states.
    pub const ALL: [Life; 3] = [Life::New, Life::Running, Life::Ended];

    /// Returns the state after an event, and how the event was out of order if it was.
    ///
    /// A second `started` while the stream runs is no breach: the contract only says which event comes first.
    pub fn step(self, role: Role) -> (Life, Option<Breach>) {
        match (self, role) {
            (Life::New, Role::Started) => (Life::Running, None),
            (Life::New, Role::Progress | Role::Other) => (Life::Running, Some(Breach::NotStartedFirst)),
            (Life::New, Role::Terminal) => (Life::Ended, Some(Breach::NotStartedFirst)),
            (Life::Running, Role::Started | Role::Progress | Role::Other) => (Life::Running, None),
            (Life::Running, Role::Terminal) => (Life::Ended, None),
            (Life::Ended, Role::Terminal) => (Life::Ended, Some(Breach::SecondTerminal)),
            (Life::Ended, Role::Started | Role::Progress | Role::Other) => (Life::Ended, Some(Breach::AfterTerminal)),
        }
    }

    /// Returns the breach if the stream may not end here.
    pub fn end(self) -> Option<Breach> {
        match self {
            Life::New | Life::Running => Some(Breach::NoTerminal),
            Life::Ended => None,
        }
    }
}

/// How a stream breaks its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The first event is not `started`.
    NotStartedFirst,
    /// A second terminal event comes after the first.
    SecondTerminal,
    /// Another event comes after the terminal one.
    AfterTerminal,
    /// The stream ends without a terminal event.
    NoTerminal,
}

impl Breach {
    /// Returns the rule that is broken.
    pub fn clause(self) -> &'static Clause {
        match self {
            Breach::NotStartedFirst => &RUN_6,
            Breach::SecondTerminal | Breach::AfterTerminal | Breach::NoTerminal => &RUN_6_2,
        }
    }

    /// Returns what is wrong, in words about the event or about the stream as a whole.
    pub fn message(self) -> &'static str {
        match self {
            Breach::NotStartedFirst => "the first event is not `started`",
            Breach::SecondTerminal => "this is a second terminal event",
            Breach::AfterTerminal => "this event follows the terminal event",
            Breach::NoTerminal => "the stream ends without a terminal event",
        }
    }
}
