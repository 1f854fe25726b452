//! What the HTTP status of an agent's answer says where there is no document to read, whatever the agent's contract
//! (RUN-5).
//!
//! The body is then no document: a framework's error, a text, a proxy's page. It goes to the job's caller beside the
//! failure (ALL-11).

use std::borrow::Cow;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_exchange::words;
use reqwest::StatusCode;

/// What a status means where work is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// `Unauthenticated` says that our own token was refused: `remote::Agent::concluded` tells the operator, and the
    /// caller that the agent is unavailable.
    pub(super) failure: Failure,
    /// Whether the work may have begun; refused work surely has not (ALL-3).
    pub(super) dispatched: Dispatched,
    message: Cow<'static, str>,
}

/// Returns the meaning of a status that is a refusal or an error; `None` for any other.
pub(super) fn meaning(status: StatusCode) -> Option<Meaning> {
    use Dispatched::{No, Yes};
    let number = status.as_u16();
    let (failure, dispatched, message) = match number {
        401 | 403 | 407 => {
            (Failure::Unauthenticated, No, "The agent does not accept the server's token for it.".into())
        }
        404 | 405 => (Failure::Unsupported, No, "The agent takes no such work at its address.".into()),
        408 | 425 => (Failure::Unavailable, Yes, format!("The agent broke the request off with HTTP {number}.").into()),
        429 => (Failure::ResourceLimit, No, "The agent takes no more work just now.".into()),
        503 => (Failure::Unavailable, No, "The agent takes no work just now.".into()),
        400..=499 => (Failure::Invalid, No, format!("The agent refused the request with HTTP {number}.").into()),
        500..=599 => (Failure::AgentFailed, Yes, format!("The agent failed with HTTP {number}.").into()),
        _ => return None,
    };
    Some(Meaning { failure, dispatched, message })
}

/// Whether a status is said at the gate, often by a proxy and before the agent has looked at the work. Words that come
/// with it break no rule of the agent's contract, and it says more than a code that only the agent knows.
pub(super) fn is_at_the_gate(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 407 | 408 | 425 | 429 | 503)
}

/// Whether there is nothing at that path. Many frameworks say 501 if nothing there takes the method.
pub(super) fn is_absent(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED)
}

impl Meaning {
    /// Returns the failure, with the agent's words and the pause that it asks for.
    pub(super) fn failed(self, body: &[u8], retry_after: Option<Duration>) -> Failed {
        let failed = Failed::said(self.failure, self.dispatched, &self.message);
        words::beside(failed, body).asking_for(retry_after)
    }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::failure::Repeat;

    use super::*;

    fn of(status: u16) -> Option<(Failure, Dispatched)> {
        let meaning = meaning(StatusCode::from_u16(status).expect("a status"));
        meaning.map(|meaning| (meaning.failure, meaning.dispatched))
    }

    #[test]
    fn every_status_has_the_meaning_of_the_ruling() {
        use Dispatched::{No, Yes};
        for status in 100..=599 {
            let expected = match status {
                100..=399 => None,
                429 => Some((Failure::ResourceLimit, No)),
                503 => Some((Failure::Unavailable, No)),
                408 | 425 => Some((Failure::Unavailable, Yes)),
                401 | 403 | 407 => Some((Failure::Unauthenticated, No)),
                404 | 405 => Some((Failure::Unsupported, No)),
                400..=499 => Some((Failure::Invalid, No)),
                _ => Some((Failure::AgentFailed, Yes)),
            };
            assert_eq!(of(status), expected, "{status}");
        }
    }

    #[test]
    fn what_is_surely_not_begun_is_safe_to_repeat_and_a_refused_token_is_not() {
        let failed = |status: u16| {
            let meaning = meaning(StatusCode::from_u16(status).expect("a status")).expect("a meaning");
            meaning.failed(b"", Some(Duration::from_secs(7))).by_agent()
        };
        let repeat = |failed: &Failed| failed.repeat.unwrap_or_else(|| failed.failure.repeat(failed.dispatched));
        for (status, failure, expected) in [
            (429, Failure::ResourceLimit, Repeat::Safe),
            (503, Failure::Unavailable, Repeat::Safe),
            (408, Failure::Unavailable, Repeat::Unknown),
            (401, Failure::Unavailable, Repeat::Never),
            (407, Failure::Unavailable, Repeat::Never),
            (404, Failure::Unsupported, Repeat::Never),
            (422, Failure::Invalid, Repeat::Never),
            (500, Failure::AgentFailed, Repeat::Never),
        ] {
            let failed = failed(status);
            assert_eq!((failed.failure, repeat(&failed)), (failure, expected), "{status}");
            assert_eq!(failed.retry_after_seconds, 7, "{status}");
        }
    }
}
