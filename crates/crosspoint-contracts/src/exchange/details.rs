//! What the details of an error say of a failure, in contracts that name the members that they must have.

use crate::failure::Failure;

/// A fact about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// How many times the work was tried again.
    Retries,
    /// When the work was last tried.
    LastAttempt,
    /// The agent that had the work, or that sent the message.
    Agent,
    /// When the agent last said that it is there; null where it never did.
    LastHeartbeat,
    /// What is wrong, in words.
    Message,
    /// The member of the request that is wrong; null where it is not a single one.
    Field,
    /// What is wrong with a token.
    TokenStatus,
    /// The limit that was reached.
    LimitName,
    /// How much the limit still allows.
    Available,
    /// How much was wanted.
    Required,
    /// The work that was asked for.
    Work,
    /// The works that agents take.
    Works,
}

/// No error has to say more than its code and its message.
pub(crate) fn says_nothing(_: Failure) -> &'static [(&'static str, Fact)] {
    &[]
}
