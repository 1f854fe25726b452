//! One watched directory: where it is, and what in it was looked at and left.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosspoint_bridge::{Directory, Fault, Leftover, Mark, Pair};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::scan::Wrote;
use crate::bridge::driver::DrivenDirectory;
use crate::bridge::record;
use crate::terminal::render;

/// Full glances without a change after which a directory is calm and needs none. When directories are polled that is 2
/// s, and no file system's clock ticks more slowly. New files change the directory's own times.
const CALM_AFTER: u8 = 8;

/// Glances without a change after which a calm directory gets full glances again.
const CALM_UNTIL: u8 = 248;

pub(super) struct WatchedDirectory {
    pub(super) path: PathBuf,
    /// Tells the visit of this directory that something has come.
    pub(super) nudge: Notify,
    memory: Mutex<Memory>,
}

/// What was found under the names of requests, was logged, and is left as it is.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) left: BTreeMap<Pair, Left>,
    /// Requests that look broken, and since when they have been unchanged: their writer may not be done.
    pub(super) suspects: BTreeMap<Pair, (Mark, Instant)>,
    /// The last response that was written under each name.
    pub(super) wrote: BTreeMap<Pair, Wrote>,
    /// Whether it was looked at since this process began.
    is_known: bool,
    /// Whether it was swept since this process began. What is left half-written after that can wait for the next
    /// process.
    is_swept: bool,
    /// The directory's own times when nothing was there, and at how many glances they were the same.
    calm: (Option<Times>, u8),
}

/// The inode of a directory, and when it was modified and changed.
type Times = [i64; 5];

/// What was seen at a glance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Glanced {
    Nothing,
    /// Only files that were logged already.
    Left,
    Something,
}

/// Until when a file is left as it is.
pub(super) enum Left {
    /// Until it changes.
    AsItIs(Mark),
    /// Until it changes, or the record does (this is the record's mark).
    AsRecorded(Mark, Option<Mark>),
}

impl Left {
    pub(super) fn mark(&self) -> Mark {
        match self {
            Left::AsItIs(mark) | Left::AsRecorded(mark, _) => *mark,
        }
    }

    fn holds(&self, directory: &Directory, mark: Mark) -> Result<bool, Fault> {
        Ok(match self {
            Left::AsItIs(left) => *left == mark,
            Left::AsRecorded(left, record) => *left == mark && directory.mark(record::NAME)? == *record,
        })
    }
}

impl WatchedDirectory {
    pub(super) fn new(path: PathBuf) -> WatchedDirectory {
        WatchedDirectory { path, nudge: Notify::new(), memory: Mutex::default() }
    }

    /// The path, for people.
    pub(super) fn name(&self) -> String {
        render::visible(&self.path.display().to_string())
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the directory's lock, to answer there. Only the first visit looks at every name of the directory.
    pub(super) fn open(&self) -> Result<DrivenDirectory, Fault> {
        if self.memory().is_swept {
            return DrivenDirectory::open_again(&self.path);
        }
        let attended = DrivenDirectory::open(&self.path)?;
        self.memory().is_swept = true;
        Ok(attended)
    }

    /// Whether a visit is worth it. Takes no lock and leaves nothing behind.
    pub(super) fn glance(&self) -> Result<bool, Fault> {
        let mut memory = self.memory();
        // Read before anything is looked for, so that what comes later shows next time.
        let times = std::fs::metadata(&self.path).ok().map(|metadata| times(&metadata));
        let looks = if times.is_some() && memory.calm.0 == times { memory.calm.1 + 1 } else { 0 };
        memory.calm = (times, looks % CALM_UNTIL);
        if looks > CALM_AFTER && looks < CALM_UNTIL {
            return Ok(false);
        }
        let seen = self.look(&mut memory)?;
        if seen != Glanced::Nothing {
            memory.calm = (None, 0);
        }
        Ok(seen == Glanced::Something)
    }

    fn look(&self, memory: &mut Memory) -> Result<Glanced, Fault> {
        let directory = Directory::open(&self.path)?;
        if !std::mem::replace(&mut memory.is_known, true) && has_leftovers(&directory)? {
            return Ok(Glanced::Something);
        }
        for pair in Pair::all() {
            let name = pair.request();
            match (directory.mark(&name)?, memory.left.get(&pair)) {
                (Some(mark), Some(left)) if left.holds(&directory, mark)? => {}
                (Some(_), _) => return Ok(Glanced::Something),
                (None, _) => {
                    memory.left.remove(&pair);
                    memory.suspects.remove(&pair);
                }
            }
            if directory.is_half_removed(&name)? {
                return Ok(Glanced::Something);
            }
        }
        Ok(if memory.left.is_empty() { Glanced::Nothing } else { Glanced::Left })
    }

    /// Forgets a directory that went away: if it comes back, it may be another one.
    pub(super) fn forget(&self) {
        *self.memory() = Memory::default();
    }

    /// Returns the requests that need not be looked at.
    pub(super) fn left(&self, directory: &Directory) -> Result<BTreeMap<Pair, Mark>, Fault> {
        let mut marks = BTreeMap::new();
        for (pair, left) in &self.memory().left {
            if left.holds(directory, left.mark())? {
                marks.insert(*pair, left.mark());
            }
        }
        Ok(marks)
    }
}

/// Whether a driver ended here without cleaning up.
fn has_leftovers(directory: &Directory) -> Result<bool, Fault> {
    Ok(directory.names()?.iter().any(|name| name == record::NAME || Leftover::of(name) == Some(Leftover::Half)))
}

fn times(metadata: &Metadata) -> Times {
    let inode = i64::from_ne_bytes(metadata.ino().to_ne_bytes());
    [inode, metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()]
}
