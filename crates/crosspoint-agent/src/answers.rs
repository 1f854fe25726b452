//! The store of answers: what came of requests, kept over restarts (MSG-8).
//!
//! A file of lines, one for each answer, to which lines are only added. A line begins with a digest of itself, so the
//! torn end of a crash is told from an answer, and nothing is cut off (`found`). All answers that wait are written
//! together and synced once. The file is bounded by age and size: when it has become too long, the younger half is
//! kept, and what is noted of work under way.

mod file;
mod found;
mod further;
mod index;
mod line;
mod seal;
mod shorter;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::time::Time;
use uuid::Uuid;

use self::file::AnswerFile;
use self::found::Owed;
use self::further::Also;
pub(crate) use self::index::Place;
use self::index::{Index, Noted};
pub(crate) use self::line::Kept;
use self::line::Line;
use self::writer::{Write, Writer};
use crate::backend::Name;
use crate::questions::Answered;
use crate::record::{Asked, Record};

/// How long answers are kept, and how many bytes of them.
///
/// ```
/// use std::time::Duration;
///
/// use crosspoint_agent::Keep;
///
/// let keep = Keep { age: Duration::from_secs(24 * 3_600), ..Keep::default() };
/// assert_eq!(keep.bytes, 256 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How long an answer is kept at least, within the bytes. Older ones are left out when the agent starts and when
    /// the file is shortened.
    pub age: Duration,
    /// Most bytes of all answers.
    pub bytes: u64,
}

impl Default for Keep {
    /// A week, and 256 MiB.
    fn default() -> Keep {
        Keep { age: Duration::from_secs(7 * 24 * 3_600), bytes: 256 << 20 }
    }
}

/// The store; cloning shares it.
#[derive(Clone)]
pub(crate) struct Answers {
    index: Arc<Mutex<Index>>,
    file: Arc<AnswerFile>,
    /// What was owed when the store was opened.
    owed: Arc<Mutex<Owed>>,
    writer: Writer,
}

impl Answers {
    /// Opens the store, or makes it.
    pub(crate) fn open(path: &Path, keep: Keep) -> io::Result<Answers> {
        Answers::open_at(path, keep).map_err(|error| {
            let (kind, shown) = (error.kind(), path.display());
            // That kind says that an agent may not be served as it is.
            let kind = if kind == io::ErrorKind::PermissionDenied { io::ErrorKind::Other } else { kind };
            let why = if kind == io::ErrorKind::WouldBlock {
                let taken = format!("another agent keeps its answers in {shown}");
                format!("{taken}; give this one another name, or another file with Agent::answers")
            } else {
                format!("answers cannot be kept in {shown}: {error}")
            };
            io::Error::new(kind, why)
        })
    }

    fn open_at(path: &Path, keep: Keep) -> io::Result<Answers> {
        let (file, index, owed) = AnswerFile::open(path, keep, crate::clock::now())?;
        let (index, file) = (Arc::new(Mutex::new(index)), Arc::new(file));
        let writer = Writer::start(file.clone(), index.clone())?;
        Ok(Answers { index, file, owed: Arc::new(Mutex::new(owed)), writer })
    }

    /// Gives the file back. What comes later is not kept.
    pub(crate) async fn close(&self) {
        self.writer.close().await;
    }

    /// Keeps an answer. When it returns, the answer is on disk, or it was logged that it is not.
    pub(crate) async fn keep(&self, job: &Record, at: Time, outcome: &Outcome) {
        let Some(names) = names(&job.asked) else { return };
        let line = Line::ended(job, &names, at, outcome);
        self.writer.put(Write { names, line, noted: Noted::Ended }).await;
    }

    /// Notes that work is begun that must not be begun again. Returns whether that is on disk.
    pub(crate) async fn begin(&self, job: &Record) -> bool {
        let Some(names) = names(&job.asked) else { return true };
        let line = Line::begun(job, &names);
        self.writer.put(Write { names, line, noted: Noted::Open }).await
    }

    /// Keeps what people have answered to work under way. If the work is interrupted, it gets the same answers again.
    pub(crate) async fn answered(&self, job: &Record, answered: &[Answered]) {
        let Some(names) = names(&job.asked) else { return };
        let line = Line::answered(job, &names, answered);
        self.writer.put(Write { names, line, noted: Noted::Open }).await;
    }

    /// Notes that work which was interrupted is under way again.
    pub(crate) fn reopen(&self, name: &Name) {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).reopen(&name.text());
    }

    /// Takes further names of a request, which are then to be claimed. `held` is a name that its lines have.
    pub(crate) fn reserve(&self, held: &Name, names: &[Name]) {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().for_each(|name| index.reserve(name.text().into(), &held.text()));
    }

    /// Writes further names of a request that were reserved. Returns whether they are on disk, as far as anything of
    /// the request is; otherwise they are free again.
    pub(crate) async fn claim(&self, held: &Name, names: &[Name]) -> bool {
        let texts: Vec<Box<str>> = names.iter().map(|name| name.text().into()).collect();
        let is_written = self.writer.also(Also { held: held.text().into(), names: texts.clone() }).await;
        if !is_written {
            let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
            texts.iter().for_each(|name| index.unreserve(name));
        }
        is_written
    }

    /// Notes that an outcome was told, if it is in the store. Nothing waits for that: an outcome that is told twice
    /// does no harm.
    pub(crate) fn told(&self, id: Uuid) {
        if self.place(&Name::of_job(id)).is_some() {
            let names = vec![Name::told(id).text().into()];
            self.writer.put_at_once(Write { line: Line::told(&names), names, noted: Noted::Ended });
        }
    }

    /// Takes the jobs whose outcomes an orchestrator was not told before the agent was started.
    pub(crate) fn take_owed(&self, to: &str) -> Vec<Uuid> {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        owed.extract_if(.., |_, recipient| **recipient == *to).map(|(id, _)| id).collect()
    }

    /// Forgets that work was begun: it was not done, and may be begun again.
    pub(crate) async fn undo(&self, asked: &Asked) {
        let is_noted = || asked.names.iter().any(|name| self.place(name).is_some());
        if (is_noted() || self.is_awaited(&Name::of_job(asked.id)))
            && let Some(names) = names(asked)
        {
            let line = Line::undone(asked, &names);
            self.writer.put(Write { names, line, noted: Noted::Undone }).await;
        }
    }

    /// Whether further names of a request wait for its line.
    fn is_awaited(&self, held: &Name) -> bool {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).is_awaited(&held.text())
    }

    /// Returns where the answer to a request is.
    pub(crate) fn place(&self, name: &Name) -> Option<Place> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).place(&name.text())
    }

    /// The same, for work that may be done again: a line that a crash tore says nothing of it.
    pub(crate) fn untorn_place(&self, name: &Name) -> Option<Place> {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.place(&name.text()).filter(|place| !index.is_torn(*place))
    }

    /// Returns an answer; `None` if it cannot be read any more.
    pub(crate) async fn read(&self, name: &Name) -> Option<Kept> {
        let (answers, name) = (self.clone(), name.clone());
        tokio::task::spawn_blocking(move || answers.read_now(&name)).await.ok()?
    }

    fn read_now(&self, name: &Name) -> Option<Kept> {
        let mut place = self.place(name)?;
        // A name that is about to be written is not in the line yet.
        let is_held = |held: &str| {
            held == name.text() || held == self.index.lock().unwrap_or_else(PoisonError::into_inner).held(&name.text())
        };
        loop {
            let read = self.file.read(place);
            let line = read.as_deref().ok().and_then(Line::read);
            // The file may have been shortened since its place was looked up: then another line is there.
            if let Some(line) = line.filter(|line| line.names().any(is_held)) {
                return Some(line.into_kept());
            }
            let moved = self.place(name).filter(|now| *now != place);
            let Some(now) = moved else {
                let error = read.err();
                tracing::error!(?error, "an answer cannot be read again");
                return None;
            };
            place = now;
        }
    }
}

/// Returns all names of a request in the store: its own, and that of its job. `None` if it has no name by which it
/// could come again.
fn names(asked: &Asked) -> Option<Vec<Box<str>>> {
    let all = || asked.names.iter().map(Name::text).chain(std::iter::once(Name::of_job(asked.id).text()));
    (!asked.names.is_empty()).then(|| all().map(Into::into).collect())
}
