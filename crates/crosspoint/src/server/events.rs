//! `/api/v1/jobs/{id}/events`: the events of a job, as server-sent events.
//!
//! Events are read from the store as the caller takes them. So a slow caller costs nothing, and a caller that
//! reconnects with `Last-Event-ID` misses nothing.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::sse;
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::runtime::{Follow, TextRoom};
use crosspoint_engine::store::Found;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::event_stream::{KEEP_ALIVE_PERIOD, keep_alive, last_seen, response};
use crosspoint_http::limit::StreamPlace;
use crosspoint_http::query::events;
use futures_util::stream;

use super::App;
use super::access::Who;
use super::query::Id;
use super::view::Event;
use crate::backend::{fault, with_text};

pub(super) async fn follow_job(
    State(app): State<App>,
    who: Who,
    Id(id): Id,
    place: StreamPlace,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let asked = events(&uri)?;
    let after = last_seen(&headers)?.or(asked.after).unwrap_or(0);
    app.read_job(&who, id, "events").await?;
    let follow = app.engine().follow(id, after).await.map_err(|error| fault(&error))?;
    let follow = follow.ok_or_else(Refusal::no_such_job)?;
    // The last event may be long, and takes room until its caller has taken it.
    let events = stream::unfold((app, follow, None), move |(app, mut follow, _room)| async move {
        let (bytes, room) = next(&app, &mut follow, asked.only_past).await?;
        Some((bytes, (app, follow, room)))
    });
    Ok(response(events, place))
}

/// Returns the next bytes of the stream, or `None` at its end.
async fn next(app: &App, follow: &mut Follow, only_past: bool) -> Option<(Bytes, Option<TextRoom>)> {
    let wait = if only_past { Duration::ZERO } else { KEEP_ALIVE_PERIOD };
    // A server that stops ends this wait. What has happened until then is told.
    match follow.next(Instant::now() + wait).await {
        Ok(Some(entry)) => match whole(app, follow, entry).await {
            Ok((entry, room)) => Some((written(&entry, &violations(app, follow, &entry).await), room)),
            // The caller that reconnects asks for this event again.
            Err(_) => None,
        },
        Ok(None) if only_past || follow.is_done() || app.stopping().is_cancelled() => None,
        Ok(None) => Some((keep_alive(), None)),
        Err(fault) => {
            tracing::error!(error = %fault, "a stream of events ends early");
            None
        }
    }
}

/// Returns the event with the whole text of the outcome, if it is the last.
async fn whole(app: &App, follow: &Follow, entry: Entry) -> Result<(Entry, Option<TextRoom>), Refusal> {
    let What::Ended(ending) = &entry.what else { return Ok((entry, None)) };
    if ending.printed().is_none() {
        return Ok((entry, None));
    }
    let (job, room) = with_text(app.engine(), follow.job()).await?;
    let what = job.outcome().map(|ending| What::Ended(ending.clone()));
    Ok((Entry { what: what.unwrap_or(entry.what), ..entry }, room))
}

/// Returns the rules that were broken about a job, for its last event. They are no events, because agents break rules
/// after the outcome too.
async fn violations(app: &App, follow: &Follow, entry: &Entry) -> Vec<Found> {
    let What::Ended(_) = entry.what else { return Vec::new() };
    app.engine().violations(follow.job().id()).await.unwrap_or_default()
}

fn written(entry: &Entry, violations: &[Found]) -> Bytes {
    let data = serde_json::to_string(&Event { entry, violations }).unwrap_or_default();
    let mut out = Vec::with_capacity(data.len() + 64);
    // Names of events are ours and contain no line breaks.
    let _ = sse::event(&mut out, entry.what.name(), Some(u64::from(entry.n)), &data);
    out.into()
}
