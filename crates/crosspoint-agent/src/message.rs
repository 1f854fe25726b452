//! `/api/agent/message`: where an orchestrator pushes work in the message contract (MSG-14), and cancels it.
//!
//! Work that is done soon is answered with its outcome on the same connection (MSG-17). Other work is answered with a
//! `work_status`; how it goes on is told to the orchestrator if its address is known, and the same request again gets
//! the outcome in any case.

mod poll;
pub(crate) mod pull;
pub(crate) mod telling;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::post;
use crosspoint_contracts::Kind;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::message::{About, Cancel};
use crosspoint_exchange::admission::{self, Admitted, Caller};
use crosspoint_exchange::backend::Followed;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::door::message::{self, CONTRACT};
use crosspoint_http::door::{Asking, Doors, SentBy};
use uuid::Uuid;

use self::telling::Orchestrator;
use crate::backend::OwnJobs;
use crate::record::Job;

/// How long an orchestrator that does not say how long it waits is kept waiting. It gives up after 30 s of silence.
const HOLD: Duration = Duration::from_secs(20);

/// The same for an orchestrator that can be told how the work goes on.
const HOLD_TOLD: Duration = Duration::from_secs(1);

/// Interval at which a stopping agent checks whether all was told.
const TOLD_PERIOD: Duration = Duration::from_millis(10);

/// What the endpoint shares; cloning shares it.
#[derive(Clone)]
pub(crate) struct Messages {
    pub(crate) doors: Doors<OwnJobs>,
    pub(crate) reports: Reports,
}

impl axum::extract::FromRef<Messages> for crosspoint_http::Site {
    fn from_ref(messages: &Messages) -> crosspoint_http::Site {
        messages.doors.site.clone()
    }
}

/// Tells an orchestrator of jobs, each once at a time; cloning shares it.
#[derive(Clone)]
pub(crate) struct Reports {
    to: Option<Arc<Orchestrator>>,
    backend: OwnJobs,
    told: Arc<Mutex<BTreeSet<Uuid>>>,
}

impl Reports {
    pub(crate) fn new(to: Option<Arc<Orchestrator>>, backend: OwnJobs) -> Reports {
        Reports { to, backend, told: Arc::default() }
    }

    /// Returns the orchestrator that is told, if there is one.
    pub(crate) fn orchestrator(&self) -> Option<&Orchestrator> {
        self.to.as_deref()
    }

    /// Begins to tell of a job, unless it is being told of.
    pub(crate) fn tell(&self, work: &Admitted<Job>) {
        let Some(orchestrator) = self.to.clone() else { return };
        let id = work.job.now().asked.id;
        let lock = |told: &Mutex<BTreeSet<Uuid>>, change: &dyn Fn(&mut BTreeSet<Uuid>) -> bool| {
            change(&mut told.lock().unwrap_or_else(PoisonError::into_inner))
        };
        if !lock(&self.told, &|told| told.insert(id)) {
            return;
        }
        let (job, beside, backend, told) =
            (work.job.clone(), work.beside.clone(), self.backend.clone(), self.told.clone());
        tokio::spawn(async move {
            orchestrator.tell(&backend, job, beside).await;
            lock(&told, &|told| told.remove(&id));
        });
    }

    /// Waits until no job is being told of.
    pub(crate) async fn all_told(&self) {
        while !self.told.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            tokio::time::sleep(TOLD_PERIOD).await;
        }
    }
}

/// The endpoint.
pub(crate) fn routes() -> Router<Messages> {
    Router::new().route("/api/agent/message", post(take_message))
}

async fn take_message(
    State(messages): State<Messages>,
    caller: SentBy,
    uri: Uri,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refused> {
    let bytes = received.bytes.clone();
    let about = |refusal| admission::about(refusal, CONTRACT, &bytes, &[]);
    if About::of(&bytes).kind == Some(Kind::MessageError) {
        return Ok(cancel(&messages.doors, &caller.0, &bytes).await.map_err(about)?);
    }
    let hold = if messages.reports.to.is_some() { HOLD_TOLD } else { HOLD };
    let asking = Asking { wait: Some(hold), ..Asking::default() };
    let mut requested = message::request_work(&messages.doors, caller, asking, (&uri, &headers), received).await?;
    pass_on(&requested.work.job, &bytes);
    requested.work.wait = requested.work.wait.or(Some(hold));
    let answered = message::answer_work(&messages.doors, &requested).await.map_err(about)?;
    if !answered.is_told {
        messages.reports.tell(&requested.work);
    }
    Ok(answered.response)
}

/// Gives a job the person's answer that came with its request (ALL-5). The same request without one asks how it goes,
/// and the same message again brings nothing new: the job may ask something else by then.
fn pass_on(job: &Job, request: &[u8]) {
    let Ok(tape) = Tape::scan(request) else { return };
    let Some(root) = tape.root() else { return };
    let carried = root.get("x_custom_fields").and_then(|own| own.get("x_crosspoint"));
    let Some(answer) = carried.and_then(|carried| carried.get("answer")) else { return };
    let message_id = root.get("message_id").map_or("", |id| id.source());
    if job.is_new_answer(message_id) {
        job.answer(Body::trusted(answer.source().to_owned()));
    }
}

async fn cancel(doors: &Doors<OwnJobs>, caller: &Caller, bytes: &[u8]) -> Result<Response, Refusal> {
    let cancel = Cancel::read(bytes).ok_or_else(|| {
        Refusal::invalid("an agent takes an `error` only if it cancels work", "send error_code 5901 to cancel work")
    })?;
    let cancelled = message::cancel_work(doors, caller, &cancel).await?;
    // Work that is not known is not done, which is what was asked for.
    Ok(cancelled.unwrap_or_else(|| crosspoint_http::json::response(StatusCode::OK, Vec::new())))
}
