//! What the agents of a matrix were asked, and when they may go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::server::PATIENCE;

/// One thing that an agent was given or told.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// `new` for work, `input` for an answer, `told` for the news that the job is over.
    pub(super) what: &'static str,
    /// The id under which the agent knows the job.
    pub(super) id: String,
    /// `traceparent`, as a header or in the environment.
    pub(super) trace: String,
    /// The document of its contract; for a program, its input.
    pub(super) document: Value,
}

/// Entries by the name of the cell, which is in every input.
#[derive(Default)]
pub(super) struct Ledger {
    book: Mutex<Book>,
    changed: Condvar,
}

#[derive(Default)]
struct Book {
    seen: BTreeMap<String, Vec<Seen>>,
    released: BTreeSet<String>,
}

impl Ledger {
    pub(super) fn note(&self, cell: &str, seen: Seen) {
        self.lock().seen.entry(cell.to_owned()).or_default().push(seen);
        self.changed.notify_all();
    }

    /// All entries of one kind that the agent of a cell has seen.
    pub(super) fn seen(&self, cell: &str, what: &str) -> Vec<Seen> {
        let all = self.lock().seen.get(cell).cloned().unwrap_or_default();
        all.into_iter().filter(|seen| seen.what == what).collect()
    }

    /// Lets the agent of a cell go on.
    pub(super) fn release(&self, cell: &str) {
        self.lock().released.insert(cell.to_owned());
        self.changed.notify_all();
    }

    /// Waits until the agent may go on, at most this long. Returns whether it may.
    pub(super) fn released(&self, cell: &str, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let mut book = self.lock();
        while !book.released.contains(cell) {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            book = self.changed.wait_timeout(book, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The same, for agents that cannot go on otherwise.
    pub(super) fn until_released(&self, cell: &str) {
        assert!(self.released(cell, PATIENCE), "{cell} is never released");
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
