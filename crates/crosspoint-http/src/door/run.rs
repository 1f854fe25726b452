//! The run door: where callers of the run contract come in.
//!
//! Both endpoints take the same request and make the same job of it: the same request at one and then at the other is
//! the same run (RUN-9.2). They differ in how they wait: one for the outcome only, the other for every event on the
//! way. A caller that leaves does not stop the run (RUN-10).

mod stream;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use crosspoint_contracts::Contract;
use crosspoint_engine::job::Job;

use super::App;
use super::body::Received;
use super::jobs::{locate, outcome_bytes};
use super::json::response;
use super::query::Asking;
use super::refusal::Refusal;
use crate::long;
use crate::passage::admission::{Admitted, Caller};
use crate::passage::answer;

pub(super) const CONTRACT: Contract = Contract::Run;

/// Path of this door.
pub(super) const PLACE: &str = "/agents/run";

/// Runs, and answers with the outcome.
pub(super) async fn run_sync(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let asking = Asking { wait: Some(app.0.sync_wait), work: None };
    let run = app.admit((CONTRACT, caller), &headers, asking, received).await?;
    let job = run.ended().await;
    match job.outcome() {
        Some(ending) => {
            let status = ending.failure().map_or(200, CONTRACT.exchange().http_status);
            let mut response = response(StatusCode::from_u16(status).unwrap_or_default(), written(&run, &job));
            locate(&mut response, &job);
            Ok(response)
        }
        None if app.stopping().is_cancelled() => Err(refuse(&run, Refusal::leaving(job.id()))),
        None => Err(refuse(&run, Refusal::waited(job.id(), app.0.sync_wait))),
    }
}

/// Runs, and answers with a stream of events.
pub(super) async fn run_stream(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let run = app.admit((CONTRACT, caller), &headers, Asking::default(), received).await?;
    stream::response(app, run)
}

/// RUN-121: runs are posted.
pub(super) async fn wrong_method(method: Method) -> Refusal {
    Refusal::wrong_method(method.as_str()).clause("RUN-121")
}

/// Writes the run in its current state. An ended run is always written with the same bytes, at either endpoint.
fn written(run: &Admitted, job: &Job) -> String {
    long::look(outcome_bytes(job), || answer::document(job, CONTRACT, &run.beside))
}

/// Makes a refusal name this run.
fn refuse(run: &Admitted, refusal: Refusal) -> Refusal {
    let request = &run.watch.job().request;
    let request_id = run.beside.known_as.as_deref().unwrap_or(&request.request_id);
    refusal.of_request(Some(request_id.to_owned())).of_work(Some(request.work.to_string()))
}
