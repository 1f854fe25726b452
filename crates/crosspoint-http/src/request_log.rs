//! One log line per request: ids first, never content.

use std::time::Instant;

use axum::http::header::LOCATION;
use axum::http::{Method, Response, Uri};
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::Snapshot;
use uuid::Uuid;

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

/// What is known of a request before it is answered.
pub(crate) struct Record {
    method: Method,
    uri: Uri,
    began: Instant,
}

impl Record {
    /// Begins a record; `None` if the log does not want it.
    pub(crate) fn begin(method: &Method, uri: &Uri) -> Option<Record> {
        let wanted = tracing::enabled!(tracing::Level::INFO);
        wanted.then(|| Record { method: method.clone(), uri: uri.clone(), began: Instant::now() })
    }

    pub(crate) fn end<B>(&self, response: &Response<B>) {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let path = shortened(self.uri.path());
        let about = response.extensions().get::<About>();
        let job = about.and_then(|about| about.job).or_else(|| location.and_then(job_in)).or_else(|| job_in(path));
        tracing::info!(
            job = job.map(tracing::field::display),
            request_id = about.map(|about| &*about.request_id),
            work = about.and_then(|about| about.work.as_deref()),
            method = shortened(self.method.as_str()),
            path,
            status = response.status().as_u16(),
            duration_ms = self.began.elapsed().as_micros() as f64 / 1000.0,
            "request"
        );
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
