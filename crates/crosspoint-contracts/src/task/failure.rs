//! Failures as `error.code` and `error.recoverable`.

use super::clause::{TASK_9_2, TASK_9_3};
use crate::delegation;
use crate::failure::Failure;
use crate::report::{Finding, Wrong};

/// Returns the code of the task family for a failure, and whether the caller can do something about it.
///
/// A cancelled task has a status of its own and no error; the code is for doors that must answer with one.
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
        Failure::Delegation => (delegation::TOO_LONG, false),
        Failure::Conflict => ("INVALID_FIELD_VALUE", true),
        Failure::BrokenContract => ("AGENT_UNAVAILABLE", true),
        Failure::Internal => ("INTERNAL_ERROR", true),
    }
}

/// Returns what a code means. Where several failures share a code, the first of the list counts, and a carried failure
/// takes precedence over that.
pub fn read(code: &str) -> Failure {
    match code {
        "INVALID_INPUT" | "MISSING_REQUIRED_FIELD" | "INVALID_FIELD_TYPE" | "INVALID_FIELD_VALUE" => Failure::Invalid,
        "AGENT_BUSY" | "RATE_LIMITED" => Failure::ResourceLimit,
        "CAPABILITY_NOT_FOUND" | "AGENT_NOT_FOUND" => Failure::Unsupported,
        delegation::CYCLE | delegation::TOO_LONG => Failure::Delegation,
        // `cancelled` is a status here, not a code.
        "CANCELLED" => Failure::AgentFailed,
        own => Failure::ALL.into_iter().find(|failure| write(*failure).0 == own).unwrap_or(Failure::AgentFailed),
    }
}

/// Returns what a code means beside its `recoverable`, which tells two failures apart that share a code.
pub fn read_error(code: &str, recoverable: bool) -> Failure {
    let shared = Failure::ALL.into_iter().find(|failure| write(*failure) == (code, recoverable));
    match (read(code), shared) {
        (Failure::AgentFailed, Some(Failure::Internal)) => Failure::Internal,
        (first, _) => first,
    }
}

/// Returns why a request with this finding is refused, and the most exact code for that.
pub fn of_finding(finding: &Finding) -> (Failure, &'static str) {
    let clause = finding.clause;
    if clause == &TASK_9_2 {
        return (Failure::Delegation, delegation::CYCLE);
    }
    if clause == &TASK_9_3 {
        return (Failure::Delegation, delegation::TOO_LONG);
    }
    // Clauses that hold for all contracts are about the document as a whole, and not about one of its fields.
    if clause.id.starts_with("ALL-") {
        return (Failure::Invalid, "INVALID_INPUT");
    }
    let code = match finding.wrong {
        Wrong::Missing => "MISSING_REQUIRED_FIELD",
        Wrong::Type => "INVALID_FIELD_TYPE",
        Wrong::Value => "INVALID_FIELD_VALUE",
    };
    (Failure::Invalid, code)
}
