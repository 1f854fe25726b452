//! The commands that wait for the committing thread.
//!
//! The thread takes all waiting commands at a time and does not wait for more: while it commits, the next batch gathers
//! by itself, and grows with the load. New work is refused when too much waits. Reports of agents are never refused:
//! each attempt waits for its report to be committed before it makes the next, so they cannot pile up.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::published::Watch;
use crate::core::{Command, Reply};
use crate::store::Fault;

/// A command, and where its reply goes.
pub(super) struct Pending {
    pub(super) command: Command,
    /// Who gives the command; it is audited then.
    pub(super) by: Option<Arc<str>>,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// What came of a command.
pub(super) enum Answer {
    /// The command's batch is on disk.
    Committed {
        reply: Reply,
        /// The watch of a job that was just accepted, so that it need not be looked up.
        watch: Option<Watch>,
    },
    /// The command was tried, and is not known to be on disk.
    Failed(Arc<Fault>),
    /// The command was not tried, because nothing can be written at present.
    NotTried(Arc<Fault>),
}

pub(super) struct Inbox {
    inside: Mutex<Inside>,
    arrived: Condvar,
    submissions_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Inside {
    commands: Vec<Pending>,
    submissions: usize,
    bytes: usize,
    closed: bool,
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// Too much is waiting.
    Overloaded,
    /// The committing thread takes no more commands.
    Closed,
}

/// What the committing thread finds in the inbox.
pub(super) enum Taken {
    Commands(Vec<Pending>),
    /// There will never be another command.
    Closed,
}

impl Inbox {
    pub(super) fn new(submissions_max: usize, bytes_max: usize) -> Inbox {
        Inbox { inside: Mutex::default(), arrived: Condvar::new(), submissions_max, bytes_max }
    }

    /// Puts a command in, and returns the receiver of its reply.
    pub(super) fn put(&self, command: Command) -> Result<oneshot::Receiver<Answer>, Turned> {
        self.put_by(None, command)
    }

    /// Puts in a command that is audited.
    pub(super) fn put_by(&self, by: Option<&Arc<str>>, command: Command) -> Result<oneshot::Receiver<Answer>, Turned> {
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
        let was_empty = inside.commands.is_empty();
        inside.commands.push(Pending { command, by: by.cloned(), reply });
        drop(inside);
        if was_empty {
            self.arrived.notify_one();
        }
        Ok(answer)
    }

    /// Puts in what an agent reports about several jobs, with one wake-up for all of them.
    pub(super) fn put_reports(
        &self,
        commands: impl Iterator<Item = Command>,
    ) -> Result<Vec<oneshot::Receiver<Answer>>, Turned> {
        let (commands, answers): (Vec<Pending>, Vec<_>) = commands
            .map(|command| {
                let (reply, answer) = oneshot::channel();
                (Pending { command, by: None, reply }, answer)
            })
            .unzip();
        let mut inside = self.lock();
        if inside.closed {
            return Err(Turned::Closed);
        }
        let was_empty = inside.commands.is_empty();
        inside.commands.extend(commands);
        drop(inside);
        if was_empty {
            self.arrived.notify_one();
        }
        Ok(answers)
    }

    /// Waits for commands, but no longer than `timeout`.
    pub(super) fn take(&self, timeout: Option<Duration>) -> Taken {
        let mut inside = self.lock();
        if inside.commands.is_empty() && !inside.closed && timeout != Some(Duration::ZERO) {
            inside = match timeout {
                None => self.arrived.wait(inside).unwrap_or_else(PoisonError::into_inner),
                Some(time) => self.arrived.wait_timeout(inside, time).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        if inside.commands.is_empty() && inside.closed {
            return Taken::Closed;
        }
        (inside.submissions, inside.bytes) = (0, 0);
        Taken::Commands(std::mem::take(&mut inside.commands))
    }

    /// Takes no more commands; those that are inside are still read.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Takes no more commands and drops those that are inside: callers that wait for a reply learn that none comes.
    pub(super) fn abandon(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        let unread = std::mem::take(&mut inside.commands);
        drop(inside);
        drop(unread);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
