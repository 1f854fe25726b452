//! Failures as `status` and `error_type`.

use super::wire::Status;
use crate::failure::Failure;

/// Returns the status and the `error_type` of a failure.
pub fn write(failure: Failure) -> (Status, &'static str) {
    match failure {
        Failure::Timeout => (Status::Timeout, "timeout"),
        Failure::Unavailable => (Status::Error, "agent_unavailable"),
        Failure::Invalid => (Status::Error, "invalid_request"),
        Failure::Unauthenticated => (Status::Error, "authentication_failed"),
        Failure::ResourceLimit => (Status::Error, "resource_limit"),
        Failure::Unsupported => (Status::Error, "unsupported_work"),
        Failure::AgentFailed => (Status::Error, "agent_failed"),
        Failure::Cancelled => (Status::Error, "cancelled"),
        Failure::Delegation => (Status::Error, "delegation"),
        Failure::Conflict => (Status::Error, "request_conflict"),
        Failure::BrokenContract => (Status::Error, "agent_broke_contract"),
        Failure::Internal => (Status::Error, "internal"),
    }
}

/// Returns what an `error_type` means. A type that only the agent knows is the agent's failure.
pub fn read(error_type: &str) -> Failure {
    match error_type {
        // The driver writes these where a file is over its limit.
        "ResponseTooLarge" | "RequestTooLarge" => Failure::ResourceLimit,
        own => Failure::ALL.into_iter().find(|failure| write(*failure).1 == own).unwrap_or(Failure::AgentFailed),
    }
}
