//! Failures as `error.code` and `error.recoverable`.

use crate::failure::Failure;

/// How a failure is written: a code of the task family, and whether the caller can do something about it.
///
/// A cancelled task has the status of its own and no error; the code is for doors that must answer with one.
pub fn write(failure: Failure) -> (&'static str, bool) {
    match failure {
        Failure::Timeout => ("TIMEOUT", true),
        Failure::Unavailable => ("AGENT_UNAVAILABLE", true),
        Failure::Invalid => ("INVALID_INPUT", true),
        Failure::Unauthenticated => ("UNAUTHENTICATED", true),
        Failure::ResourceLimit => ("AGENT_BUSY", true),
        Failure::Unsupported => ("CAPABILITY_NOT_FOUND", false),
        Failure::AgentFailed => ("INTERNAL_ERROR", false),
        Failure::Cancelled => ("CANCELLED", false),
        Failure::Delegation => ("DELEGATION_FAILED", false),
        Failure::Conflict => ("INVALID_FIELD_VALUE", true),
        Failure::BrokenContract => ("AGENT_UNAVAILABLE", true),
        Failure::Internal => ("INTERNAL_ERROR", true),
    }
}

/// What a code means. Several failures share codes: the first of the list counts, and what was carried counts before that.
pub fn read(code: &str) -> Failure {
    match code {
        "INVALID_INPUT" | "MISSING_REQUIRED_FIELD" | "INVALID_FIELD_TYPE" | "INVALID_FIELD_VALUE" => Failure::Invalid,
        "AGENT_BUSY" | "RATE_LIMITED" => Failure::ResourceLimit,
        "CAPABILITY_NOT_FOUND" | "AGENT_NOT_FOUND" => Failure::Unsupported,
        "TASK_GRAPH_CYCLE" | "DELEGATION_FAILED" => Failure::Delegation,
        // `cancelled` is a status here, not a code.
        "CANCELLED" => Failure::AgentFailed,
        own => Failure::ALL.into_iter().find(|failure| write(*failure).0 == own).unwrap_or(Failure::AgentFailed),
    }
}

/// What a code means beside its `recoverable`, which tells two failures apart that share one.
pub fn read_error(code: &str, recoverable: bool) -> Failure {
    let shared = Failure::ALL.into_iter().find(|failure| write(*failure) == (code, recoverable));
    match (read(code), shared) {
        (Failure::AgentFailed, Some(Failure::Internal)) => Failure::Internal,
        (first, _) => first,
    }
}
