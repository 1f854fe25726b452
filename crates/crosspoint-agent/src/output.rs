//! What a handler prints while it works.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};

use crosspoint_contracts::printed::TEXT_BYTES_MAX;
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

/// A writer for the text of a job. Its caller gets the text beside the outputs; at most 10 MiB.
///
/// What is written goes out in blocks where the contract has a way to send it: an orchestrator of the message contract
/// is told while the work goes on. Bytes that are no UTF-8 are shown as U+FFFD.
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
}

#[derive(Default)]
struct Printed {
    text: String,
    /// The beginning of a character whose end has not come.
    begun: Vec<u8>,
    /// How much was printed. A byte that is no text takes three as text.
    bytes: usize,
}

impl Output {
    /// Returns what was printed, and forgets it.
    pub(crate) fn take(&self) -> String {
        let Printed { mut text, begun, .. } = std::mem::take(&mut *self.printed());
        if !begun.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
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

    fn printed(&self) -> MutexGuard<'_, Printed> {
        self.0.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut printed = self.printed();
        printed.bytes = printed.bytes.saturating_add(bytes.len());
        if printed.bytes > TEXT_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a job prints at most 10 MiB"));
        }
        printed.push(bytes);
        drop(printed);
        self.0.grown.notify_waiters();
        Ok(bytes.len())
    }
}

impl Printed {
    /// Adds bytes, which may begin and end in the middle of a character.
    fn push(&mut self, bytes: &[u8]) {
        if self.begun.is_empty() {
            return self.decode(bytes);
        }
        let whole = [&*std::mem::take(&mut self.begun), bytes].concat();
        self.decode(&whole);
    }

    fn decode(&mut self, bytes: &[u8]) {
        // Nearly always all of it is text.
        if let Ok(text) = std::str::from_utf8(bytes) {
            return self.text.push_str(text);
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let is_begun = || std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && is_begun() {
                self.begun = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
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
        assert_eq!(output.take(), "aä€😀b");
        for part in [&b"a\xe2\x82"[..], b"\xacb\xff", b"\xc3", b"x", b"\xf0\x9f"] {
            output.push(part).expect("it is short");
        }
        assert_eq!(output.after(0, 4), "a€", "a half character is not given");
        assert_eq!(output.after(4, 100), "b\u{fffd}\u{fffd}x");
        assert_eq!(output.take(), "a€b\u{fffd}\u{fffd}x\u{fffd}");
        assert_eq!(output.take(), "");
    }
}
