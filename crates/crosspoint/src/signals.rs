//! The signals that ask a long-running program to stop: from Ctrl-C, or from the process that started it.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The watched signals. Once this value exists, they no longer end the process by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// The signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopRequest {
    Interrupt,
    Terminate,
}

impl Signals {
    pub(crate) fn new() -> Result<Signals> {
        let on = |kind| signal(kind).context("cannot watch for signals");
        // A file that may not become longer (`ulimit -f`) is a write that fails, like a full disk, and not the end.
        drop(on(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Signals { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    /// Completes when one of the signals comes.
    pub(crate) async fn next(&mut self) {
        self.which().await;
    }

    /// Like `next`, and returns which signal came.
    pub(crate) async fn which(&mut self) -> StopRequest {
        tokio::select! {
            _ = self.interrupt.recv() => StopRequest::Interrupt,
            _ = self.terminate.recv() => StopRequest::Terminate,
        }
    }

    /// Whether a signal has come already.
    pub(crate) async fn has_come(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.which() => true,
            () = std::future::ready(()) => false,
        }
    }
}
