//! One log line per request: ids first, never content.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::header::LOCATION;
use axum::http::{Method, Response, StatusCode, Uri};
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::Snapshot;
use uuid::Uuid;

use crate::limit::Peer;

const JOBS: &str = "/api/v1/jobs/";

/// Most bytes of a path that are logged. Paths hold ids and names, and anything longer is neither.
const PATH_BYTES_MAX: usize = 200;

/// The work that a request was about, if its path does not say so. It is attached to the answer.
#[derive(Clone, Debug)]
pub struct About {
    job: Option<Uuid>,
    request_id: Box<str>,
    work: Option<Box<str>>,
}

impl About {
    /// Describes a job.
    pub fn job(job: &Snapshot<'_>) -> About {
        About { job: Some(job.id), request_id: job.request_id.into(), work: Some(job.work.into()) }
    }

    /// Describes a refused request, if its names are short enough to be names.
    pub(crate) fn refused(refusal: &Refusal) -> Option<About> {
        let short = |name: &&str| name.len() <= NAME_BYTES_MAX;
        let request_id = refusal.request_id().filter(short)?.into();
        Some(About { job: None, request_id, work: refusal.work().filter(short).map(Into::into) })
    }
}

/// The name of the token that came with a request, where it is known. It is attached to the answer.
#[derive(Clone, Debug)]
pub struct TokenName(pub Arc<str>);

/// Whether the log has lines of requests.
pub(crate) fn is_wanted() -> bool {
    tracing::enabled!(tracing::Level::INFO)
}

/// What is known of a request before it is answered.
pub(crate) struct Record {
    method: Method,
    uri: Uri,
    from: Peer,
    began: Instant,
}

impl Record {
    /// Begins a record; `None` if the log does not want it.
    pub(crate) fn begin(method: &Method, uri: &Uri, from: Peer) -> Option<Record> {
        is_wanted().then(|| Record { method: method.clone(), uri: uri.clone(), from, began: Instant::now() })
    }

    pub(crate) fn end<B>(&self, response: &Response<B>) {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let path = shortened(self.uri.path());
        let about = response.extensions().get::<About>();
        let job = about.and_then(|about| about.job).or_else(|| location.and_then(job_in)).or_else(|| job_in(path));
        // A client that is not let in, or asks too often, can be helped or stopped only if its address is known.
        let is_turned_away = is_turning_away(response.status());
        let from = Some(self.from).filter(|_| is_turned_away).and_then(address);
        let token = response.extensions().get::<TokenName>().filter(|_| is_turned_away);
        tracing::info!(
            job = job.map(tracing::field::display),
            request_id = about.map(|about| &*about.request_id),
            work = about.and_then(|about| about.work.as_deref()),
            method = shortened(self.method.as_str()),
            path,
            status = response.status().as_u16(),
            from = from.map(tracing::field::display),
            token = token.map(|token| &*token.0),
            duration_ms = self.began.elapsed().as_micros() as f64 / 1000.0,
            "request"
        );
    }
}

fn is_turning_away(status: StatusCode) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

fn address(peer: Peer) -> Option<IpAddr> {
    match peer {
        Peer::Address(address) => Some(address.to_canonical()),
        Peer::Local => None,
    }
}

/// Returns the id of the job that a path names. Any other text in that place is no id.
fn job_in(path: &str) -> Option<Uuid> {
    path.strip_prefix(JOBS)?.split('/').next()?.parse().ok()
}

fn shortened(text: &str) -> &str {
    let end = (0..=PATH_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
