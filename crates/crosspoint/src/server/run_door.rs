//! The run door: where callers of the run contract come in.
//!
//! Both endpoints take the same request and make the same job of it: asked at one and again at the other, it is the same run
//! (RUN-9.2). They differ in how they wait: one for the outcome alone, the other for all that happens on the way. Neither
//! stops a run by leaving it (RUN-10).

mod stream;

use std::time::Instant;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::{Contract, Kind, run};
use crosspoint_engine::core::Rejected;
use crosspoint_engine::job::{Job, Outcome};
use crosspoint_engine::runtime::{Submitted, Unaccepted, Watch};

use super::App;
use super::body::Received;
use super::jobs::{locate, outcome_bytes};
use super::json::response;
use super::refusal::Refusal;
use super::submit::{self, NAME_BYTES_MAX};
use crate::long;
use crate::passage::answer;
use crate::passage::incoming::{self, Headers, Incoming};

/// Runs, and answers with what came of it.
pub(super) async fn run_sync(
    State(app): State<App>,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let run = admitted(&app, &headers, received).await?;
    let job = run.watch.ended(Instant::now() + app.0.sync_wait).await;
    match job.outcome() {
        Some(outcome) => Ok(run.answer(&job, outcome)),
        None if app.stopping().is_cancelled() => Err(run.refuse(Refusal::leaving(job.id()))),
        None => Err(run.refuse(Refusal::waited(job.id(), app.0.sync_wait))),
    }
}

/// Runs, and tells of it as it goes on.
pub(super) async fn run_stream(
    State(app): State<App>,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let run = admitted(&app, &headers, received).await?;
    stream::response(app, run)
}

/// RUN-121: runs are posted.
pub(super) async fn wrong_method(method: Method) -> Refusal {
    Refusal::wrong_method(&method).clause("RUN-121")
}

/// A run that is a job, and what its caller gets to see of that.
struct Run {
    watch: Watch,
    /// Whether it was there before this request.
    joined: bool,
    /// What the caller calls it, where the job has another id because the same `Idempotency-Key` came with another request.
    known_as: Option<Box<str>>,
    /// What was loose about the request.
    warnings: Vec<String>,
}

/// Makes a job of a request, or finds the one that it repeats.
async fn admitted(app: &App, headers: &HeaderMap, received: Received) -> Result<Run, Refusal> {
    let about = |refusal| about(refusal, &received.bytes);
    if app.stopping().is_cancelled() {
        return Err(about(Refusal::stopping()));
    }
    let incoming = read(&received.bytes, headers).map_err(about)?;
    let warnings = incoming.warnings();
    let request_id = incoming.new.request_id.clone();
    let submitted = app.engine().submit(incoming.new).await.map_err(|why| about(unaccepted(app, &why)))?;
    let (watch, joined) = match submitted {
        Submitted::New(watch) => (watch, false),
        Submitted::Repeat(watch) => (watch, true),
    };
    let known_as = request_id.filter(|id| *id != watch.job().request.request_id);
    Ok(Run { watch, joined, known_as, warnings })
}

/// Reads a request; what is wrong with it is said all at once.
fn read(document: &Bytes, headers: &HeaderMap) -> Result<Incoming, Refusal> {
    let key = submit::idempotency_key(headers)?;
    let headers = Headers { key, trace: submit::traceparent(headers) };
    let incoming = long::look(document.len(), || incoming::read(Kind::RunRequest, document, headers));
    let incoming = incoming.map_err(|report| submit::malformed(Kind::RunRequest, *report))?;
    let names = [
        ("/request_id", incoming.new.request_id.as_deref().unwrap_or_default()),
        ("/task_type", &incoming.new.work),
        ("/stage_id", incoming.stage.as_deref().unwrap_or_default()),
    ];
    if let Some((pointer, _)) = names.into_iter().find(|(_, name)| name.len() > NAME_BYTES_MAX) {
        return Err(submit::too_long(pointer));
    }
    Ok(incoming)
}

/// Refusals know jobs; callers here know the members of their own request.
fn unaccepted(app: &App, why: &Unaccepted) -> Refusal {
    let refusal = Refusal::unaccepted(app, why);
    match why {
        Unaccepted::Rejected(Rejected::UnknownWork) => refusal.at("/task_type").clause("RUN-5"),
        Unaccepted::Rejected(Rejected::UnknownAgent) => refusal.at("/x_crosspoint/target"),
        Unaccepted::Rejected(Rejected::NotItsWork) => {
            let hint = "leave `x_crosspoint.target` out, or GET /api/v1/agents for who takes what";
            let refusal = Refusal::unsupported("the target does not take runs of this task_type", hint);
            refusal.at("/x_crosspoint/target").clause("ALL-6")
        }
        Unaccepted::Rejected(Rejected::Full { .. })
        | Unaccepted::Conflict(_)
        | Unaccepted::Overloaded
        | Unaccepted::Closed
        | Unaccepted::Lost
        | Unaccepted::Fault(_)
        | Unaccepted::NotTried(_) => refusal,
    }
}

/// RUN-5.2: what the caller calls it, where that could be read.
fn about(refusal: Refusal, document: &Bytes) -> Refusal {
    let [request_id, task_type] = incoming::names_in(document, ["request_id", "task_type"]);
    refusal.of_request(request_id).of_work(task_type)
}

impl Run {
    /// How it ended.
    fn answer(&self, job: &Job, outcome: &Outcome) -> Response {
        let status = outcome.failure.map_or(200, |(failure, _)| run::failure::write(failure).1);
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let mut response = response(status, self.ending(job, answer::document));
        locate(&mut response, job);
        response
    }

    /// The document of how it ended, as this writes it: the same bytes however often and wherever it is asked for.
    fn ending(&self, job: &Job, write: fn(&Job, Contract) -> String) -> String {
        let known = answer::known_as(job, self.known_as.as_deref());
        long::look(outcome_bytes(job), || answer::warned(write(&known, Contract::Run), &self.warnings))
    }

    /// A refusal that is about this run.
    fn refuse(&self, refusal: Refusal) -> Refusal {
        let request = &self.watch.job().request;
        let request_id = self.known_as.as_deref().unwrap_or(&request.request_id);
        refusal.of_request(Some(request_id.to_owned())).of_work(Some(request.work.to_string()))
    }
}
