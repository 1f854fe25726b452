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
/// # use crosspoint_agent::{Context, Failure};
/// # async fn handler(_: (), context: Context) -> Result<(), Failure> {
/// use tokio::io::AsyncWriteExt as _;
/// context.output().write_all(b"PLAY [all]\n").await?;
/// # Ok(())
/// # }
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
