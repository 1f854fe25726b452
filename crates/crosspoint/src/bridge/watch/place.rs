//! One directory that is watched: where it is, and what in it was looked at and left.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosspoint_bridge::{Directory, Fault, Leftover, Mark, Pair};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::survey::Wrote;
use crate::bridge::attend::Attended;
use crate::bridge::record;
use crate::render;

/// A directory that was the same at so many full glances needs none: where it is looked at again and again, that is for 2 s, and no file system's
/// clock ticks more slowly. Files that come change the directory's own times.
const CALM_AFTER: u8 = 8;

/// After so many short glances there is a full one all the same.
const CALM_UNTIL: u8 = 248;

pub(super) struct Place {
    pub(super) path: PathBuf,
    /// Whoever visits it is told here that something has come.
    pub(super) nudge: Notify,
    memory: Mutex<Memory>,
}

/// What was found under the names of requests, was said, and is left as it is.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) left: BTreeMap<Pair, Left>,
    /// What looks broken, and since when it has looked just so: whoever writes it may not be done.
    pub(super) suspects: BTreeMap<Pair, (Mark, Instant)>,
    /// The last response that was written under each name.
    pub(super) wrote: BTreeMap<Pair, Wrote>,
    /// It was looked at since we began.
    is_known: bool,
    /// It was swept since we began: whatever is half-written since then can wait for the next who begins.
    is_swept: bool,
    /// What the directory itself was like when nothing was there, and how often.
    calm: (Option<Times>, u8),
}

/// Its inode, and when it was modified and changed.
type Times = [i64; 5];

/// What was seen at a glance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Glanced {
    Nothing,
    /// Only what was said already.
    Left,
    Something,
}

/// Until when something is left.
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

impl Place {
    pub(super) fn new(path: PathBuf) -> Place {
        Place { path, nudge: Notify::new(), memory: Mutex::default() }
    }

    /// For people.
    pub(super) fn name(&self) -> String {
        render::visible(&self.path.display().to_string())
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes the one who answers there. Only the first visit looks at every name of the directory.
    pub(super) fn open(&self) -> Result<Attended, Fault> {
        if self.memory().is_swept {
            return Attended::open_again(&self.path);
        }
        let attended = Attended::open(&self.path)?;
        self.memory().is_swept = true;
        Ok(attended)
    }

    /// Whether a visit is worth it. Takes no lock and leaves nothing behind.
    pub(super) fn glance(&self) -> Result<bool, Fault> {
        let mut memory = self.memory();
        // Before anything is looked for, so that whatever comes later shows next time.
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

    /// It went away: if it comes back, it may be another.
    pub(super) fn forget(&self) {
        *self.memory() = Memory::default();
    }

    /// What need not be looked at.
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
