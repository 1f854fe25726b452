//! Failures as a recommendation: the contract has no error object.

use super::wire::Recommendation;
use crate::failure::Failure;

/// Returns what should happen next after a failure, for use where the agent did not say. `success` is false with all of
/// them.
pub fn write(failure: Failure) -> Recommendation {
    match failure {
        Failure::Timeout
        | Failure::Unavailable
        | Failure::ResourceLimit
        | Failure::BrokenContract
        | Failure::Internal => Recommendation::Retry,
        Failure::Invalid
        | Failure::Unauthenticated
        | Failure::Unsupported
        | Failure::AgentFailed
        | Failure::Cancelled
        | Failure::Delegation
        | Failure::Conflict => Recommendation::Escalate,
    }
}
