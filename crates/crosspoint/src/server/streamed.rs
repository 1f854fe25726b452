//! Answers that go on for long, without what a connection keeps for those that are short.
//!
//! The HTTP library keeps two buffers of 8 KiB for every connection: one for the next request, and one for the head of its
//! answer. Ten thousand callers who wait for something to happen need neither. So the connection of such an answer is
//! taken from the library as soon as its request has been read: what is left is the socket, and where the answer comes from. After it
//! the connection is closed.
//!
//! A piece is asked for only when the last one has been taken, so that whoever reads slowly has nothing piling up here.

use std::fmt;
use std::future::ready;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderValue, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode, Version};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::AsyncWriteExt;

use super::stall::Unstalled;

/// A piece above this is written by itself rather than copied beside its frame.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// What an answer consists of, piece by piece.
type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The pieces of an answer on their way to its connection; whoever is first takes them.
#[derive(Clone)]
struct OnTheWay(Arc<Mutex<Option<Pieces>>>);

/// An answer of these pieces.
pub(super) fn response(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(OnTheWay(Arc::new(Mutex::new(Some(Box::pin(pieces))))));
    response
}

/// An answer that is to be written by itself.
pub(super) struct Streamed {
    head: Vec<u8>,
    /// Whether pieces are framed; else the end of the connection is the end of the answer.
    chunked: bool,
    pieces: Pieces,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Streamed[{} bytes of head]", self.head.len())
    }
}

impl Streamed {
    /// The answer, where it is one of pieces; the request was of this version.
    pub(super) fn taken_from(response: &mut Response, version: Version) -> Option<Streamed> {
        let OnTheWay(pieces) = response.extensions_mut().remove()?;
        let pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let chunked = version >= Version::HTTP_11;
        Some(Streamed { head: head(response.status(), response.headers_mut(), chunked), chunked, pieces })
    }

    /// Writes it all, as fast as the other end takes it, and ends early where that has left.
    pub(super) async fn write(self, socket: &mut Unstalled) -> io::Result<()> {
        let Streamed { head: mut out, chunked, mut pieces } = self;
        loop {
            let piece = tokio::select! {
                biased;
                piece = pieces.next() => piece,
                // The head waits for no piece that may be long in coming.
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
            // Nothing is kept while nothing happens.
            out = Vec::new();
        }
        if chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        socket.write_all(&out).await
    }
}

/// Writes what comes before a piece, and gives what comes after it.
fn framed(out: &mut Vec<u8>, piece: &Bytes, chunked: bool) -> &'static [u8] {
    // An empty chunk would be the last.
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
