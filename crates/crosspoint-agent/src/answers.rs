//! The store of answers: what came of requests, kept over restarts (MSG-8).
//!
//! A file of lines, one for each answer, to which lines are only added. A line begins with a digest of itself, so the
//! torn end of a crash is told from an answer. All answers that wait are written together and synced once. The file is
//! bounded by age and size: when it has become too long, the younger half is kept.

mod file;
mod line;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::time::Time;
use tokio::sync::oneshot;

pub(crate) use self::file::Place;
use self::file::{AnswerFile, Index};
pub(crate) use self::line::Kept;
use self::line::Line;
use crate::backend::Name;
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
    writer: std::sync::mpsc::Sender<Order>,
}

/// What the writing thread is to do.
enum Order {
    Write(Write),
    /// Nothing more is written, and another process may have the file. The sender is told when that is so.
    Close(oneshot::Sender<()>),
}

/// A line to be written, and who waits to be told whether it is on disk.
struct Write {
    names: Vec<Box<str>>,
    line: Vec<u8>,
    is_undone: bool,
    written: oneshot::Sender<bool>,
}

impl Answers {
    /// Opens the store, or makes it.
    pub(crate) fn open(path: &Path, keep: Keep) -> io::Result<Answers> {
        let (file, index) = AnswerFile::open(path, keep, crate::clock::now())?;
        let (writer, waiting) = std::sync::mpsc::channel::<Order>();
        let (index, file) = (Arc::new(Mutex::new(index)), Arc::new(file));
        let answers = Answers { index: index.clone(), file: file.clone(), writer };
        std::thread::Builder::new().name("answers".to_owned()).spawn(move || {
            while let Ok(first) = waiting.recv() {
                let (mut writes, mut closing) = (Vec::new(), None);
                for order in std::iter::once(first).chain(waiting.try_iter()) {
                    match order {
                        Order::Write(write) => writes.push(write),
                        Order::Close(closed) => closing = Some(closed),
                    }
                }
                write(&file, &index, writes);
                if let Some(closed) = closing {
                    file.unlock();
                    let _ = closed.send(());
                    return;
                }
            }
        })?;
        Ok(answers)
    }

    /// Gives the file back. What comes later is not kept.
    pub(crate) async fn close(&self) {
        let (closed, waits) = oneshot::channel();
        if self.writer.send(Order::Close(closed)).is_ok() {
            let _ = waits.await;
        }
    }

    /// Keeps an answer. When it returns, the answer is on disk, or it was logged that it is not.
    pub(crate) async fn keep(&self, job: &Record, at: Time, outcome: &Outcome) {
        self.put(&job.asked, Line::ended(job, at, outcome), false).await;
    }

    /// Notes that work is begun that must not be begun again. Returns whether that is on disk.
    pub(crate) async fn begin(&self, job: &Record) -> bool {
        self.put(&job.asked, Line::begun(job), false).await
    }

    /// Writes a line, if the request has a name by which it could come again. Returns whether it is on disk.
    async fn put(&self, asked: &Asked, line: Vec<u8>, is_undone: bool) -> bool {
        if asked.names.is_empty() {
            return true;
        }
        let names = names(asked).map(|name| name.text().into()).collect();
        let (written, waits) = oneshot::channel();
        let write = Write { names, line, is_undone, written };
        if self.writer.send(Order::Write(write)).is_err() {
            tracing::error!("the store of answers is closed; the same request would run again");
            return false;
        }
        waits.await.unwrap_or(false)
    }

    /// Forgets that work was begun: it was not done, and may be begun again.
    pub(crate) async fn undo(&self, asked: &Asked) {
        if asked.names.iter().any(|name| self.place(name).is_some()) {
            self.put(asked, Line::undone(asked), true).await;
        }
    }

    /// Returns where the answer to a request is.
    pub(crate) fn place(&self, name: &Name) -> Option<Place> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).get(&*name.text()).copied()
    }

    /// Returns an answer; `None` if it cannot be read any more.
    pub(crate) async fn read(&self, name: &Name) -> Option<Kept> {
        let (answers, name) = (self.clone(), name.clone());
        tokio::task::spawn_blocking(move || answers.read_now(&name)).await.ok()?
    }

    fn read_now(&self, name: &Name) -> Option<Kept> {
        let mut place = self.place(name)?;
        loop {
            let read = self.file.read(place);
            let line = read.as_deref().ok().and_then(Line::read);
            // The file may have been shortened since its place was looked up: then another line is there.
            if let Some(line) = line.filter(|line| line.names().any(|held| held == name.text())) {
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

/// Returns all names of a request in the store: its own, and that of its job.
fn names(asked: &Asked) -> impl Iterator<Item = Name> {
    asked.names.iter().cloned().chain(std::iter::once(Name::of_job(asked.id)))
}

/// Writes what waits, with one sync.
fn write(file: &AnswerFile, index: &Mutex<Index>, writes: Vec<Write>) {
    let lines: Vec<&[u8]> = writes.iter().map(|write| &*write.line).collect();
    let places = file.append(&lines);
    match &places {
        Ok(places) => {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            for (write, place) in writes.iter().zip(places) {
                file::note(&mut index, &write.names, *place, write.is_undone);
            }
        }
        Err(error) => tracing::error!(%error, "answers cannot be kept; the same requests would run again"),
    }
    for write in writes {
        let _ = write.written.send(places.is_ok());
    }
    // Nothing waits for this but what is written next.
    if let Err(error) = file.shorten(index, crate::clock::now()) {
        tracing::warn!(%error, "the store of answers cannot be shortened");
    }
}
