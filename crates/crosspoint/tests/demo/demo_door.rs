//! The door of the demo contract: one question, one answer.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use crosspoint_contracts::Contract;

use super::App;
use super::body::Received;
use super::json::response;
use super::query::Asking;
use super::refusal::Refusal;
use crate::passage::admission::Caller;
use crate::passage::answer;

pub(super) const CONTRACT: Contract = Contract::Demo;

/// Where this door is.
pub(super) const PLACE: &str = "/demo";

pub(super) fn routes() -> Router<App> {
    Router::new().route(PLACE, post(ask))
}

/// Asks, and is answered when the work has ended.
async fn ask(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let asking = Asking { wait: Some(app.0.sync_wait), ..Asking::default() };
    let asked = app.admit((CONTRACT, caller), &headers, asking, received).await?;
    let job = asked.ended().await;
    match job.outcome() {
        Some(_) => Ok(response(StatusCode::OK, answer::document(&job, CONTRACT, &asked.beside))),
        None => Err(Refusal::waited(job.id(), app.0.sync_wait)),
    }
}
