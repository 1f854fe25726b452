//! Failures as error codes.

use crate::failure::Failure;

/// How a failure is written: an error code, or `None` for the agent's own failure, which is a `work_result`.
pub fn write(failure: Failure) -> Option<i64> {
    match failure {
        Failure::Timeout => Some(5001),
        Failure::Unavailable => Some(5002),
        Failure::Invalid => Some(5003),
        Failure::Unauthenticated => Some(5004),
        Failure::ResourceLimit => Some(5005),
        Failure::Unsupported => Some(5006),
        Failure::AgentFailed => None,
        Failure::Cancelled => Some(5901),
        Failure::Delegation => Some(5902),
        Failure::Conflict => Some(5903),
        Failure::BrokenContract => Some(5904),
        Failure::Internal => Some(5900),
    }
}

/// What an error code means. One that nobody knows is the agent's failure.
pub fn read(error_code: i64) -> Failure {
    Failure::ALL.into_iter().find(|failure| write(*failure) == Some(error_code)).unwrap_or(Failure::AgentFailed)
}
