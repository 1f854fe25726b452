//! The store of answers: what came of requests, kept over restarts (MSG-8).
//!
//! A file of lines, one for each answer, to which lines are only added. A line begins with a digest of itself, so the
//! torn end of a crash is told from an answer. All answers that wait are written together and synced once. The file is
//! bounded by age and size: when it has become too long, the younger half is kept.

mod file;
mod line;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosspoint_contracts::outcome::Outcome;
use tokio::sync::oneshot;

use self::file::AnswerFile;
pub(crate) use self::file::Place;
pub(crate) use self::line::Kept;
use self::line::Line;
use crate::desk::Name;
use crate::record::Asked;

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
    index: Arc<Mutex<BTreeMap<Box<str>, Place>>>,
    file: Arc<AnswerFile>,
    writer: std::sync::mpsc::Sender<Order>,
}

/// What the writing thread is to do.
enum Order {
    Write(Write),
    /// Nothing more is written, and another process may have the file. The sender is told when that is so.
    Close(oneshot::Sender<()>),
}

/// A line to be written, and who waits for it to be on disk.
struct Write {
    names: Vec<Box<str>>,
    line: Vec<u8>,
    is_undone: bool,
    written: oneshot::Sender<()>,
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
    pub(crate) async fn keep(&self, asked: &Asked, outcome: &Outcome) {
        self.put(&asked.names, Line::ended(asked, outcome), false).await;
    }

    /// Notes that work was begun that must not be begun again.
    pub(crate) async fn begin(&self, asked: &Asked) {
        self.put(&asked.names, Line::begun(asked), false).await;
    }

    async fn put(&self, names: &[Name], line: Vec<u8>, is_undone: bool) {
        if names.is_empty() {
            return;
        }
        let names = names.iter().map(|name| name.text().into()).collect();
        let (written, waits) = oneshot::channel();
        // A thread that is gone has said so in the log.
        if self.writer.send(Order::Write(Write { names, line, is_undone, written })).is_ok() {
            let _ = waits.await;
        }
    }

    /// Forgets that work was begun: it was not done, and may be begun again.
    pub(crate) async fn undo(&self, asked: &Asked) {
        if asked.names.iter().any(|name| self.place(name).is_some()) {
            self.put(&asked.names, Line::undone(asked), true).await;
        }
    }

    /// Returns where the answer to a request is.
    pub(crate) fn place(&self, name: &Name) -> Option<Place> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).get(&*name.text()).copied()
    }

    /// Returns an answer; `None` if it cannot be read any more.
    pub(crate) async fn read(&self, place: Place) -> Option<Kept> {
        let file = self.file.clone();
        let line = tokio::task::spawn_blocking(move || file.read(place)).await.ok()?;
        match line {
            Ok(line) => Line::read(&line).map(Line::into_kept),
            Err(error) => {
                tracing::error!(%error, "an answer cannot be read again");
                None
            }
        }
    }
}

/// Writes what waits, with one sync.
fn write(file: &AnswerFile, index: &Mutex<BTreeMap<Box<str>, Place>>, writes: Vec<Write>) {
    let lines: Vec<&[u8]> = writes.iter().map(|write| &*write.line).collect();
    match file.append(&lines) {
        Ok(places) => {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            for (write, place) in writes.iter().zip(places) {
                file::note(&mut index, &write.names, place, write.is_undone);
            }
            if let Err(error) = file.shorten(&mut index, crate::clock::now()) {
                tracing::warn!(%error, "the store of answers cannot be shortened");
            }
        }
        Err(error) => tracing::error!(%error, "answers cannot be kept; the same requests would run again"),
    }
    for write in writes {
        let _ = write.written.send(());
    }
}
