//! `/api/agent/message`: where callers of the message contract send work (MSG-17).
//!
//! A caller that waits gets the outcome on the same connection, or, when its wait runs out, a `work_status`. A caller
//! that does not wait gets a `work_status` at once and the outcome later, if the server knows where to send it, or when
//! it sends the same request again.

use std::sync::Arc;

use axum::http::{StatusCode, Uri};
use axum::response::Response;
use crosspoint_contracts::Contract;
use crosspoint_contracts::job::Home;
use crosspoint_contracts::message::Cancel;
use crosspoint_contracts::request::Door;
use crosspoint_exchange::admission::{self, Admitted, Caller};
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::backend::{Backend, Denied, Followed, Whole};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::{Snapshot, State};

use super::{Asking, Doors, SentBy, ended, locate};
use crate::body::Received;
use crate::held::held;
use crate::json::response;
use crate::{long, query};

/// The contract of this door.
pub const CONTRACT: Contract = Contract::Message;

const DOOR: Door = Door::Contract(CONTRACT);

/// Path that everything of this contract is below.
pub const PLACE: &str = "/api/agent";

/// Work that was asked for, and is on disk.
pub struct Requested<B: Backend> {
    /// The job.
    pub work: Admitted<B::Job>,
    /// Whether the answer says only that the work was accepted: a caller that did not wait for the outcome and gets it
    /// later looks for it there.
    pub is_later: bool,
}

/// The answer to a request for work.
pub struct Answered {
    /// The answer.
    pub response: Response,
    /// Whether it tells the outcome.
    pub is_told: bool,
}

/// Takes a `work_request`. `asking` says who asks.
pub async fn request_work<B: Backend>(
    doors: &Doors<B>,
    caller: SentBy,
    asking: Asking,
    uri: &Uri,
    received: Received,
) -> Result<Requested<B>, Refusal> {
    let wait = query::wait(uri, doors.wait_max);
    let wait = wait.map_err(|refusal| admission::about(refusal, CONTRACT, &received.bytes, &asking.agent_types))?;
    let is_told_later = asking.notify.is_some();
    let work = doors.admit((CONTRACT, caller), Asking { wait, ..asking }, received).await?;
    let is_later = is_told_later && wait.is_none() && !work.joined;
    Ok(Requested { work, is_later })
}

/// Answers a `work_request` when the work has ended, or its caller has waited long enough.
pub async fn answer_work<B: Backend>(doors: &Doors<B>, requested: &Requested<B>) -> Result<Answered, Refusal> {
    let Requested { work, is_later } = requested;
    let now = ended(work).await;
    let Whole { now, room } = doors.backend.with_text(now).await?;
    let job = B::Job::snapshot(&now);
    let job = Snapshot { echo: answer::echo_of(&job, &work.beside), ..job };
    let agent_type = sender(doors, &job);
    let job = Snapshot { agent_type: agent_type.as_deref(), ..job };
    let shown = if *is_later { Snapshot { state: State::Queued, ..job } } else { job };
    let is_told = shown.ended().is_some();
    let status = match shown.failure() {
        _ if !is_told => StatusCode::ACCEPTED,
        failure => {
            let status = failure.map_or(200, CONTRACT.exchange().http_status);
            StatusCode::from_u16(status).unwrap_or_default()
        }
    };
    // The message stays the same, and what is said beside it may change: it is not there to be compared.
    let stuck = if is_told { None } else { doors.backend.stuck(&now) };
    let mut response = response(status, written(&shown, &Beside { stuck, ..work.beside.clone() }));
    locate::<B>(&mut response, &job);
    Ok(Answered { response: held(response, room), is_told })
}

/// Cancels the work that a caller knows by these ids (MSG-19), and answers with what became of it. `None` if the caller
/// has no such work.
pub async fn cancel_work<B: Backend>(
    doors: &Doors<B>,
    caller: &Caller,
    cancel: &Cancel,
) -> Result<Option<Response>, Refusal> {
    let Some(job) = cancel_job(&doors.backend, caller, cancel).await? else { return Ok(None) };
    let Whole { now, room } = doors.backend.with_text(job.now()).await?;
    let shown = B::Job::snapshot(&now);
    let agent_type = sender(doors, &shown);
    let shown = Snapshot { agent_type: agent_type.as_deref(), ..shown };
    let mut response = response(StatusCode::OK, written(&shown, &Beside::default()));
    locate::<B>(&mut response, &shown);
    Ok(Some(held(response, room)))
}

/// Cancels the work that a caller knows by these ids (MSG-19), and returns it. Work that goes on is also known by its
/// task.
pub async fn cancel_job<B: Backend>(backend: &B, caller: &Caller, cancel: &Cancel) -> Result<Option<B::Job>, Refusal> {
    let mut found = None;
    for id in cancel.request_id.iter().chain(&cancel.task_id) {
        if found.is_none() {
            found = backend.find(DOOR, caller, id).await?;
        }
    }
    let of_task = |id: &String| backend.find_live(DOOR, caller, |job| job.echoes(Home::TaskId, id));
    let Some(job) = found.or_else(|| cancel.task_id.as_ref().and_then(of_task)) else { return Ok(None) };
    match backend.cancel(caller, &job).await {
        // Work that has ended stays as it is, and the answer says how it ended.
        Ok(()) | Err(Denied::Ended(_)) => Ok(Some(job)),
        Err(Denied::NotFound) => Ok(None),
        Err(Denied::Refused(refusal)) => Err(refusal),
        Err(Denied::NotWaiting(_) | Denied::NotShown | Denied::WaitsForOperator) => Err(Refusal::internal()),
    }
}

/// Returns the type of the agent, if the answer is from it (MSG-18.2).
fn sender<B: Backend>(doors: &Doors<B>, job: &Snapshot<'_>) -> Option<Arc<str>> {
    job.agent.filter(|_| job.lacks_sender()).and_then(|agent| doors.backend.agent_type(agent))
}

/// Writes the work in its current state.
fn written(job: &Snapshot<'_>, beside: &Beside) -> String {
    long::look(job.outcome_bytes(), || answer::document(job, CONTRACT, beside))
}
