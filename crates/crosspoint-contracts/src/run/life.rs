//! The life of a stream: `started`, `progress` as it comes, one terminal event, nothing after it.
//!
//! Three who never meet must agree on this order: who judges a stream that has ended, who follows one that is
//! still coming, and who writes one. So the order stands here once, as a table of states and
//! roles, and nobody else compares indices or keeps a flag. A breach does not stop the machine: what was out of order is
//! reported, and the next event is judged from where the stream really is.
//!
//! Which events the machine is told of is for its user to decide. One that judges a document tells it of every event;
//! one that follows a live stream holds back the terminal event that lacks what a result needs (RUN-7.2).

use super::clause::{RUN_6, RUN_6_2};
use crate::clause::Clause;

/// What begins a stream.
pub(super) const STARTED: &str = "started";
/// What may come any number of times after that.
pub(super) const PROGRESS: &str = "progress";
/// RUN-6.4: the terminal event that we write.
pub(super) const FINAL: &str = "final";
/// The names under which a terminal event is read.
pub(super) const TERMINAL_NAMES: &[&str] = &[FINAL, "complete", "done"];

/// What an event is in the life of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The run has begun.
    Started,
    /// The run goes on.
    Progress,
    /// The run has ended.
    Terminal,
    /// Something of the agent's own.
    Other,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Started, Role::Progress, Role::Terminal, Role::Other];

    /// The role of an event of that name. Case counts.
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
    /// No event yet.
    #[default]
    New,
    /// An event, but no terminal one.
    Running,
    /// The terminal event has been.
    Ended,
}

impl Life {
    /// Every state.
    pub const ALL: [Life; 3] = [Life::New, Life::Running, Life::Ended];

    /// Decides what one event does to the stream, and whether it was out of order.
    ///
    /// A second `started` while the stream runs is no breach: the contract says only what comes first.
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

    /// Decides whether the stream may end here.
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
    /// Its first event is another than `started`.
    NotStartedFirst,
    /// A terminal event after the terminal one.
    SecondTerminal,
    /// Any other event after the terminal one.
    AfterTerminal,
    /// It ends without a terminal event.
    NoTerminal,
}

impl Breach {
    /// The rule that is broken.
    pub fn clause(self) -> &'static Clause {
        match self {
            Breach::NotStartedFirst => &RUN_6,
            Breach::SecondTerminal | Breach::AfterTerminal | Breach::NoTerminal => &RUN_6_2,
        }
    }

    /// What is wrong, said of the event, or of the stream as a whole.
    pub fn message(self) -> &'static str {
        match self {
            Breach::NotStartedFirst => "the first event is not `started`",
            Breach::SecondTerminal => "this is a second terminal event",
            Breach::AfterTerminal => "this event follows the terminal event",
            Breach::NoTerminal => "the stream ends without a terminal event",
        }
    }
}
