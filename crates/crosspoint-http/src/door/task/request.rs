//! What a request for a task says outside its body: which task, and how long its caller waits.

use std::fmt::Write;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::header::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;

use super::{Doors, PREFERENCE_APPLIED, prefer, refused};
use crate::json::response;
use crate::{Refused, query};

/// The task that a path names, by the id that its caller gave it.
pub(crate) struct TaskId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for TaskId {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<TaskId, Refused> {
        // A path that is not text is not the id of any task.
        let Path(id) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| refused::no_such_task(None))?;
        Ok(TaskId(id))
    }
}

/// How long a caller waits: `?wait=S`, or else `Prefer: wait=S`.
pub(crate) struct RequestedWait {
    pub(crate) wait: Option<Duration>,
    /// The wait in seconds that was granted because the header asked for it.
    preferred: Option<u64>,
}

impl<B: Sync> FromRequestParts<Doors<B>> for RequestedWait {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors<B>) -> Result<RequestedWait, Refused> {
        let asked = query::wait(&parts.uri, doors.wait_max)?;
        if asked.is_some() {
            return Ok(RequestedWait { wait: asked, preferred: None });
        }
        let headers = parts.headers.get_all("prefer").iter();
        let preferred = prefer::wait(headers.filter_map(|line| line.to_str().ok()));
        // A preference is granted as far as possible. A query that cannot be granted is a mistake.
        let wait = preferred.map(|seconds| Duration::from_secs(seconds).min(doors.wait_max));
        Ok(RequestedWait { wait, preferred: wait.map(|wait| wait.as_secs()) })
    }
}

impl RequestedWait {
    /// Makes the answer, and says which preference was applied.
    pub(crate) fn answer(&self, status: StatusCode, document: String) -> Response {
        let mut response = response(status, document);
        if let Some(seconds) = self.preferred
            && let Ok(applied) = HeaderValue::try_from(format!("wait={seconds}"))
        {
            response.headers_mut().insert(PREFERENCE_APPLIED, applied);
        }
        response
    }
}

/// Encodes a text as one segment of a path. Every character that RFC 3986 does not call unreserved is encoded.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to memory does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
