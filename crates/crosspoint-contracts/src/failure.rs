//! Why work failed, in one closed list for all contracts.
//!
//! Each contract writes every failure with an exhaustive match and reads its own codes back, in its `failure` module. A
//! new failure does not compile until every contract says how it is written, and the tests demand its page in
//! `docs/failures`.

use std::fmt;

/// A reason for which work failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The agent was not heard from in time.
    Timeout,
    /// The agent could not be reached.
    Unavailable,
    /// The request breaks its contract.
    Invalid,
    /// The token is missing or wrong.
    Unauthenticated,
    /// A resource limit was exceeded.
    ResourceLimit,
    /// No agent takes this work.
    Unsupported,
    /// The agent did the work and says that it failed.
    AgentFailed,
    /// The work was cancelled.
    Cancelled,
    /// The work went in a circle, or through too many agents.
    Delegation,
    /// The same request key came with other work or input.
    Conflict,
    /// The agent's answer cannot be read.
    BrokenContract,
    /// The fault is in the orchestrator.
    Internal,
}

/// Whether sending the same request again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The work was certainly not done.
    Safe,
    /// The work may have been done.
    Unknown,
    /// The request would fail again, or the work would be done twice.
    Never,
}

/// Whether the work had been handed to an agent when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// No agent has seen the work.
    No,
    /// An agent may have begun the work.
    Yes,
}

impl Failure {
    /// All twelve. Where several share a code, the first of them is read from it.
    pub const ALL: [Failure; 12] = [
        Failure::Timeout,
        Failure::Unavailable,
        Failure::Invalid,
        Failure::Unauthenticated,
        Failure::ResourceLimit,
        Failure::Unsupported,
        Failure::AgentFailed,
        Failure::Cancelled,
        Failure::Delegation,
        Failure::Conflict,
        Failure::BrokenContract,
        Failure::Internal,
    ];

    /// Returns the name, as it is spelled everywhere outside the five contracts.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Timeout => "timeout",
            Failure::Unavailable => "unavailable",
            Failure::Invalid => "invalid",
            Failure::Unauthenticated => "unauthenticated",
            Failure::ResourceLimit => "resource_limit",
            Failure::Unsupported => "unsupported",
            Failure::AgentFailed => "agent_failed",
            Failure::Cancelled => "cancelled",
            Failure::Delegation => "delegation",
            Failure::Conflict => "conflict",
            Failure::BrokenContract => "broken_contract",
            Failure::Internal => "internal",
        }
    }

    /// Returns the failure of this name.
    pub fn from_name(name: &str) -> Option<Failure> {
        Failure::ALL.into_iter().find(|failure| failure.name() == name)
    }

    /// Returns one sentence for people, for use where the agent gave none. It holds no content.
    pub fn sentence(self) -> &'static str {
        match self {
            Failure::Timeout => "The agent did not answer in time.",
            Failure::Unavailable => "The agent could not be reached.",
            Failure::Invalid => "The request breaks its contract.",
            Failure::Unauthenticated => "The token is missing or wrong.",
            Failure::ResourceLimit => "A resource limit was exceeded.",
            Failure::Unsupported => "No agent takes this work.",
            Failure::AgentFailed => "The agent reported that the work failed.",
            Failure::Cancelled => "The work was cancelled.",
            Failure::Delegation => "The work was delegated in a circle or through too many agents.",
            Failure::Conflict => "The same request id came earlier with other work or input.",
            Failure::BrokenContract => "The agent's answer could not be read.",
            Failure::Internal => "Something went wrong inside the orchestrator.",
        }
    }

    /// Returns whether the caller may send the same request again.
    pub fn repeat(self, dispatched: Dispatched) -> Repeat {
        match self {
            Failure::Unavailable | Failure::ResourceLimit if dispatched == Dispatched::No => Repeat::Safe,
            Failure::Timeout
            | Failure::Unavailable
            | Failure::ResourceLimit
            | Failure::BrokenContract
            | Failure::Internal => Repeat::Unknown,
            Failure::Invalid
            | Failure::Unauthenticated
            | Failure::Unsupported
            | Failure::AgentFailed
            | Failure::Cancelled
            | Failure::Delegation
            | Failure::Conflict => Repeat::Never,
        }
    }

    /// Returns whether the engine tries again by itself, where the agent's policy allows that.
    pub fn is_retried(self) -> bool {
        match self {
            Failure::Timeout | Failure::Unavailable | Failure::ResourceLimit => true,
            Failure::Invalid
            | Failure::Unauthenticated
            | Failure::Unsupported
            | Failure::AgentFailed
            | Failure::Cancelled
            | Failure::Delegation
            | Failure::Conflict
            | Failure::BrokenContract
            | Failure::Internal => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Repeat {
    /// Returns the word that callers are given.
    pub fn name(self) -> &'static str {
        match self {
            Repeat::Safe => "safe",
            Repeat::Unknown => "unknown",
            Repeat::Never => "never",
        }
    }

    /// Returns what a caller is told by this word.
    pub fn from_name(name: &str) -> Option<Repeat> {
        [Repeat::Safe, Repeat::Unknown, Repeat::Never].into_iter().find(|repeat| repeat.name() == name)
    }
}
