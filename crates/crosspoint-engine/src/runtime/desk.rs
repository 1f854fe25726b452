//! Where the attempts of agents that joined are laid out.
//!
//! Such an agent asks for work, and may be given hundreds of jobs at a time; a task that waits for each would cost more than all
//! the rest of them. So these attempts have none: whoever keeps the desk holds them, and tells what agents report.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::Block;

use crate::job::Job;

/// Where attempts are laid out until somebody takes them. What it is told is so already: nothing here may wait or fail.
pub trait Desk: Send + Sync + 'static {
    /// Attempts begin: all those of one batch.
    fn give(&self, handed: Vec<Handed>);

    /// Something about an attempt that was given.
    fn told(&self, job: &Arc<Job>, attempt: u32, told: Told);
}

/// An attempt that begins, or that an agent may have gone on with.
pub struct Handed {
    /// The job, as it is now; its agent is that which joined.
    pub job: Arc<Job>,
    /// Which attempt.
    pub attempt: u32,
    /// The document that the job came as, where it is at hand.
    pub document: Option<Block>,
    /// Of an attempt that began before we did: whoever has it has so long to say so.
    pub resumed: Option<Duration>,
}

impl Handed {
    /// The input, where it is at hand.
    pub fn input(&self) -> Option<Bytes> {
        self.job.request.input_in(self.document.as_ref()?)
    }
}

/// What an attempt is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is not wanted any more.
    Stop,
    /// Its question was answered: the job has the answers.
    Answered,
}
