//! Refusals in the shape of a contract.
//!
//! Whatever refuses a request at the door of a contract, from a body that is too long to a disk that is full, its caller gets a document of
//! that contract: the code and the message where they belong, and the rest (`repeat`, `clause`, `hint`, where and what) in the error's
//! open `details`, which a contract without such a field carries.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::job::{Home, Job, Own, State};
use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, Fresh};
use crosspoint_contracts::{Contract, Kind, translate};
use crosspoint_engine::time::Time;
use uuid::Uuid;

use super::record::About;
use super::refusal::Refusal;

/// The kind in whose shape requests for this path are refused, where it belongs to a door. Whoever misspells a path of a door still
/// speaks its contract.
pub(super) fn kind_at(path: &str) -> Option<Kind> {
    let is_under = |door| path.strip_prefix(door).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // RUN-5, TASK-2, BRIDGE-1.
    let doors =
        [("/agents/run", Kind::RunResponse), ("/tasks", Kind::TaskResponse), ("/api/v1/bridge", Kind::BridgeResponse)];
    doors.into_iter().find(|(door, _)| is_under(*door)).map(|(_, kind)| kind)
}

/// An answer with what it says, where it is a refusal: in the shape of its door, else in our own.
pub(super) fn filled(mut response: Response, door: Option<Kind>) -> Response {
    let Some(refusal) = response.extensions_mut().remove::<Arc<Refusal>>() else { return response };
    let body = match door {
        Some(kind) => {
            if let Some(about) = About::refused(&refusal) {
                response.extensions_mut().insert(about);
            }
            Body::from(document(&refusal, kind))
        }
        None => Body::from(refusal.body()),
    };
    *response.body_mut() = body;
    response.headers_mut().remove(CONTENT_LENGTH);
    response
}

/// The refusal as a document of this kind.
pub(super) fn document(refusal: &Refusal, kind: Kind) -> String {
    let (status, failure) = refusal.status_and_failure();
    let mut told = Job::made(kind, Some(State::Failed));
    let is_bridge = kind == Kind::BridgeResponse;
    // A cancelled task has no error to say anything with, and nobody refuses by cancelling. A body over its limit is the
    // request's own fault: no waiting mends it.
    let too_large = status == StatusCode::PAYLOAD_TOO_LARGE;
    let invalid = failure == Failure::Cancelled || (too_large && !is_bridge);
    told.fail(if invalid { Failure::Invalid } else { failure });
    told.put(Home::Message, Json::string(refusal.message()));
    // BRIDGE-8: there is a word for it.
    let code = refusal.own_code().or((too_large && is_bridge).then_some("RequestTooLarge"));
    if let Some(code) = code {
        told.put(Home::Code, Json::string(code));
    }
    told.put(Home::Details, Json::new(refusal.details()));
    let id = Uuid::new_v4();
    match refusal.request_id() {
        Some(request_id) => drop(told.put(Home::RequestId, Json::string(request_id))),
        None => mark_made_up(&mut told, id, kind.contract()),
    }
    if let Some(work) = refusal.work().filter(|_| kind.contract() == Contract::Run) {
        told.put(Home::Work, Json::string(work));
    }
    let now = Time::on_the_wall().to_string();
    if is_bridge {
        // What would be filled in otherwise, with a word that it was.
        told.put(Home::ReportedAt, Json::string(&now));
        told.put(Home::Duration, Json::new("0.0"));
    }
    let fresh = Fresh {
        now: &now,
        id,
        agent_types: &[],
        agent_type: "code",
        // The others have fields for all that is said here.
        carrying: if is_bridge { Carrying::On } else { Carrying::Off },
        known_as: None,
        completing: true,
        levels: Levels::Received,
    };
    translate::write(&told, kind.contract(), &fresh).map(translate::Written::into_text).unwrap_or_default()
}

/// RUN-5: an id that could not be read is made up, and that is said.
fn mark_made_up(told: &mut Job<'static>, id: Uuid, contract: Contract) {
    told.put(Home::RequestId, Json::string(&id.to_string()));
    let warnings = Json::new("[\"request_id was generated: none could be read from the request\"]");
    match contract {
        Contract::Run => told.own.push(Own { contract, pointer: "/warnings".to_owned(), value: warnings }),
        Contract::Bridge => told.carry("warnings", warnings),
        Contract::Task | Contract::Message | Contract::Workflow => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    fn said_at(path: &str) -> serde_json::Value {
        let response = filled(Refusal::internal().into_response(), kind_at(path));
        let body = response.into_body().collect().now_or_never().and_then(Result::ok).expect("it is all there");
        serde_json::from_slice(&body.to_bytes()).expect("it is JSON")
    }

    #[test]
    fn a_fault_of_ours_is_told_in_the_words_of_the_door() {
        for path in ["/agents/run", "/agents/run/sync", "/agents/run/stream", "/agents/run/other"] {
            assert_eq!(
                (&said_at(path)["status"], &said_at(path)["error"]["code"]),
                (&"error".into(), &"INTERNAL".into())
            );
        }
        for path in ["/tasks", "/tasks/", "/tasks/t/events", "/tasks/a/b/c"] {
            let said = said_at(path);
            assert_eq!(
                (&said["status"], &said["error"]["code"]),
                (&"failed".into(), &"INTERNAL_ERROR".into()),
                "{path}"
            );
        }
        for path in ["/api/v1/bridge", "/api/v1/bridge/more"] {
            let said = said_at(path);
            assert_eq!((&said["status"], &said["error_type"]), (&"error".into(), &"internal".into()), "{path}");
            let carried = &said["metadata"]["x_crosspoint"];
            assert_eq!(
                (&carried["details"]["repeat"], &carried["filled"]),
                (&"unknown".into(), &serde_json::Value::Null)
            );
        }
        for path in ["/", "/api/v1/jobs", "/api/v1/bridges", "/tasksmith", "/agents/runner/envelope", "/api/tasks"] {
            assert_eq!(said_at(path)["error"]["code"], "internal", "{path}");
        }
    }
}
