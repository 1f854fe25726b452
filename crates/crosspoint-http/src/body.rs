//! Reading a body within limits: of its own size, of its time, and of all bodies together.
//!
//! A declared length is used only to refuse a body that is too long. Room is reserved for bytes that have arrived, not
//! for bytes that were announced: otherwise eight callers that announce much and send nothing would keep all other
//! callers out.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use axum::body::Body;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, HeaderMap};
use bytes::{Bytes, BytesMut};
use crosspoint_exchange::refusal::{Limit, Refusal, TokenStatus};
use http_body_util::BodyExt;

use super::limit::bodies::{BodyRoom, Full, sender};
use super::{Refused, Site};

/// Longest body that is copied, in bytes. A short body lies in the connection's buffer of 8 KiB, which would otherwise
/// be kept for as long as a job's agent has its input.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// Most bytes that are read of a body whose sender is refused.
const REFUSED_BYTES_MAX: usize = 64 << 10;

/// Attached to a request that is refused because of its token, whatever is in it, where the refusal repeats what the
/// body says. A longer body is refused without being read.
#[derive(Clone, Copy, Debug)]
pub struct ToBeRefused(pub TokenStatus);

/// A body, and the room that it takes until this value is dropped.
pub struct Received {
    /// The body.
    pub bytes: Bytes,
    /// The headers that came before it.
    pub headers: HeaderMap,
    _room: BodyRoom,
}

impl<S: Send + Sync> FromRequest<S> for Received
where
    Site: FromRef<S>,
{
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Received, Refused> {
        let site = Site::from_ref(state);
        let (parts, body) = request.into_parts();
        let time_max = site.limits().body_time_max;
        let longest = Longest::of(&site, parts.extensions.get());
        if declared(&parts.headers).is_some_and(|bytes| bytes > longest.bytes() as u64) {
            return Err(longest.refusal().into());
        }
        let room = site.bodies().begin(sender(&parts.extensions));
        let mut reading = pin!(read(body, room, longest));
        // Nearly always the whole body is there already, and then no clock has to run.
        let read = match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(time_max, reading).await,
        };
        match read {
            Ok(read) => {
                read.map(|(bytes, room)| Received { bytes, headers: parts.headers, _room: room }).map_err(Into::into)
            }
            Err(_) => Err(Refusal::too_slow("body", Limit::BodySeconds, time_max).into()),
        }
    }
}

/// How long a body may be.
#[derive(Clone, Copy)]
enum Longest {
    /// As long as any.
    Any(usize),
    /// Long enough for a refusal that repeats what it says.
    Refused(usize, TokenStatus),
}

impl Longest {
    fn of(site: &Site, refused: Option<&ToBeRefused>) -> Longest {
        let bytes_max = site.limits().body_bytes_max;
        match refused {
            Some(ToBeRefused(status)) if bytes_max > REFUSED_BYTES_MAX => Longest::Refused(REFUSED_BYTES_MAX, *status),
            Some(_) | None => Longest::Any(bytes_max),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Longest::Any(bytes) | Longest::Refused(bytes, _) => bytes,
        }
    }

    /// Refuses a longer one.
    fn refusal(self) -> Refusal {
        match self {
            Longest::Any(bytes) => Refusal::too_large(bytes),
            Longest::Refused(_, status) => Refusal::unauthenticated("", status),
        }
    }
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read(mut body: Body, mut room: BodyRoom, longest: Longest) -> Result<(Bytes, BodyRoom), Refusal> {
    // Nearly always the whole body arrives at once. A long one is then used where it arrived.
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::invalid("the body ended before it was complete", "send all of it"))?;
        let Ok(data) = frame.into_data() else { continue };
        room.take(data.len()).map_err(no_room)?;
        if room.bytes() > longest.bytes() {
            return Err(longest.refusal());
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
    Ok((bytes, room))
}

fn no_room(full: Full) -> Refusal {
    let what = match full {
        Full::All => "too many bodies are being read at a time",
        Full::Sender => "too many bodies of this caller are being read at a time",
    };
    let hint = "nothing was done; send it again later; the operator can raise [limits] bodies_bytes";
    Refusal::unavailable(what, hint).over(Limit::BodiesBytes)
}
