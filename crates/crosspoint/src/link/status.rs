//! What the HTTP status of an agent's answer says by itself, whatever its contract.

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use reqwest::StatusCode;

/// What a status means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) failure: Failure,
    /// Whether the work may have begun; refused work surely has not (ALL-3).
    pub(super) dispatched: Dispatched,
    message: &'static str,
}

impl Meaning {
    pub(super) fn failed(self) -> Failed {
        Failed::said(self.failure, self.dispatched, self.message)
    }
}

/// Returns the meaning of statuses that need no document: a refusal at the gate, or by a proxy in front of the agent,
/// does not speak the agent's contract.
pub(super) fn meaning(status: StatusCode) -> Option<Meaning> {
    use Dispatched::{No, Yes};
    let (failure, dispatched, message) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (Failure::Unauthenticated, No, "The agent does not accept our token.")
        }
        StatusCode::TOO_MANY_REQUESTS => (Failure::ResourceLimit, No, "The agent takes no more work just now."),
        StatusCode::SERVICE_UNAVAILABLE => (Failure::Unavailable, No, "The agent takes no work just now."),
        StatusCode::BAD_GATEWAY => {
            (Failure::Unavailable, Yes, "The agent could not be reached from where it is asked for.")
        }
        StatusCode::GATEWAY_TIMEOUT => {
            (Failure::Timeout, Yes, "The agent did not answer in time where it is asked for.")
        }
        _ => return None,
    };
    Some(Meaning { failure, dispatched, message })
}

/// Whether there is nothing at that path.
pub(super) fn is_absent(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED)
}
