//! A socket whose other end must read what it asked for.
//!
//! A caller that asks for much and reads nothing, or next to nothing, would otherwise hold the answer in memory, and
//! one of the allowed connections, for ever. A stream that waits for events is not behind: the clock runs only while
//! bytes wait to be taken.

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

/// Fewest bytes of a longer answer that must be taken within `[limits] write_seconds`.
const TAKEN_BYTES_MIN: usize = 16 << 10;

/// A socket. Writes to it fail if the other end takes too little for `[limits] write_seconds`.
pub(crate) struct Unstalled {
    stream: Stream,
    site: Site,
    /// Runs only while written bytes wait to be taken.
    timer: Option<Pin<Box<Sleep>>>,
    taken: Taken,
    /// What the connection waits for, which cannot see this socket.
    pace: Arc<Pace>,
}

/// How many bytes were taken since the timer began.
struct Taken(usize);

impl Taken {
    /// Adds bytes that were taken of those offered. Returns whether the other end keeps up, and has all its time again.
    fn keeps_up(&mut self, bytes: usize, offered: usize) -> bool {
        self.0 += bytes;
        let keeps_up = bytes >= offered || self.0 >= TAKEN_BYTES_MIN;
        if keeps_up {
            self.0 = 0;
        }
        keeps_up
    }
}

impl Unstalled {
    pub(crate) fn new(stream: Stream, site: Site, pace: Arc<Pace>) -> Unstalled {
        Unstalled { stream, site, timer: None, taken: Taken(0), pace }
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
    fn within_time(
        &mut self,
        written: Poll<io::Result<usize>>,
        offered: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.pace.written(written.is_pending());
        if let Poll::Ready(result) = written {
            if self.taken.keeps_up(result.as_ref().map_or(0, |bytes| *bytes), offered) {
                self.timer = None;
            }
            return Poll::Ready(result);
        }
        let time_max = self.site.limits().write_time_max;
        if self.timer.is_none() {
            self.taken = Taken(0);
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(time_max)));
        ready!(timer.as_mut().poll(cx));
        self.stream.forget_unsent();
        self.site.tally().refused(Limit::WriteSeconds);
        tracing::debug!("a connection was closed: too little of its answer was taken");
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
        self.within_time(written, bytes.len(), cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.within_time(written, slices.iter().map(|slice| slice.len()).sum(), cx)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_takes_next_to_nothing_does_not_keep_up() {
        let (mut taken, whole) = (Taken(0), 1 << 20);
        assert!((0..100).all(|_| !taken.keeps_up(1, whole)), "a byte now and then is not enough");
        assert!(taken.keeps_up(TAKEN_BYTES_MIN - 100, whole));
        assert!(!taken.keeps_up(TAKEN_BYTES_MIN - 1, whole), "and as much again is needed");
        assert!(taken.keeps_up(50, 50), "or all there is: an event, or the end of an answer");
        assert!(!taken.keeps_up(1, whole));
    }
}
