//! The door of the demo contract: one question, one answer.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use crosspoint_contracts::Contract;
use crosspoint_exchange::answer;
use crosspoint_exchange::backend::{Backend, Followed};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::door::{Asking, Doors, SentBy, ended};
use crosspoint_http::json::response;

pub(super) const CONTRACT: Contract = Contract::Demo;

/// Path of this door.
pub(super) const PLACE: &str = "/demo";

/// The endpoints of this door.
pub(super) fn routes<B: Backend>() -> Router<Doors<B>> {
    Router::new().route(PLACE, post(ask::<B>))
}

/// Asks, and is answered when the work has ended.
async fn ask<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    received: Received,
) -> Result<Response, Refused> {
    let asking = Asking { wait: Some(doors.sync_wait), ..Asking::default() };
    let asked = doors.admit((CONTRACT, caller), asking, received).await?;
    let now = doors.backend.with_text(ended(&asked).await).await?.now;
    let job = B::Job::snapshot(&now);
    match job.ended() {
        Some(_) => Ok(response(StatusCode::OK, answer::document(&job, CONTRACT, &asked.beside))),
        None => Err(Refusal::waited(job.id, doors.sync_wait).into()),
    }
}
