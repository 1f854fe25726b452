//! Failures as `error.code`, and the HTTP status they are answered with.

use crate::failure::Failure;

/// How a failure is written: the code, and the HTTP status of a sync run that ends with it.
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

/// What a code means. An agent's own is the agent's failure.
pub fn read(code: &str) -> Failure {
    Failure::ALL.into_iter().find(|failure| write(*failure).0 == code).unwrap_or(Failure::AgentFailed)
}

/// What an answer over HTTP means that says it failed: its code, or without one its status (RUN-3.9).
pub fn read_answer(code: Option<&str>, status: u16) -> Failure {
    match (code, status) {
        (Some(code), _) => read(code),
        // Nothing there for this task type, or not by this way.
        (None, 404 | 405) => Failure::Unsupported,
        (None, 400..=499) => Failure::Invalid,
        (None, _) => Failure::AgentFailed,
    }
}
