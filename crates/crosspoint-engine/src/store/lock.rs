//! Keeps a store to one process.
//!
//! The lock is on the database's own inode: a symlink leads to the same inode, and there is no lock file that could be
//! removed to let a second process in. It is another kind of lock than those of the database. The database's locks
//! belong to the process as a whole, and all are dropped as soon as the process closes any descriptor of the file. So a
//! descriptor that was opened here stays open until the process ends, and is used again by the next opening.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Fault, private};

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inode {
    device: u64,
    number: u64,
}

/// A descriptor that stays open.
struct Kept {
    file: File,
    /// Whether a store of this process holds the lock.
    taken: bool,
}

/// All descriptors of databases that this module has opened in this process.
static KEPT: Mutex<BTreeMap<Inode, Kept>> = Mutex::new(BTreeMap::new());

/// The lock of a store, held until this is dropped.
pub(super) struct Lock {
    inode: Inode,
    path: PathBuf,
    /// The lock file of earlier versions, where one was left: a server of such a version may be running.
    _earlier: Option<File>,
}

impl Lock {
    /// Takes the lock. Creates an empty database where there is none.
    pub(super) fn take(path: &Path) -> Result<Lock, Fault> {
        let earlier = earlier(path)?;
        let mut kept = kept();
        let inode = match Inode::at(path).filter(|inode| kept.contains_key(inode)) {
            Some(known) => known,
            None => open(path, &mut kept)?,
        };
        let Some(one) = kept.get_mut(&inode) else { return Err(Fault::InUse { path: path.to_owned() }) };
        if one.taken {
            return Err(Fault::InUse { path: path.to_owned() });
        }
        take(&one.file, path)?;
        one.taken = true;
        Ok(Lock { inode, path: path.to_owned(), _earlier: earlier })
    }

    /// Whether the file at the store's path is still the one that is locked. If not, it was moved, removed or replaced,
    /// and nothing that is written to it would be found again.
    pub(super) fn is_in_place(&self) -> bool {
        Inode::at(&self.path) == Some(self.inode)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(one) = kept().get_mut(&self.inode) {
            let _ = one.file.unlock();
            one.taken = false;
        }
    }
}

impl Inode {
    fn at(path: &Path) -> Option<Inode> {
        fs::metadata(path).ok().map(|found| Inode { device: found.dev(), number: found.ino() })
    }
}

/// Opens a file that this process has not opened here before.
fn open(path: &Path, kept: &mut BTreeMap<Inode, Kept>) -> Result<Inode, Fault> {
    let fault = |error: std::io::Error| Fault::directory(path, &error);
    let is_new = !path.exists();
    let file = private().open(path).map_err(fault)?;
    let found = file.metadata().map_err(fault)?;
    let inode = Inode { device: found.dev(), number: found.ino() };
    if is_new {
        super::sync_directory(path);
    }
    match kept.entry(inode) {
        Entry::Vacant(free) => {
            free.insert(Kept { file, taken: false });
        }
        // The file came to this path since it was looked up. This descriptor must not be closed either.
        Entry::Occupied(_) => std::mem::forget(file),
    }
    Ok(inode)
}

fn take(file: &File, path: &Path) -> Result<(), Fault> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Fault::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(Fault::directory(path, &error)),
    }
}

/// Locks the lock file of earlier versions too, where there is one. It is no longer created.
fn earlier(path: &Path) -> Result<Option<File>, Fault> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let Ok(file) = File::options().write(true).open(&name) else { return Ok(None) };
    take(&file, path).map(|()| Some(file))
}

fn kept() -> MutexGuard<'static, BTreeMap<Inode, Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}
