//! `/agents/{name}/envelope`: where an envelope of the workflow contract is given to the agent of this name (WF-8).
//!
//! `task.action` must be one of the agent's works. The answer is the output envelope, when the work has ended. What the
//! envelope recommends is carried, not followed, and its artifacts are written nowhere. An envelope has no id, so each
//! is a job of its own, unless `Idempotency-Key` says otherwise.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::post;
use crosspoint_contracts::Contract;
use crosspoint_contracts::failure::Repeat;
use crosspoint_exchange::answer;
use crosspoint_exchange::backend::{Backend, Followed, Whole};
use crosspoint_exchange::refusal::Refusal;

use super::{Asking, Doors, SentBy, ended, locate};
use crate::body::Received;
use crate::held::held;
use crate::json::response;
use crate::{Refused, long};

/// The contract of this door.
pub const CONTRACT: Contract = Contract::Workflow;

/// Path of this door; `*` stands for the name of an agent.
pub const PLACE: &str = "/agents/*/envelope";

/// How a caller learns what became of work that goes on without it: an envelope has no id that could find it.
const JOINS: &str = "send envelopes with an Idempotency-Key: with the same key again, an envelope joins the work that it began, and begins nothing new";

/// The endpoints of this door.
pub fn routes<B: Backend>() -> Router<Doors<B>> {
    Router::new().route("/agents/{name}/envelope", post(run_envelope::<B>)).method_not_allowed_fallback(wrong_method)
}

/// Has an agent do what an envelope says, and answers with its output.
async fn run_envelope<B: Backend>(
    State(doors): State<Doors<B>>,
    name: Result<Path<String>, PathRejection>,
    caller: SentBy,
    received: Received,
) -> Result<Response, Refused> {
    let unreadable = |_| Refusal::not_found("the name of the agent in the path is no text", "write it in UTF-8");
    let Path(name) = name.map_err(unreadable)?;
    let asking = Asking { wait: Some(doors.sync_wait), agent: Some(name.into()), ..Asking::default() };
    let work = doors.admit((CONTRACT, caller), asking, received).await?;
    let now = ended(&work).await;
    let job = B::Job::snapshot(&now);
    if job.ended().is_none() {
        let is_stopping = doors.site.stopping().is_cancelled();
        let refusal = if is_stopping { Refusal::leaving(job.id) } else { Refusal::waited(job.id, doors.sync_wait) };
        return Err(refusal.with_repeat(Repeat::Unknown, JOINS).into());
    }
    let Whole { now, room } = doors.backend.with_text(now).await?;
    let job = B::Job::snapshot(&now);
    let status = job.failure().map_or(200, CONTRACT.exchange().http_status);
    let written = long::look(job.outcome_bytes(), || answer::document(&job, CONTRACT, &work.beside));
    let mut response = response(StatusCode::from_u16(status).unwrap_or_default(), written);
    locate::<B>(&mut response, &job);
    Ok(held(response, room))
}

async fn wrong_method(method: Method) -> Refused {
    Refusal::wrong_method(method.as_str()).into()
}
