//! What the published state knows of an attempt: how to stop it, and the answers that are on their way to its link.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crosspoint_contracts::content::Body;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::runtime::published::lock;

/// What the published state knows of an attempt.
#[derive(Default)]
pub(in crate::runtime) struct Handle {
    pub(in crate::runtime) attempt: u32,
    pub(in crate::runtime) stop: CancellationToken,
    answers: Mutex<VecDeque<Body>>,
    pub(super) answered: Notify,
    /// How many answers the link has had.
    heard: AtomicU32,
    /// Whether its link wants to know when the orchestrator is about to end.
    pub(super) parts: AtomicBool,
    /// Whether nothing is to be reported of the attempt.
    pub(super) abandoned: AtomicBool,
    /// Whether the work was never given to the agent.
    pub(super) withdrawn: AtomicBool,
}

impl Handle {
    /// Begins with the questions that were answered in the attempt before it was taken up.
    pub(super) fn new(attempt: u32, heard: u32) -> Handle {
        Handle { attempt, heard: heard.into(), ..Handle::default() }
    }

    /// Returns how many answers the link has had.
    pub(super) fn heard(&self) -> u32 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether the attempt ends with the orchestrator, and is not over yet.
    pub(in crate::runtime) fn is_parting(&self) -> bool {
        self.parts.load(Ordering::Relaxed)
    }

    /// Takes the next answer, where there is one.
    pub(super) fn next_answer(&self) -> Option<Body> {
        let answer = lock(&self.answers).pop_front()?;
        self.heard.fetch_add(1, Ordering::Relaxed);
        Some(answer)
    }

    pub(in crate::runtime) fn deliver(&self, answer: Body) {
        lock(&self.answers).push_back(answer);
        self.answered.notify_waiters();
    }
}
