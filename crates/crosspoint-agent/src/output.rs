//! What a handler prints while it works.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};

use crosspoint_contracts::printed::TEXT_BYTES_MAX;
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

/// A writer for the text of a job. Its caller gets the text beside the outputs; at most 10 MiB.
///
/// What is written goes out in blocks where the contract has a way to send it: an orchestrator of the message contract
/// is told while the work goes on. Bytes that are no UTF-8 are shown as U+FFFD, and
/// `output_encoding: "lossy"` beside the text says so.
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
/// # use doc::*;
/// use tokio::io::AsyncWriteExt as _;
///
/// async fn play(_: Value, context: Context) -> Result<Value, Failure> {
///     let mut output = context.output();
///     output.write_all(b"PLAY [all]\n").await?;
///     output.write_all(b"changed: 3\n").await?;
///     Ok(json!({"changed": 3}))
/// }
/// # let answer = called(Agent::new("player").on("play", play).forgetful(), "play", json!({}));
/// # assert!(answer.to_string().contains("PLAY [all]"), "{answer}");
/// ```
#[derive(Clone, Default)]
pub struct Output(Arc<Shared>);

#[derive(Default)]
struct Shared {
    printed: Mutex<Printed>,
    /// Told whenever something was printed.
    grown: Notify,
    /// Whether some of it was no UTF-8.
    is_lossy: AtomicBool,
}

#[derive(Default)]
struct Printed {
    text: String,
    /// The beginning of a character whose end has not come.
    begun: Vec<u8>,
    /// How much was printed. A byte that is no text takes three as text.
    bytes: usize,
    /// Whether the job has ended, and nothing more is kept.
    is_closed: bool,
}

impl Output {
    /// Returns what was printed, and forgets it.
    pub(crate) fn take(&self) -> String {
        let mut printed = self.printed();
        let is_closed = printed.is_closed;
        let Printed { mut text, begun, .. } =
            std::mem::replace(&mut *printed, Printed { is_closed, ..Printed::default() });
        if !begun.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            self.0.is_lossy.store(true, Ordering::Relaxed);
        }
        text
    }

    /// Returns an output that takes nothing. All are the same one.
    pub(crate) fn closed() -> Output {
        static CLOSED: LazyLock<Output> = LazyLock::new(|| {
            let output = Output::default();
            output.close();
            output
        });
        CLOSED.clone()
    }

    /// Forgets what was printed, and takes no more: the job has ended.
    pub(crate) fn close(&self) {
        *self.printed() = Printed { is_closed: true, ..Printed::default() };
    }

    /// Returns what was printed after the first `start` bytes, at most `bytes_max` bytes of it; empty if that is
    /// nothing.
    pub(crate) fn after(&self, start: usize, bytes_max: usize) -> String {
        let printed = self.printed();
        let end = printed.text.floor_char_boundary(start.saturating_add(bytes_max));
        printed.text.get(start..end).unwrap_or_default().to_owned()
    }

    /// Waits until there is more than these first bytes.
    pub(crate) async fn longer_than(&self, bytes: usize) {
        loop {
            let grown = self.0.grown.notified();
            if self.printed().text.len() > bytes {
                return;
            }
            grown.await;
        }
    }

    /// Whether some of what was printed was no UTF-8, so that the text is not what was printed.
    pub(crate) fn is_lossy(&self) -> bool {
        self.0.is_lossy.load(Ordering::Relaxed)
    }

    fn printed(&self) -> MutexGuard<'_, Printed> {
        self.0.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut printed = self.printed();
        if printed.is_closed {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the job has ended"));
        }
        printed.bytes = printed.bytes.saturating_add(bytes.len());
        if printed.bytes > TEXT_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a job prints at most 10 MiB"));
        }
        if printed.push(bytes) {
            self.0.is_lossy.store(true, Ordering::Relaxed);
        }
        drop(printed);
        self.0.grown.notify_waiters();
        Ok(bytes.len())
    }
}

impl Printed {
    /// Adds bytes, which may begin and end in the middle of a character. Returns whether some are no UTF-8.
    fn push(&mut self, bytes: &[u8]) -> bool {
        if self.begun.is_empty() {
            return self.decode(bytes);
        }
        let whole = [&*std::mem::take(&mut self.begun), bytes].concat();
        self.decode(&whole)
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        // Nearly always all of it is text.
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.text.push_str(text);
            return false;
        }
        let mut is_lossy = false;
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let is_begun = || std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && is_begun() {
                self.begun = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
                is_lossy = true;
            }
        }
        is_lossy
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.push(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_comes_in_parts_is_one_character() {
        let output = Output::default();
        for byte in "aä€😀b".bytes() {
            output.push(&[byte]).expect("it is short");
        }
        assert_eq!((&*output.take(), output.is_lossy()), ("aä€😀b", false));
        for part in [&b"a\xe2\x82"[..], b"\xacb\xff", b"\xc3", b"x", b"\xf0\x9f"] {
            output.push(part).expect("it is short");
        }
        assert_eq!(output.after(0, 4), "a€", "a half character is not given");
        assert_eq!(output.after(4, 100), "b\u{fffd}\u{fffd}x");
        assert_eq!(output.take(), "a€b\u{fffd}\u{fffd}x\u{fffd}");
        assert_eq!((&*output.take(), output.is_lossy()), ("", true));
    }
}
