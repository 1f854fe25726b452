//! Why work failed, in one closed list for all contracts.
//!
//! Each contract writes every failure with an exhaustive match and reads its own codes back, in its `failure` module. A
//! new failure does not compile until every contract says how it is written, and the tests ask for its page in
//! `docs/failures`.

use std::fmt;

/// A reason that is part of the protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Nothing was heard in time.
    Timeout,
    /// The agent could not be reached.
    Unavailable,
    /// The request breaks its contract.
    Invalid,
    /// The token is missing or wrong.
    Unauthenticated,
    /// There is not enough of something.
    ResourceLimit,
    /// Nobody takes this work.
    Unsupported,
    /// The agent did the work and says that it failed.
    AgentFailed,
    /// Somebody stopped it.
    Cancelled,
    /// The work went in a circle, or through too many hands.
    Delegation,
    /// The same request key came with other work or input.
    Conflict,
    /// The agent's answer cannot be read.
    BrokenContract,
    /// The fault is ours.
    Internal,
}

/// Whether sending the same request again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The work was surely not done.
    Safe,
    /// It may have been done.
    Unknown,
    /// It would fail again, or do the work twice.
    Never,
}

/// Whether the work had been handed to an agent when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// No agent has seen it.
    No,
    /// An agent may have begun.
    Yes,
}

impl Failure {
    /// All twelve, in the order in which codes that several share are read.
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

    /// As it is spelled everywhere outside the five contracts.
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

    /// The failure of that name.
    pub fn from_name(name: &str) -> Option<Failure> {
        Failure::ALL.into_iter().find(|failure| failure.name() == name)
    }

    /// One sentence for people, where the agent gave none. It holds no content.
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

    /// Whether the caller may send the same request again.
    pub fn repeat(self, dispatched: Dispatched) -> Repeat {
        match self {
            Failure::Unavailable if dispatched == Dispatched::No => Repeat::Safe,
            Failure::Timeout | Failure::Unavailable | Failure::BrokenContract | Failure::Internal => Repeat::Unknown,
            Failure::ResourceLimit => Repeat::Safe,
            Failure::Invalid
            | Failure::Unauthenticated
            | Failure::Unsupported
            | Failure::AgentFailed
            | Failure::Cancelled
            | Failure::Delegation
            | Failure::Conflict => Repeat::Never,
        }
    }

    /// Whether the engine tries again by itself, where the agent allows that.
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
    /// As callers are told.
    pub fn name(self) -> &'static str {
        match self {
            Repeat::Safe => "safe",
            Repeat::Unknown => "unknown",
            Repeat::Never => "never",
        }
    }
}
