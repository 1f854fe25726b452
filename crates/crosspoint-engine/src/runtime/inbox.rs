//! What waits for the committing thread.
//!
//! The thread takes everything that is there at one go, without lingering for more: while it commits, the next batch gathers by
//! itself, and grows with the load. New work is turned away when too much waits; what agents report is never turned away,
//! because each attempt waits for its report to be committed before it makes the next.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::board::Watch;
use crate::core::{Command, Reply};
use crate::store::Fault;

/// A command, and who wants to know what came of it.
pub(super) struct Letter {
    pub(super) command: Command,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// What came of a command.
pub(super) enum Answer {
    /// It is on disk.
    Committed {
        reply: Reply,
        /// Of a job that was just accepted: so that nobody has to look for it.
        watch: Option<Watch>,
    },
    /// It was tried, and is not known to be.
    Failed(std::sync::Arc<Fault>),
    /// It was not tried, because nothing can be written at present.
    NotTried(std::sync::Arc<Fault>),
}

pub(super) struct Inbox {
    inside: Mutex<Inside>,
    arrived: Condvar,
    submissions_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Inside {
    letters: Vec<Letter>,
    submissions: usize,
    bytes: usize,
    closed: bool,
}

/// Why a letter was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// Too much is waiting.
    Overloaded,
    /// Nobody will read it.
    Closed,
}

/// What the thread finds.
pub(super) enum Mail {
    Letters(Vec<Letter>),
    /// There is nothing more, ever.
    Closed,
}

impl Inbox {
    pub(super) fn new(submissions_max: usize, bytes_max: usize) -> Inbox {
        Inbox { inside: Mutex::default(), arrived: Condvar::new(), submissions_max, bytes_max }
    }

    /// Puts a command in, and gives what the answer will come by.
    pub(super) fn put(&self, command: Command) -> Result<oneshot::Receiver<Answer>, Turned> {
        let (reply, answer) = oneshot::channel();
        let mut inside = self.lock();
        if inside.closed {
            return Err(Turned::Closed);
        }
        if let Command::Submit(submission) = &command {
            let bytes = submission.document.0.len();
            if inside.submissions >= self.submissions_max || inside.bytes.saturating_add(bytes) > self.bytes_max {
                return Err(Turned::Overloaded);
            }
            inside.submissions += 1;
            inside.bytes += bytes;
        }
        let was_empty = inside.letters.is_empty();
        inside.letters.push(Letter { command, reply });
        drop(inside);
        if was_empty {
            self.arrived.notify_one();
        }
        Ok(answer)
    }

    /// Puts in what an agent reports about several jobs: one wake-up for all of them.
    pub(super) fn put_reports(
        &self,
        commands: impl Iterator<Item = Command>,
    ) -> Result<Vec<oneshot::Receiver<Answer>>, Turned> {
        let (letters, answers): (Vec<Letter>, Vec<_>) = commands
            .map(|command| {
                let (reply, answer) = oneshot::channel();
                (Letter { command, reply }, answer)
            })
            .unzip();
        let mut inside = self.lock();
        if inside.closed {
            return Err(Turned::Closed);
        }
        let was_empty = inside.letters.is_empty();
        inside.letters.extend(letters);
        drop(inside);
        if was_empty {
            self.arrived.notify_one();
        }
        Ok(answers)
    }

    /// Waits for letters, but no longer than `patience`.
    pub(super) fn take(&self, patience: Option<Duration>) -> Mail {
        let mut inside = self.lock();
        if inside.letters.is_empty() && !inside.closed && patience != Some(Duration::ZERO) {
            inside = match patience {
                None => self.arrived.wait(inside).unwrap_or_else(PoisonError::into_inner),
                Some(time) => self.arrived.wait_timeout(inside, time).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        if inside.letters.is_empty() && inside.closed {
            return Mail::Closed;
        }
        (inside.submissions, inside.bytes) = (0, 0);
        Mail::Letters(std::mem::take(&mut inside.letters))
    }

    /// Takes no more letters; what is inside is still read.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Takes no more letters, and nobody reads those that are inside: whoever waits for an answer learns that none comes.
    pub(super) fn abandon(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        let unread = std::mem::take(&mut inside.letters);
        drop(inside);
        drop(unread);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
