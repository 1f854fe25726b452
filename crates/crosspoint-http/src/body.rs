//! Reading a body within limits: of its own size, of its time, and of all bodies together.
//!
//! A declared length is used only to refuse a body that is too long. Room is reserved for bytes that have arrived, not
//! for bytes that were announced: otherwise eight callers that announce much and send nothing would keep all other
//! callers out.

use axum::body::Body;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, HeaderMap};
use bytes::{Bytes, BytesMut};
use crosspoint_exchange::refusal::{Limit, Refusal};
use http_body_util::BodyExt;

use super::{Refused, Site};

/// Longest body that is copied, in bytes. A short body lies in the connection's buffer of 8 KiB, which would otherwise
/// be kept for as long as a job's agent has its input.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// A body, and the room that it takes until this value is dropped.
pub struct Received {
    /// The body.
    pub bytes: Bytes,
    _room: Room,
}

impl<S: Send + Sync> FromRequest<S> for Received
where
    Site: FromRef<S>,
{
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Received, Refused> {
        let site = Site::from_ref(state);
        let (parts, body) = request.into_parts();
        let (bytes_max, time_max) = (site.limits().body_bytes_max, site.limits().body_time_max);
        if declared(&parts.headers).is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(Refusal::too_large(bytes_max).into());
        }
        match tokio::time::timeout(time_max, read(&site, body, bytes_max)).await {
            Ok(received) => Ok(received?),
            Err(_) => Err(Refusal::too_slow("body", Limit::BodySeconds, time_max).into()),
        }
    }
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read(site: &Site, mut body: Body, bytes_max: usize) -> Result<Received, Refusal> {
    let mut room = Room { site: site.clone(), bytes: 0 };
    // Nearly always the whole body arrives at once. A long one is then used where it arrived.
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::invalid("the body ended before it was complete", "send all of it"))?;
        let Ok(data) = frame.into_data() else { continue };
        room.take(data.len())?;
        if room.bytes > bytes_max {
            return Err(Refusal::too_large(bytes_max));
        }
        if first.is_empty() {
            first = if data.len() > SHARED_BYTES_MIN { data } else { Bytes::copy_from_slice(&data) };
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    let bytes = if rest.is_empty() { first } else { rest.freeze() };
    Ok(Received { bytes, _room: room })
}

/// A part of the room for all bodies.
struct Room {
    site: Site,
    bytes: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes += bytes;
        if !self.site.reserve(bytes) {
            let hint = "nothing was done; send it again later; the operator can raise [limits] bodies_bytes";
            let refusal = Refusal::unavailable("too many bodies are being read at a time", hint);
            return Err(refusal.over(Limit::BodiesBytes));
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.site.give_back(self.bytes);
    }
}
