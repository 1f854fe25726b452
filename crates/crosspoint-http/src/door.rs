//! The doors of contracts: what they do over HTTP for callers of their contract, whatever backend does the work.
//!
//! A door reads what came beside a document, has the work admitted, waits, and writes the job as a document of its
//! contract. What documents mean is said in `crosspoint-exchange`.

pub mod message;
pub mod run;
pub mod task;
pub mod workflow;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::{HeaderValue, LOCATION};
use axum::http::request::Parts;
use axum::response::Response;
use crosspoint_contracts::Contract;
use crosspoint_exchange::admission::{self, Admitted, Caller, Headers};
use crosspoint_exchange::backend::{Backend, Followed};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

use crate::body::Received;
use crate::request_log::{self, About};
use crate::{Site, headers, long};

/// What the doors of one server share; cloning shares it.
#[derive(Clone)]
pub struct Doors<B> {
    /// The side that does the work.
    pub backend: B,
    /// The server that the doors belong to.
    pub site: Site,
    /// Longest time that a caller may ask to wait.
    pub wait_max: Duration,
    /// How long a caller waits that can only be answered with the outcome.
    pub sync_wait: Duration,
}

impl<B: Clone> FromRef<Doors<B>> for Site {
    fn from_ref(doors: &Doors<B>) -> Site {
        doors.site.clone()
    }
}

/// The caller that sent a request, as the server around the doors has found and left with the request. Without tokens
/// all requests come from the same caller.
pub struct SentBy(pub Caller);

impl<S: Sync> FromRequestParts<S> for SentBy {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<SentBy, Infallible> {
        Ok(SentBy(parts.extensions.get::<Caller>().cloned().unwrap_or_default()))
    }
}

/// When the head of a request arrived.
pub struct Arrived(pub Instant);

impl<S: Sync> FromRequestParts<S> for Arrived {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Arrived, Infallible> {
        Ok(Arrived(Instant::now()))
    }
}

/// What path and query say about new work.
#[derive(Clone, Debug, Default)]
pub struct Asking {
    /// How long the caller waits for the outcome.
    pub wait: Option<Duration>,
    /// The work that is meant by the name in the document.
    pub work: Option<String>,
    /// The agent that the work is for.
    pub agent: Option<Arc<str>>,
    /// Types of agents that the operator added to those of the contract.
    pub agent_types: Arc<[Box<str>]>,
    /// The recipient that is to be told of the outcome.
    pub notify: Option<Arc<str>>,
    /// Warnings about how the request was sent, for a caller that does not wait for the outcome.
    pub warnings: Vec<String>,
}

impl<B: Backend> Doors<B> {
    /// Returns what ends when followers of jobs are to be left alone: the server stops, and their jobs go on when it is
    /// back; or it has given the jobs time to end.
    pub(crate) fn leaving(&self) -> &CancellationToken {
        if B::GOES_ON { self.site.stopping() } else { self.site.closing() }
    }

    /// Makes a job of a request, or finds the job that it repeats. `asking` is what the query says.
    pub async fn admit(
        &self,
        (contract, SentBy(caller)): (Contract, SentBy),
        asking: Asking,
        received: Received,
    ) -> Result<Admitted<B::Job>, Refusal> {
        let Asking { wait, work, agent, agent_types, notify, warnings } = asking;
        let about = |refusal| admission::about(refusal, contract, &received.bytes, &agent_types);
        let headers = &received.headers;
        let key = headers::idempotency_key(headers).map_err(about)?;
        let agent_types = agent_types.clone();
        let headers = Headers { caller, key, trace: headers::trace(headers), work, agent, wait, agent_types, notify };
        let bytes = &received.bytes;
        let reading = long::look(bytes.len(), || admission::read(contract, bytes, headers));
        let reading = reading.map_err(|refusal| refusal.knowing(&self.backend.agents()))?;
        let mut admitted = admission::submit(&self.backend, reading).await?;
        if wait.is_none() {
            admitted.beside.warnings.extend(warnings);
        }
        Ok(admitted)
    }
}

/// Returns the job once it has ended, or in its current state when its caller has waited long enough.
pub async fn ended<J: Followed>(admitted: &Admitted<J>) -> J::Now {
    match admitted.wait {
        Some(wait) => admitted.job.ended(Instant::now() + wait).await,
        None => admitted.job.now(),
    }
}

/// Returns the job once it has ended or asks a person, or in its current state when its caller has waited long enough.
pub async fn settled<J: Followed>(job: &J, wait: Option<Duration>) -> J::Now {
    match wait {
        Some(wait) => job.settled(Instant::now() + wait).await,
        None => job.now(),
    }
}

/// Tells the log and the caller which job an answer at the door of a contract is about. The caller may want to answer
/// the job's question or cancel the job.
pub fn locate<B: Backend>(response: &mut Response, job: &Snapshot<'_>) {
    let location = B::JOBS_AT.map(|place| format!("{place}/{}", job.id));
    if let Some(Ok(location)) = location.map(HeaderValue::try_from) {
        response.headers_mut().insert(LOCATION, location);
    }
    if request_log::is_wanted() {
        response.extensions_mut().insert(About::job(job));
    }
}
