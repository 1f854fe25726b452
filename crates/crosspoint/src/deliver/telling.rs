//! Which documents tell a recipient about a job. The sender knows no contract: the contract of the recipients says.

use bytes::Bytes;
use crosspoint_contracts::time::Time;
use crosspoint_engine::job::{Job, Phase, State};

/// How jobs are told.
pub(crate) struct Telling {
    /// The path below a recipient's address to which documents are posted.
    pub(crate) path: &'static str,
    /// Returns the document that tells the current state of a job that has not ended; `None` if the state is not told.
    pub(crate) now: Tell<Option<Bytes>>,
    /// Returns the documents that tell the outcome of a job, in order. The last of them ends the job for its
    /// recipient. They are the same, with the same ids, each time.
    pub(crate) outcome: Tell<Vec<Bytes>>,
    /// Reads from a document by which ids it may be acknowledged.
    pub(crate) ids: fn(&[u8]) -> Ids,
}

type Tell<T> = Box<dyn Fn(&Job) -> T + Send + Sync>;

/// By which ids a document may be acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    /// The document's own.
    pub(crate) message: Box<str>,
    /// Those of its job, each of which stands for everything that the recipient was given about it.
    pub(crate) job: Vec<Box<str>>,
}

/// What makes two documents about a job that has not ended differ. Not every event of a job shows in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    phase: Phase,
    attempts: u32,
    answers: usize,
    question: Option<u32>,
    progress_at: Time,
}

impl Shown {
    /// Returns what there is to show of a job; `None` if its recipient knows all of it, because it was just accepted.
    pub(super) fn of(job: &Job) -> Option<Shown> {
        let question = match &job.state {
            State::Waiting { running, .. } => Some(running.asked),
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned | State::Ended(_) => None,
        };
        let phase = job.phase();
        let is_new = phase == Phase::Queued && job.attempts == 0;
        let (attempts, answers, progress_at) = (job.attempts, job.answers.len(), job.progress_at);
        (!is_new).then_some(Shown { phase, attempts, answers, question, progress_at })
    }
}

#[cfg(test)]
impl Shown {
    /// Returns what shows of a job that runs and has made progress at this time.
    pub(super) fn at(progress_at: Time) -> Shown {
        Shown { phase: Phase::Running, attempts: 1, answers: 0, question: None, progress_at }
    }
}
