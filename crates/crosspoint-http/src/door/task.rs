//! `/tasks`: where callers of the task contract come in (TASK-1 to TASK-9).
//!
//! A task is a job that its caller knows by an id of its own. A caller that waits, by `?wait=S` or `Prefer: wait=S`, is
//! answered when the task has ended, and also when it asks for input, because that caller is the one to be asked.
//!
//! Every refusal here has the shape of the contract: [`super::shaped`] takes care of that for all these endpoints.

mod events;
mod prefer;
mod refused;
mod request;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::header::{HeaderName, HeaderValue, LOCATION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use crosspoint_contracts::Contract;
use crosspoint_engine::job::{Door, Job};
use crosspoint_engine::runtime::Watch;

use self::request::{Patience, TaskId, percent_encoded};
use super::App;
use super::body::Received;
use super::jobs::outcome_bytes;
use super::json::response;
use super::query::Asking;
use super::record::About;
use super::refusal::Refusal;
use crate::long;
use crate::passage::admission::{self, Caller};
use crate::passage::answer::{self, Beside};

pub(super) const CONTRACT: Contract = Contract::Task;

const DOOR: Door = Door::Contract(CONTRACT);

/// Path of this door.
pub(super) const PLACE: &str = "/tasks";

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

pub(super) async fn submit_task(
    State(app): State<App>,
    caller: Caller,
    patience: Result<Patience, Refusal>,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let patience = patience.map_err(|refusal| admission::about(refusal, CONTRACT, &received.bytes))?;
    let asking = Asking { wait: patience.wait, work: None };
    let task = app.admit((CONTRACT, caller), &headers, asking, received).await?;
    let job = task.settled().await;
    Ok(located(patience.answer(status(&job), written(&job, &task.beside)), &job))
}

pub(super) async fn show_task(
    State(app): State<App>,
    caller: Caller,
    TaskId(id): TaskId,
    patience: Result<Patience, Refusal>,
) -> Result<Response, Refusal> {
    let patience = patience.map_err(refused::of(&id))?;
    let watch = app.task(&caller, &id).await?;
    let job = app.settled(&watch, &patience).await;
    Ok(patience.answer(StatusCode::OK, written(&job, &Beside::default())))
}

pub(super) async fn answer_task(
    State(app): State<App>,
    caller: Caller,
    TaskId(id): TaskId,
    patience: Result<Patience, Refusal>,
    received: Result<Received, Refusal>,
) -> Result<Response, Refusal> {
    let patience = patience.map_err(refused::of(&id))?;
    let answer = received.and_then(|received| refused::input(&received.bytes)).map_err(refused::of(&id))?;
    let watch = app.task(&caller, &id).await?;
    let answered = app.engine().answer(watch.job().id(), answer).await;
    answered.map_err(|why| refused::denied(&why, &id))?;
    let job = app.settled(&watch, &patience).await;
    Ok(patience.answer(status(&job), written(&job, &Beside::default())))
}

pub(super) async fn cancel_task(
    State(app): State<App>,
    caller: Caller,
    TaskId(id): TaskId,
) -> Result<Response, Refusal> {
    let watch = app.task(&caller, &id).await?;
    let job = app.engine().cancel(watch.job().id()).await.map_err(|why| refused::denied(&why, &id))?;
    Ok(response(StatusCode::OK, written(&job, &Beside::default())))
}

pub(super) async fn follow_task(
    State(app): State<App>,
    caller: Caller,
    TaskId(id): TaskId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let stretch = events::Stretch::read(&uri, &headers).map_err(refused::of(&id))?;
    let watch = app.task(&caller, &id).await?;
    Ok(events::stream(app, watch, stretch))
}

/// Writes the task in its current state.
fn written(job: &Job, beside: &Beside) -> String {
    long::look(outcome_bytes(job), || answer::document(job, CONTRACT, beside))
}

/// TASK-4: 200 means that the task has ended.
fn status(job: &Job) -> StatusCode {
    if job.outcome().is_some() { StatusCode::OK } else { StatusCode::ACCEPTED }
}

fn located(mut response: Response, job: &Job) -> Response {
    let place = match job.request.door {
        DOOR => format!("/tasks/{}", percent_encoded(&job.request.request_id)),
        // A job of another door is found here by the job's own id.
        Door::Native | Door::Contract(_) => format!("/tasks/{}", job.id()),
    };
    if let Ok(place) = HeaderValue::try_from(place) {
        response.headers_mut().insert(LOCATION, place);
    }
    // For the log, which names jobs by their own ids.
    response.extensions_mut().insert(About::job(job));
    response
}

impl App {
    /// Finds a task by the caller's id for it, or else by the job's own id, as for work that was repeated or came in at
    /// another door.
    async fn task(&self, caller: &Caller, id: &str) -> Result<Watch, Refusal> {
        let found = self.engine().find(DOOR, caller.name(), id).await.map_err(|why| refused::denied(&why, id))?;
        let found = match (found, id.parse()) {
            (None, Ok(job)) => self.engine().job(job).await.map_err(|fault| Refusal::fault(&fault))?,
            (found, _) => found,
        };
        found.ok_or_else(|| refused::no_such_task(Some(id)))
    }

    /// Returns the job once it has ended or asks for input, or in its current state when the wait is over or the server
    /// stops.
    async fn settled(&self, watch: &Watch, patience: &Patience) -> Arc<Job> {
        match patience.wait {
            Some(wait) => watch.settled(Instant::now() + wait).await,
            None => watch.job(),
        }
    }
}
