//! Failures as `error.code`, and the HTTP status of the answer.

use crate::failure::Failure;

/// Returns the code of a failure, and the HTTP status of a sync run that ends with it.
pub fn write(failure: Failure) -> (&'static str, u16) {
    match failure {
        Failure::Timeout => ("TIMEOUT", 200),
        Failure::Unavailable => ("AGENT_UNAVAILABLE", 200),
        Failure::Invalid => ("VALIDATION_ERROR", 400),
        Failure::Unauthenticated => ("UNAUTHENTICATED", 401),
        Failure::ResourceLimit => ("RESOURCE_LIMIT", 200),
        Failure::Unsupported => ("UNSUPPORTED_TASK_TYPE", 400),
        Failure::AgentFailed => ("TASK_FAILED", 200),
        Failure::Cancelled => ("CANCELLED", 200),
        Failure::Delegation => ("DELEGATION", 400),
        Failure::Conflict => ("CONFLICT", 409),
        Failure::BrokenContract => ("AGENT_BROKE_CONTRACT", 200),
        Failure::Internal => ("INTERNAL", 500),
    }
}

/// Returns what a code means. A code that only the agent knows is the agent's failure.
pub fn read(code: &str) -> Failure {
    Failure::ALL.into_iter().find(|failure| write(*failure).0 == code).unwrap_or(Failure::AgentFailed)
}

/// Returns what a failed answer over HTTP means, by its code, or without one by its status (RUN-3.9).
pub fn read_answer(code: Option<&str>, status: u16) -> Failure {
    match (code, status) {
        (Some(code), _) => read(code),
        // The agent has nothing for this task type, or not for this method.
        (None, 404 | 405) => Failure::Unsupported,
        (None, 400..=499) => Failure::Invalid,
        (None, _) => Failure::AgentFailed,
    }
}
