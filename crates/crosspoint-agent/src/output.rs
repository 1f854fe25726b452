//! What a handler prints while it works.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};

use crosspoint_contracts::printed::TEXT_BYTES_MAX;
use tokio::io::AsyncWrite;

/// A writer for the text of a job. Its caller gets the text beside the outputs; at most 10 MiB.
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
pub struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    /// Returns what was printed, and forgets it.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.len() + bytes.len() > TEXT_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a job prints at most 10 MiB"));
        }
        printed.extend_from_slice(bytes);
        Ok(bytes.len())
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
