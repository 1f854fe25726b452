//! Failures as error codes.

use super::code;
use crate::failure::Failure;

/// Returns the error code of a failure, or `None` for the agent's own failure, which is a `work_result`.
pub fn write(failure: Failure) -> Option<i64> {
    match failure {
        Failure::Timeout => Some(code::TIMEOUT),
        Failure::Unavailable => Some(code::UNAVAILABLE),
        Failure::Invalid => Some(code::INVALID_MESSAGE),
        Failure::Unauthenticated => Some(code::AUTHENTICATION_FAILED),
        Failure::ResourceLimit => Some(code::RESOURCE_LIMIT),
        Failure::Unsupported => Some(code::UNSUPPORTED),
        Failure::AgentFailed => None,
        Failure::Cancelled => Some(code::CANCELLED),
        Failure::Delegation => Some(code::DELEGATION),
        Failure::Conflict => Some(code::CONFLICT),
        Failure::BrokenContract => Some(code::BROKEN_CONTRACT),
        Failure::Internal => Some(code::INTERNAL),
    }
}

/// Returns what an error code means. An unknown code is the agent's failure.
pub fn read(error_code: i64) -> Failure {
    Failure::ALL.into_iter().find(|failure| write(*failure) == Some(error_code)).unwrap_or(Failure::AgentFailed)
}
