//! `/api/v1/jobs/{id}/events`: the events of a job, as server-sent events.
//!
//! Events are read from the store as the caller takes them. So a slow caller costs nothing, and a caller that
//! reconnects with `Last-Event-ID` misses nothing.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::sse;
use crosspoint_engine::event::Entry;
use crosspoint_engine::runtime::Follow;
use futures_util::{Stream, stream};

use super::query::{self, Id};
use super::refusal::Refusal;
use super::view::Event;
use super::{App, event_stream};

/// Interval at which an idle stream sends a comment, because proxies would otherwise take it for dead.
pub(super) const KEEP_ALIVE_PERIOD: Duration = Duration::from_secs(15);

pub(super) async fn follow_job(
    State(app): State<App>,
    Id(id): Id,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let asked = query::events(&uri)?;
    let after = last_seen(&headers)?.or(asked.after).unwrap_or(0);
    let follow = app.engine().follow(id, after).await.map_err(|fault| Refusal::fault(&fault))?;
    let follow = follow.ok_or_else(Refusal::no_such_job)?;
    let events = stream::unfold((app, follow), move |(app, mut follow)| async move {
        let bytes = next(&app, &mut follow, asked.only_past).await?;
        Some((bytes, (app, follow)))
    });
    Ok(response(events))
}

/// An answer that streams events.
pub(super) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = event_stream::response(events);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A comment that keeps an idle stream alive.
pub(super) fn keep_alive() -> Bytes {
    Bytes::from_static(b": keep-alive\n\n")
}

/// Reads the `Last-Event-ID` header. It overrides the query, because a browser that reconnects sends it with the
/// address that it used first.
pub(super) fn last_seen(headers: &HeaderMap) -> Result<Option<u32>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let refusal = || Refusal::invalid("the Last-Event-ID header is not the number of an event", "send the last `id:`");
    number.map(Some).ok_or_else(refusal)
}

/// Returns the next bytes of the stream, or `None` at its end.
async fn next(app: &App, follow: &mut Follow, only_past: bool) -> Option<Bytes> {
    let patience = if only_past { Duration::ZERO } else { KEEP_ALIVE_PERIOD };
    let found = tokio::select! {
        found = follow.next(Instant::now() + patience) => found,
        () = app.stopping().cancelled() => return None,
    };
    match found {
        Ok(Some(entry)) => Some(written(&entry)),
        Ok(None) if only_past || follow.is_done() => None,
        Ok(None) => Some(keep_alive()),
        Err(fault) => {
            tracing::error!(error = %fault, "a stream of events ends early");
            None
        }
    }
}

fn written(entry: &Entry) -> Bytes {
    let data = serde_json::to_string(&Event(entry)).unwrap_or_default();
    let mut out = Vec::with_capacity(data.len() + 64);
    // Names of events are ours and contain no line breaks.
    let _ = sse::event(&mut out, entry.what.name(), Some(u64::from(entry.n)), &data);
    out.into()
}
