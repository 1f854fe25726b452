//! One line of log a request: ids first, never content.

use std::time::Instant;

use axum::http::header::LOCATION;
use axum::http::{Method, Response, Uri};
use crosspoint_engine::id::JobId;

const JOBS: &str = "/api/v1/jobs/";

/// Paths hold ids and names; more of one than this is neither, in bytes.
const PATH_BYTES_MAX: usize = 200;

/// What is known of a request before it is answered.
pub(super) struct Record {
    method: Method,
    uri: Uri,
    began: Instant,
}

impl Record {
    /// `None` where nobody reads it.
    pub(super) fn begin(method: &Method, uri: &Uri) -> Option<Record> {
        let wanted = tracing::enabled!(tracing::Level::INFO);
        wanted.then(|| Record { method: method.clone(), uri: uri.clone(), began: Instant::now() })
    }

    pub(super) fn end<B>(&self, response: &Response<B>) {
        let location = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let path = shortened(self.uri.path());
        tracing::info!(
            job = location.and_then(job_in).or_else(|| job_in(path)).map(tracing::field::display),
            method = shortened(self.method.as_str()),
            path,
            status = response.status().as_u16(),
            duration_ms = self.began.elapsed().as_micros() as f64 / 1000.0,
            "request"
        );
    }
}

/// Whatever else stands there is in the path, and nobody's id.
fn job_in(path: &str) -> Option<JobId> {
    path.strip_prefix(JOBS)?.split('/').next()?.parse().ok()
}

fn shortened(text: &str) -> &str {
    let end = (0..=PATH_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
