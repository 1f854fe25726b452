//! `/tasks`: where callers of the task contract come in (TASK-1 to TASK-9).
//!
//! A task is a job that its caller knows by an id of its own. A caller that waits, by `?wait=S` or `Prefer: wait=S`, is
//! answered when the task has ended, and also when it asks for input, because that caller is the one to be asked.
//!
//! Every refusal here has the shape of the contract: [`crate::refusal_document`] takes care of that for all these
//! endpoints.

mod events;
mod prefer;
mod refused;
mod request;

use axum::Router;
use axum::extract::State;
use axum::http::header::{HeaderName, HeaderValue, LOCATION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use crosspoint_contracts::Contract;
use crosspoint_contracts::request::Door;
use crosspoint_exchange::admission::{self, Caller};
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::backend::{Backend, Followed, Moment, Whole};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::Snapshot;
use uuid::Uuid;

use self::request::{RequestedWait, TaskId, percent_encoded};
use super::{Arrived, Asking, Doors, SentBy, settled};
use crate::body::Received;
use crate::held::held;
use crate::json::response;
use crate::limit::StreamPlace;
use crate::request_log::About;
use crate::{Refused, long};

/// The contract of this door.
pub const CONTRACT: Contract = Contract::Task;

const DOOR: Door = Door::Contract(CONTRACT);

/// Path of this door.
pub const PLACE: &str = "/tasks";

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The endpoints of this door.
pub fn routes<B: Backend>() -> Router<Doors<B>> {
    Router::new()
        .route("/tasks", post(submit_task::<B>))
        .route("/tasks/{id}", get(show_task::<B>))
        .route("/tasks/{id}/input", post(answer_task::<B>))
        .route("/tasks/{id}/cancel", post(cancel_task::<B>))
        .route("/tasks/{id}/events", get(follow_task::<B>))
}

async fn submit_task<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    requested: Result<RequestedWait, Refused>,
    received: Received,
) -> Result<Response, Refused> {
    let requested = requested.map_err(|refused| admission::about(refused.into(), CONTRACT, &received.bytes, &[]))?;
    let asking = Asking { wait: requested.wait, ..Asking::default() };
    let task = doors.admit((CONTRACT, caller), asking, received).await?;
    let Whole { now, room } = doors.whole(settled(&task.job, task.wait).await).await?;
    let job = B::Job::snapshot(&now);
    Ok(held(located(requested.answer(status(&job), written(&job, &task.beside)), &job), room))
}

async fn show_task<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    TaskId(id): TaskId,
    requested: Result<RequestedWait, Refused>,
) -> Result<Response, Refused> {
    let requested = requested.map_err(|refused| refused::of(&id)(refused.into()))?;
    let task = doors.task(&caller.0, &id).await?;
    let Whole { now, room } = doors.whole(settled(&task, requested.wait).await).await?;
    let job = B::Job::snapshot(&now);
    Ok(held(requested.answer(StatusCode::OK, written(&job, &asked_by(&id, &job))), room))
}

async fn answer_task<B: Backend>(
    State(doors): State<Doors<B>>,
    arrived: Arrived,
    caller: SentBy,
    TaskId(id): TaskId,
    requested: Result<RequestedWait, Refused>,
    received: Result<Received, Refused>,
) -> Result<Response, Refused> {
    let requested = requested.map_err(|refused| refused::of(&id)(refused.into()))?;
    let received = received.map_err(Refusal::from);
    let answer = received.and_then(|received| refused::input(&received.bytes)).map_err(refused::of(&id))?;
    let task = doors.task(&caller.0, &id).await?;
    let answered = doors.backend.answer(&caller.0, &task, answer, arrived.0).await;
    let answered = answered.map_err(|why| refused::denied(why, &id))?;
    // Who does not wait is shown no other question, so that the same answer, sent twice at once, cannot be for it.
    let now = match requested.wait {
        Some(_) => settled(&task, requested.wait).await,
        None => answered,
    };
    let Whole { now, room } = doors.whole(now).await?;
    let job = B::Job::snapshot(&now);
    Ok(held(requested.answer(status(&job), written(&job, &asked_by(&id, &job))), room))
}

async fn cancel_task<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    TaskId(id): TaskId,
) -> Result<Response, Refused> {
    let task = doors.task(&caller.0, &id).await?;
    doors.backend.cancel(&caller.0, &task).await.map_err(|why| refused::denied(why, &id))?;
    let Whole { now, room } = doors.whole(task.now()).await?;
    let job = B::Job::snapshot(&now);
    Ok(held(response(StatusCode::OK, written(&job, &asked_by(&id, &job))), room))
}

async fn follow_task<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    TaskId(id): TaskId,
    place: Result<StreamPlace, Refused>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let place = place.map_err(|refused| refused::of(&id)(refused.into()))?;
    let stretch = events::Stretch::read(&uri, &headers).map_err(refused::of(&id))?;
    let task = doors.task(&caller.0, &id).await?;
    let beside = asked_by(&id, &B::Job::snapshot(&task.now()));
    Ok(events::stream(doors, (task, beside), stretch, place))
}

/// Writes the task in its current state.
fn written(job: &Snapshot<'_>, beside: &Beside) -> String {
    long::write(job, || answer::document(job, CONTRACT, beside))
}

/// A task is shown under the id that its caller asks for it by: it may have several (ALL-1). By the job's own id it is
/// shown under the one that it had first.
fn asked_by(id: &str, job: &Snapshot<'_>) -> Beside {
    let is_of_job = id.parse::<Uuid>().is_ok_and(|id| id == job.id);
    Beside { known_as: (id != job.request_id && !is_of_job).then(|| id.into()), ..Beside::default() }
}

/// TASK-4: 200 means that the task has ended.
fn status(job: &Snapshot<'_>) -> StatusCode {
    if job.ended().is_some() { StatusCode::OK } else { StatusCode::ACCEPTED }
}

fn located(mut response: Response, job: &Snapshot<'_>) -> Response {
    let location = match job.door {
        DOOR => format!("/tasks/{}", percent_encoded(job.request_id)),
        // A job of another door is found here by the job's own id.
        Door::Native | Door::Contract(_) => format!("/tasks/{}", job.id),
    };
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    // For the log, which names jobs by their own ids.
    response.extensions_mut().insert(About::job(job));
    response
}

impl<B: Backend> Doors<B> {
    /// Finds a task by the caller's id for it, or else by the job's own id, as for work that was repeated or came in at
    /// another door.
    async fn task(&self, caller: &Caller, id: &str) -> Result<B::Job, Refusal> {
        let found = self.backend.find(DOOR, caller, id).await.map_err(refused::of(id))?;
        found.ok_or_else(|| refused::no_such_task(Some(id)))
    }

    /// Returns a task with the whole text of its outcome.
    async fn whole(&self, now: Moment<B>) -> Result<Whole<B>, Refusal> {
        let id = B::Job::snapshot(&now).request_id.to_owned();
        self.backend.with_text(now).await.map_err(refused::of(&id))
    }
}
