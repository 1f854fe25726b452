//! A socket whose other end must read what it asked for.
//!
//! A caller that asks for much and reads nothing would otherwise hold the answer in memory, and one of the allowed
//! connections, for ever.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crosspoint_exchange::refusal::Limit;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::Site;
use super::connection::Pace;
use super::socket::Stream;

/// A socket. Writes to it fail if the other end takes no byte for `[limits] write_seconds`.
pub(crate) struct Unstalled {
    stream: Stream,
    site: Site,
    /// Runs only while written bytes wait to be taken.
    timer: Option<Pin<Box<Sleep>>>,
    /// What the connection waits for, which cannot see this socket.
    pace: Arc<Pace>,
}

impl Unstalled {
    pub(crate) fn new(stream: Stream, site: Site, pace: Arc<Pace>) -> Unstalled {
        Unstalled { stream, site, timer: None, pace }
    }

    /// Completes when the other end has left. Anything that it still sends is discarded.
    pub(crate) async fn left(&self) {
        while self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut [0; 256]) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Discards what the other end has not taken.
    pub(crate) fn forget_unsent(&self) {
        self.stream.forget_unsent();
    }

    pub(crate) fn into_inner(self) -> Stream {
        self.stream
    }

    /// Returns the result of a write, or an error if it has taken too long.
    fn within_time<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.pace.written(written.is_pending());
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let time_max = self.site.limits().write_time_max;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(time_max)));
        ready!(timer.as_mut().poll(cx));
        self.stream.forget_unsent();
        self.site.tally().refused(Limit::WriteSeconds);
        tracing::debug!("a connection was closed: nothing of its answer was taken");
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.pace.heard();
        }
        read
    }
}

impl AsyncWrite for Unstalled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.within_time(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.within_time(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
