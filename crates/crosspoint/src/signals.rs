//! What asks a program that runs on to stop: Ctrl-C, or whoever started it.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From when it is made, these no longer end the process by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Which of them came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Interrupt,
    Terminate,
}

impl Signals {
    pub(crate) fn new() -> Result<Signals> {
        let on = |kind| signal(kind).context("cannot watch for signals");
        Ok(Signals { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    /// Comes to an end when one of them comes.
    pub(crate) async fn next(&mut self) {
        self.which().await;
    }

    /// The same, for those who care which.
    pub(crate) async fn which(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
        }
    }

    /// Whether one has come already.
    pub(crate) async fn has_come(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.which() => true,
            () = std::future::ready(()) => false,
        }
    }
}
