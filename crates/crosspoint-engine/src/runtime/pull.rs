//! The pull queues, as the engine sees them: where attempts of agents that joined are queued.
//!
//! Such an agent asks for work, and may be given hundreds of jobs at a time. A task that waits for each would cost more
//! than everything else about them. So these attempts have no tasks: the implementation of [`PullQueues`] holds them,
//! and passes on what agents report.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::Block;

use crate::job::Job;

/// Holds attempts until a worker takes them. What it is told has already happened, so no method may wait or fail.
pub trait PullQueues: Send + Sync + 'static {
    /// Queues the attempts of one batch that begin.
    fn give(&self, handed: Vec<Handed>);

    /// Tells something about an attempt of an agent that joined, which may have been queued before.
    fn instruct(&self, job: &Arc<Job>, attempt: u32, instruction: Instruction);
}

/// An attempt that begins, or that an agent may have gone on with.
pub struct Handed {
    /// The job as it is now. Its agent is one that joined.
    pub job: Arc<Job>,
    /// The number of the attempt.
    pub attempt: u32,
    /// The document that the job came as, where it is in memory.
    pub document: Option<Block>,
    /// For an attempt that began before the orchestrator was started: how long its worker has to say that it still has
    /// it.
    pub resumed: Option<Duration>,
}

impl Handed {
    /// Returns the input, where the document is in memory.
    pub fn input(&self) -> Option<Bytes> {
        self.job.request.input_in(self.document.as_ref()?)
    }
}

/// What an attempt is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// The attempt is to stop.
    Stop,
    /// The attempt's question was answered. The job holds the answers.
    Answered,
}
