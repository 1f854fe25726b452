//! Refusals in the shape of a contract.
//!
//! Whatever the reason for which a request is refused at the door of a contract, from a body that is too long to a disk
//! that is full, its caller gets a document of that contract.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use crosspoint_contracts::Contract;
use crosspoint_contracts::time::Time;
use crosspoint_exchange::refusal::{self, Refusal};
use jiff::Timestamp;
use uuid::Uuid;

use super::request_log::About;

/// Writes the body of a refusal: in the shape of its door, or else in our own. An agent refuses in words of its own.
/// Other answers are returned unchanged, and nothing is looked up for them.
pub(crate) fn filled(mut response: Response, door: impl FnOnce() -> Option<Contract>, is_agent: bool) -> Response {
    let Some(refusal) = response.extensions_mut().remove::<Arc<Refusal>>() else { return response };
    let refusal = match Arc::try_unwrap(refusal) {
        Ok(refusal) if is_agent => Arc::new(refusal.by_agent()),
        Ok(refusal) => Arc::new(refusal),
        Err(shared) => shared,
    };
    let body = match door() {
        Some(contract) => {
            if let Some(about) = About::refused(&refusal) {
                response.extensions_mut().insert(about);
            }
            Body::from(document(&refusal, contract))
        }
        None => Body::from(refusal.body()),
    };
    *response.body_mut() = body;
    response.headers_mut().remove(CONTENT_LENGTH);
    response
}

/// Returns the refusal as a document of this contract, with the current time.
pub(crate) fn document(refusal: &Refusal, contract: Contract) -> String {
    let now = Time(Timestamp::now().as_microsecond());
    refusal::document(refusal, contract, Uuid::new_v4(), &now.to_string())
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;
    use crate::Refused;
    use crate::door::{run, task};
    use crate::reach::Ours;
    use crate::site::{Limits, Plan, Site};

    const DOORS: &[(&str, Contract)] =
        &[(run::PLACE, run::CONTRACT), (task::PLACE, task::CONTRACT), ("/api/v1/bridge", Contract::Bridge)];

    fn site() -> Site {
        Site::new(Plan {
            limits: Limits::default(),
            routes: Vec::new(),
            ours: Ours::new("127.0.0.1:0", &[]),
            doors: DOORS.to_vec(),
        })
    }

    fn document_at(path: &str) -> serde_json::Value {
        let response = filled(Refused::from(Refusal::internal()).into_response(), || site().contract_at(path), false);
        let body = response.into_body().collect().now_or_never().and_then(Result::ok).expect("it is all there");
        serde_json::from_slice(&body.to_bytes()).expect("it is JSON")
    }

    #[test]
    fn a_fault_of_ours_is_told_in_the_words_of_the_door() {
        for path in ["/agents/run", "/agents/run/sync", "/agents/run/stream", "/agents/run/other"] {
            assert_eq!(
                (&document_at(path)["status"], &document_at(path)["error"]["code"]),
                (&"error".into(), &"INTERNAL".into())
            );
        }
        for path in ["/tasks", "/tasks/", "/tasks/t/events", "/tasks/a/b/c"] {
            let document = document_at(path);
            assert_eq!(
                (&document["status"], &document["error"]["code"]),
                (&"failed".into(), &"INTERNAL_ERROR".into()),
                "{path}"
            );
        }
        for path in ["/api/v1/bridge", "/api/v1/bridge/more"] {
            let document = document_at(path);
            assert_eq!((&document["status"], &document["error_type"]), (&"error".into(), &"internal".into()), "{path}");
            let carried = &document["metadata"]["x_crosspoint"];
            assert_eq!(
                (&carried["details"]["repeat"], &carried["filled"]),
                (&"unknown".into(), &serde_json::Value::Null)
            );
        }
        for path in ["/", "/api/v1/jobs", "/api/v1/bridges", "/tasksmith", "/agents/runner/envelope", "/api/tasks"] {
            assert_eq!(document_at(path)["error"]["code"], "internal", "{path}");
        }
    }
}
