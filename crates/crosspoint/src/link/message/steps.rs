//! What an agent says on the way and with its result: how far it is, and what it printed (MSG-9).
//!
//! Most attempts print nothing on the way. The file in which chunks are put together is opened only for those that do,
//! and for attempts that were under way before a restart.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use crosspoint_contracts::json::{Tape, Value};
use crosspoint_contracts::message::chunk::{Chunk, Refusal as Broken};
use crosspoint_contracts::message::{Notice, WorkState};
use crosspoint_contracts::reply::{Failed, Progress};
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::{Attempt, Engine, Gone};
use crosspoint_exchange::answer::OUTPUT_STEP;
use crosspoint_exchange::refusal::{Limit, Refusal};
use uuid::Uuid;

use super::chunks::{self, Chunks, Fault, Status};
use super::conversation::Ended;
use crate::link::record::{Note, note};

/// The directory below the data directory in which chunks are put together.
pub(super) const DIRECTORY: &str = "chunks";

/// The output of one attempt.
pub(super) struct Steps {
    directory: PathBuf,
    bytes_max: u64,
    /// The output so far, if there may be any.
    chunks: Option<Chunks>,
    /// What the last status said of how far the work is.
    last: Option<Uuid>,
}

/// Why a chunk, or a set of them, cannot be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused(Broken);

/// Why what an agent said cannot be taken. It is not acknowledged, so that the agent says it again.
#[derive(Debug)]
pub(super) enum Untaken {
    /// The job goes on without this attempt.
    Gone(Gone),
    /// What it printed cannot be stored just now.
    NotNow,
}

/// What a message on the way came to.
pub(super) struct Step {
    /// What is wrong with the chunk, or with the set that ended here.
    pub(super) refused: Option<Refused>,
    pub(super) notes: Vec<Note>,
}

/// A result, with the text that came before it in chunks.
pub(super) struct Finished {
    pub(super) ended: Ended,
    /// What is wrong with the set that ended here.
    pub(super) refused: Option<Refused>,
}

impl Steps {
    pub(super) fn new(directory: &Path, bytes_max: u64) -> Steps {
        Steps { directory: directory.to_owned(), bytes_max, chunks: None, last: None }
    }

    /// Takes a status: what it printed is on disk when this returns.
    pub(super) async fn status(
        &mut self,
        attempt: &mut Attempt,
        document: &Bytes,
        progress: Progress,
    ) -> Result<Step, Untaken> {
        let status = status_of(document);
        let is_chunk = status.chunk.is_some();
        let known = attempt.job().progress.as_ref().and_then(|known| known.percent);
        // What is printed all the while is a step of its own, which says nothing of how far the work is.
        let is_print = is_chunk && *status.name == *OUTPUT_STEP
            || status.chunk.is_some_and(|chunk| chunk.total.is_none()) && known == progress.percent;
        // MSG-6.4: a status that is repeated is a sign of life, and nothing new.
        let said = if is_print { self.last } else { Some(said(document)) };
        let is_news = std::mem::replace(&mut self.last, said) != said;
        let broken = if status.output.is_empty() && !is_chunk && !self.may_have_file(attempt) {
            Vec::new()
        } else {
            let chunks = self.opened(attempt).await?;
            chunks.take(attempt, status).await.map_err(untaken)?.refused
        };
        // A chunk that were handed on with the progress would be one of many that its reader never sees.
        let document = progress.document.filter(|_| !is_chunk);
        match is_print || !is_news {
            true => attempt.heard().await,
            false => attempt.advanced(Progress { document, ..progress }).await,
        }
        .map_err(Untaken::Gone)?;
        let refused: Vec<Refused> = broken.into_iter().map(Refused).collect();
        Ok(Step { refused: refused.first().copied(), notes: refused.iter().map(Refused::note).collect() })
    }

    /// Takes a result of an attempt that may have a file, with the text of which the result has only the end.
    pub(super) async fn finish(
        &mut self,
        attempt: &mut Attempt,
        ended: Ended,
        document: &Bytes,
    ) -> Result<Finished, Untaken> {
        let output = text_at(document, &["payload", "output"]).map(|output| Bytes::from(output.into_bytes()));
        let chunks = self.opened(attempt).await?;
        let finished = chunks.finish(attempt, output).await.map_err(untaken)?;
        let refused = finished.refused.map(Refused);
        let ended = finished.result(ended.map_err(|failed| *failed)).map_err(Box::<Failed>::new);
        Ok(Finished { ended, refused })
    }

    /// Whether there may be output before, and so a file.
    pub(super) fn may_have_file(&self, attempt: &Attempt) -> bool {
        self.chunks.is_some() || attempt.is_resumed()
    }

    async fn opened(&mut self, attempt: &Attempt) -> Result<&mut Chunks, Untaken> {
        if self.chunks.is_none() {
            let (job, number) = (attempt.job(), attempt.number());
            let opened = Chunks::open(&self.directory, job.id(), number, self.bytes_max, job.output_bytes).await;
            self.chunks = Some(opened.map_err(|error| untaken(Fault::File(error)))?);
        }
        self.chunks.as_mut().ok_or(Untaken::NotNow)
    }
}

fn untaken(fault: Fault) -> Untaken {
    match fault {
        Fault::Gone(gone) => Untaken::Gone(gone),
        Fault::File(error) => {
            tracing::error!(%error, "the output of an agent cannot be put together; the agent has to send it again");
            Untaken::NotNow
        }
    }
}

impl Refused {
    pub(super) fn note(&self) -> Note {
        note(self.0.clause(), self.0.to_string())
    }

    /// Returns it as an error that answers nothing (MSG-9.4, MSG-9.5).
    pub(super) fn notice(self, notice: &Notice<'_>) -> String {
        let why = self.0.to_string();
        let over = |available, required| notice.over_limit(&why, Limit::OutputBytes.name(), available, required);
        match self.0 {
            Broken::OverLimit { bytes, bytes_max } => over(bytes_max, bytes),
            Broken::TooManyRanges => over(0, 1),
            Broken::WrongLength { .. }
            | Broken::TotalChanged { .. }
            | Broken::BeyondTotal { .. }
            | Broken::Differs { .. }
            | Broken::Gap { .. } => notice.invalid(&why, Some("output_chunk")),
        }
    }

    /// Returns it for the agent that sent the chunk (MSG-9.4, MSG-9.5).
    pub(crate) fn refusal(&self) -> Refusal {
        let (why, hint) = (self.0.to_string(), self.0.clause().hint);
        let refusal = match self.0 {
            Broken::OverLimit { bytes, bytes_max } => Refusal::too_much_output(why, hint).wanting(bytes_max, bytes),
            Broken::TooManyRanges => Refusal::too_much_output(why, hint),
            Broken::WrongLength { .. }
            | Broken::TotalChanged { .. }
            | Broken::BeyondTotal { .. }
            | Broken::Differs { .. }
            | Broken::Gap { .. } => Refusal::invalid(why, hint),
        };
        refusal.clause(self.0.clause().id).at("/payload/step/output_chunk")
    }
}

/// Removes what is left of the output of an attempt that is over.
pub(super) async fn remove(directory: &Path, job: JobId, attempt: u32) {
    if let Err(error) = chunks::remove(directory, job, attempt).await {
        tracing::warn!(%job, %error, "what is left of an agent's output cannot be removed");
    }
}

/// Removes what is left of attempts that are over: a server that ended could not.
pub(super) async fn remove_leftovers(directory: &Path, engine: &Engine) {
    let left = match chunks::left(directory, engine.ids()).await {
        Ok(left) => left,
        Err(error) => return tracing::warn!(%error, "what is left of agents' output cannot be listed"),
    };
    for (job, attempt) in left {
        // Of a job that cannot be read nothing is removed.
        let Ok(watch) = engine.job(job).await else { continue };
        let running = watch.and_then(|watch| watch.job().running().map(|running| running.attempt));
        if running != Some(attempt) {
            remove(directory, job, attempt).await;
        }
    }
}

/// Returns a digest of what a message says. Its id and its time do not count: agents renew them when they repeat it.
fn said(document: &[u8]) -> Uuid {
    let tape = Tape::scan(document).ok();
    let members = tape.as_ref().and_then(Tape::root).into_iter().flat_map(Value::members);
    let counts = |name: &str| !matches!(name, "message_id" | "timestamp");
    let counted = members.filter(|(name, _)| counts(&name.decode()));
    counted.fold(Uuid::nil(), |said, (name, value)| {
        Uuid::new_v5(&Uuid::new_v5(&said, name.decode().as_bytes()), value.source().as_bytes())
    })
}

/// Reads what a status says about its step. What is missing or of another type counts as absent (ALL-11).
fn status_of(document: &[u8]) -> Status {
    let tape = Tape::scan(document).ok();
    let root = tape.as_ref().and_then(Tape::root);
    let at = |path: &[&str]| path.iter().try_fold(root?, |value, name| value.get(name));
    let text = |path: &[&str]| at(path).and_then(Value::text).map(|text| text.decode().into_owned());
    Status {
        message_id: text(&["message_id"]).and_then(|id| Uuid::parse_str(&id).ok()),
        state: text(&["payload", "status"])
            .and_then(|word| WorkState::ALL.into_iter().find(|state| state.word() == word)),
        percent: at(&["payload", "progress_percent"]).and_then(Value::integer),
        number: at(&["payload", "step", "number"]).and_then(Value::integer).unwrap_or(0),
        name: text(&["payload", "step", "name"]).unwrap_or_default().into(),
        output: text(&["payload", "step", "output"]).unwrap_or_default().into(),
        chunk: at(&["payload", "step", "output_chunk"]).and_then(Value::text).and_then(Chunk::parse),
    }
}

fn text_at(document: &[u8], path: &[&str]) -> Option<String> {
    let tape = Tape::scan(document).ok()?;
    let value = path.iter().try_fold(tape.root()?, |value, name| value.get(name))?;
    Some(value.text()?.decode().into_owned())
}
