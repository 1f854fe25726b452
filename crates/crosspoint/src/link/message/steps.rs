//! What an agent says on the way and with its result: progress, and output that may come in chunks (MSG-9).

use std::path::Path;

use bytes::Bytes;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::reply::Progress;
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::{Attempt, Gone};
use crosspoint_exchange::refusal::Refusal;

use super::conversation::Ended;
use crate::link::record::{Note, note};

/// The directory below the data directory in which chunks are put together.
pub(super) const DIRECTORY: &str = "chunks";

/// The output of one attempt.
pub(super) struct Steps;

/// Why a chunk cannot be taken.
#[derive(Debug)]
pub(crate) struct Refused {
    clause: &'static Clause,
    message: String,
}

impl Refused {
    pub(super) fn note(&self) -> Note {
        note(self.clause, self.message.clone())
    }

    pub(crate) fn refusal(&self) -> Refusal {
        Refusal::invalid(self.message.clone(), "send every byte once, in order").clause(self.clause.id)
    }
}

/// A result, with the text that came before it in chunks.
pub(super) struct Finished {
    pub(super) ended: Ended,
    pub(super) notes: Vec<Note>,
}

impl Steps {
    pub(super) async fn open(_: &Path, _: &Attempt) -> Steps {
        Steps
    }

    pub(super) async fn status(
        &mut self,
        attempt: &mut Attempt,
        _document: &Bytes,
        progress: Progress,
    ) -> Result<Option<Refused>, Gone> {
        attempt.advanced(progress).await?;
        Ok(None)
    }

    pub(super) async fn finish(&mut self, _: &mut Attempt, ended: Ended) -> Result<Finished, Gone> {
        Ok(Finished { ended, notes: Vec::new() })
    }
}

pub(super) async fn remove(_: &Path, _: JobId, _: u32) {}
