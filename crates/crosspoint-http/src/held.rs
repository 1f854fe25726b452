//! Answers that take room until they are sent.
//!
//! A long answer is in memory until its caller has taken it, and callers may be slow. What the backend counts such
//! answers by stays with the answer until then.
//!
//! The HTTP library queues a whole piece, however long it is, and is then done with the body. So it is given small
//! pieces, and asks for the next when the caller has taken most of the last.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// How much of an answer the HTTP library is given at a time, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// A body, and the room that it takes.
struct Held<R> {
    body: Body,
    /// What the body gave and was not passed on yet.
    rest: Bytes,
    _room: R,
}

/// Keeps the room until the answer is sent or its caller has left.
pub fn held<R: Send + Unpin + 'static>(response: Response, room: Option<R>) -> Response {
    match room {
        Some(room) => response.map(|body| Body::new(Held { body, rest: Bytes::new(), _room: room })),
        None => response,
    }
}

impl<R: Unpin> HttpBody for Held<R> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other @ (Poll::Ready(Some(Err(_)) | None) | Poll::Pending) => return other,
            }
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        match hint.exact() {
            Some(exact) => hint.set_exact(exact + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn the_room_is_free_when_the_answer_is_gone() {
        let room = Arc::new(());
        let long = "an answer".repeat(20_000);
        let answer = held(Response::new(Body::from(long.clone())), Some(room.clone()));
        assert_eq!(answer.body().size_hint().exact(), Some(180_000));
        let mut body = answer.into_body();
        let first = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.expect("there is one").expect("it is read");
        let first = first.into_data().expect("it is data");
        assert_eq!((first.len(), body.size_hint().exact()), (PIECE_BYTES, Some(180_000 - PIECE_BYTES as u64)));
        assert_eq!(Arc::strong_count(&room), 2);
        let rest = axum::body::to_bytes(body, 200_000).await.expect("it can be read");
        assert_eq!(([&first[..], &rest].concat(), Arc::strong_count(&room)), (long.into_bytes(), 1));
    }
}
