//! Long answers, without the buffers that a connection keeps for short ones.
//!
//! The HTTP library keeps two buffers of 8 KiB for every connection: one for the next request, and one for the head of
//! its answer. Ten thousand callers that wait for an event need neither. So the connection of a long answer is taken
//! from the library as soon as its request has been read. What remains is the socket and the source of the answer.
//! After the answer the connection is closed.
//!
//! A piece is asked for only when the last one has been taken, so that nothing piles up here for a slow caller.

use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use axum::body::{Body, HttpBody};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderValue, TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, StatusCode, Version};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_exchange::refusal::Refusal;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::AsyncWriteExt;

use super::limit::StreamPlace;
use super::slow_reader::Unstalled;

/// Interval at which an idle stream sends a comment, because proxies would otherwise take it for dead.
pub const KEEP_ALIVE_PERIOD: Duration = Duration::from_secs(15);

/// Largest piece that is copied next to its frame, in bytes. A larger piece is written by itself.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The pieces of an answer.
type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Completes when an answer is to be cut off.
type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The pieces of an answer on their way to its connection. They can be taken once.
#[derive(Clone)]
struct OnTheWay(Arc<Mutex<Option<(Pieces, Cut)>>>);

/// Makes an answer of these pieces.
pub(crate) fn streamed(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(OnTheWay(Arc::new(Mutex::new(Some((Box::pin(pieces), Box::pin(pending())))))));
    response
}

/// Has an answer end when `when` completes, without what would tell its reader that it is whole. An answer that is
/// whole already is left alone.
pub fn cut_off(mut response: Response, when: impl Future<Output = ()> + Send + 'static) -> Response {
    if let Some(OnTheWay(answer)) = response.extensions_mut().get_mut() {
        if let Some((_, cut)) = answer.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *cut = Box::pin(when);
        }
        return response;
    }
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let data = body.into_data_stream().map_err(io::Error::other);
        let cut: Cut = Box::pin(when);
        Body::from_stream(stream::try_unfold((data, cut), |(mut data, mut cut)| async {
            let next = tokio::select! {
                biased;
                () = &mut cut => return Err(io::ErrorKind::ConnectionAborted.into()),
                next = data.try_next() => next?,
            };
            Ok::<_, io::Error>(next.map(|bytes| (bytes, (data, cut))))
        }))
    })
}

/// An answer that streams events. It keeps its place until it is over.
pub fn response(events: impl Stream<Item = Bytes> + Send + 'static, place: StreamPlace) -> Response {
    let mut response = streamed(events.inspect(move |_| _ = &place));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A comment that keeps an idle stream alive.
pub fn keep_alive() -> Bytes {
    Bytes::from_static(b": keep-alive\n\n")
}

/// Reads the `Last-Event-ID` header. It overrides the query, because a browser that reconnects sends it with the
/// address that it used first.
pub fn last_seen(headers: &HeaderMap) -> Result<Option<u32>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let refusal = || Refusal::invalid("the Last-Event-ID header is not the number of an event", "send the last `id:`");
    number.map(Some).ok_or_else(refusal)
}

/// An answer that is written directly to the socket.
pub(crate) struct Streamed {
    head: Vec<u8>,
    /// Whether pieces are framed. Otherwise the end of the connection is the end of the answer.
    chunked: bool,
    pieces: Pieces,
    cut: Cut,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Streamed[{} bytes of head]", self.head.len())
    }
}

impl Streamed {
    /// Takes the answer out of `response` if it consists of pieces. `version` is that of the request.
    pub(crate) fn taken_from(response: &mut Response, version: Version) -> Option<Streamed> {
        let OnTheWay(pieces) = response.extensions_mut().remove()?;
        let (pieces, cut) = pieces.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let chunked = version >= Version::HTTP_11;
        Some(Streamed { head: head(response.status(), response.headers_mut(), chunked), chunked, pieces, cut })
    }

    /// Writes the whole answer as fast as the other end takes it, and stops early if the other end has left or the
    /// answer is cut off.
    pub(crate) async fn write(self, socket: &mut Unstalled) -> io::Result<()> {
        let Streamed { head: mut out, chunked, mut pieces, mut cut } = self;
        loop {
            let piece = tokio::select! {
                biased;
                () = &mut cut => return Ok(()),
                piece = pieces.next() => piece,
                // The head does not wait for the first piece, which may be long in coming.
                () = ready(()), if !out.is_empty() => {
                    socket.write_all(&out).await?;
                    out = Vec::new();
                    continue;
                }
                () = socket.left() => return Ok(()),
            };
            let Some(piece) = piece else { break };
            let end = framed(&mut out, &piece, chunked);
            if piece.len() > COPIED_BYTES_MAX {
                socket.write_all(&out).await?;
                socket.write_all(&piece).await?;
                out.clear();
            } else {
                out.extend_from_slice(&piece);
            }
            out.extend_from_slice(end);
            socket.write_all(&out).await?;
            // No buffer is kept while nothing happens.
            out = Vec::new();
        }
        if chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        socket.write_all(&out).await
    }
}

/// Writes what comes before a piece, and returns what comes after it.
fn framed(out: &mut Vec<u8>, piece: &Bytes, chunked: bool) -> &'static [u8] {
    // An empty chunk would end the answer.
    if !chunked || piece.is_empty() {
        return b"";
    }
    out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    b"\r\n"
}

fn head(status: StatusCode, headers: &mut HeaderMap, chunked: bool) -> Vec<u8> {
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if chunked {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    let now = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now());
    if let Some(now) = now.ok().and_then(|now| HeaderValue::try_from(now).ok()) {
        headers.insert(DATE, now);
    }
    let mut head = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in headers.iter() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}
