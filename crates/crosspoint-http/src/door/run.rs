//! The run door: where callers of the run contract come in.
//!
//! Both endpoints take the same request and make the same job of it: the same request at one and then at the other is
//! the same run (RUN-9.2). They differ in how they wait: one for the outcome only, the other for every event on the
//! way. A caller that leaves does not stop the run (RUN-10).

mod stream;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::post;
use crosspoint_contracts::Contract;
use crosspoint_contracts::run::unused_input;
use crosspoint_exchange::admission::Admitted;
use crosspoint_exchange::answer;
use crosspoint_exchange::backend::{Backend, Followed, Whole};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::Snapshot;

use super::{Asking, Doors, SentBy, ended, locate};
use crate::body::Received;
use crate::held::held;
use crate::json::response;
use crate::limit::StreamPlace;
use crate::{Refused, long};

/// The contract of this door.
pub const CONTRACT: Contract = Contract::Run;

/// Path of this door.
pub const PLACE: &str = "/agents/run";

/// The endpoints of this door.
pub fn routes<B: Backend>() -> Router<Doors<B>> {
    Router::new()
        .route("/agents/run/sync", post(run_sync::<B>))
        .route("/agents/run/stream", post(run_stream::<B>))
        .method_not_allowed_fallback(wrong_method)
}

/// Runs, and answers with the outcome.
async fn run_sync<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    received: Received,
) -> Result<Response, Refused> {
    let asking = Asking { wait: Some(doors.sync_wait), ..Asking::default() };
    let run = admit(&doors, caller, asking, received).await?;
    let now = ended(&run).await;
    let job = B::Job::snapshot(&now);
    if job.ended().is_none() {
        let is_stopping = doors.site.stopping().is_cancelled();
        let refusal = if is_stopping { Refusal::leaving(job.id) } else { Refusal::waited(job.id, doors.sync_wait) };
        return Err(refuse(&run, refusal).into());
    }
    let Whole { now, room } = doors.backend.with_text(now).await.map_err(|refusal| refuse(&run, refusal))?;
    let job = B::Job::snapshot(&now);
    let status = job.failure().map_or(200, CONTRACT.exchange().http_status);
    let mut response = response(StatusCode::from_u16(status).unwrap_or_default(), written(&run, &job));
    locate::<B>(&mut response, &job);
    Ok(held(response, room))
}

/// Runs, and answers with a stream of events.
async fn run_stream<B: Backend>(
    State(doors): State<Doors<B>>,
    caller: SentBy,
    place: StreamPlace,
    received: Received,
) -> Result<Response, Refused> {
    let run = admit(&doors, caller, Asking::default(), received).await?;
    Ok(stream::response(doors, run, place)?)
}

/// Makes a job of a request. Its caller is told of a member that was perhaps meant as the input.
async fn admit<B: Backend>(
    doors: &Doors<B>,
    caller: SentBy,
    asking: Asking,
    received: Received,
) -> Result<Admitted<B::Job>, Refusal> {
    let warning = unused_input(&received.bytes);
    let mut run = doors.admit((CONTRACT, caller), asking, received).await?;
    run.beside.warnings.extend(warning);
    Ok(run)
}

/// RUN-121: runs are posted.
async fn wrong_method(method: Method) -> Refused {
    Refusal::wrong_method(method.as_str()).clause("RUN-121").into()
}

/// Writes the run in its current state. An ended run is always written with the same bytes, at either endpoint.
fn written<J>(run: &Admitted<J>, job: &Snapshot<'_>) -> String {
    long::write(job, || answer::document(job, CONTRACT, &run.beside))
}

/// Makes a refusal name this run.
fn refuse<J: Followed>(run: &Admitted<J>, refusal: Refusal) -> Refusal {
    let now = run.job.now();
    let job = J::snapshot(&now);
    let request_id = run.beside.known_as.as_deref().unwrap_or(job.request_id);
    refusal.of_request(Some(request_id.to_owned())).of_work(Some(job.work.to_owned()))
}
