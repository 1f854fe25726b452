//! The directory at the root in which new files wait, and originals are kept.
//!
//! It is on the same file system as their places, so that one rename moves a file. `new-3` is the new file of the
//! fourth change until it is in place; `old-3` is the file that it replaces.

use std::ffi::CString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::fault::Fault;
use super::inspect::Owner;
use super::root::{Root, kind, look, sync, sync_all};

/// Most times that a staging directory is emptied before it is left.
const REMOVED_MAX: usize = 10;

/// What the names of all staging directories begin with.
const PREFIX: &str = ".crosspoint-";

/// An open staging directory.
#[derive(Debug)]
pub(super) struct Staging<'r> {
    root: &'r Root,
    name: String,
    handle: OwnedFd,
}

impl AsFd for Staging<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Returns a name that no artifact can foresee.
pub(super) fn new_name() -> String {
    format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish())
}

/// What is added to the name of a staging directory that stands in for one that was removed.
pub(super) const AGAIN: &str = "-again";

/// Whether a name is one of those. What is in a directory of such a name is removed with it.
pub(super) fn is_name(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    let digits = digits.strip_suffix(AGAIN).unwrap_or(digits);
    digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

pub(super) fn new_file(number: usize) -> String {
    format!("new-{number}")
}

pub(super) fn old_file(number: usize) -> String {
    format!("old-{number}")
}

/// The name of a file that is written again from the record, until it is whole.
pub(super) fn unfinished_file(name: &str) -> String {
    format!("{name}.unfinished")
}

impl<'r> Staging<'r> {
    /// Makes the directory, readable by its owner only. Fails where the name is taken.
    pub(super) fn make(root: &'r Root, name: &str) -> Result<Staging<'r>, Fault> {
        let fault = |errno| root.fault(name, errno);
        fs::mkdirat(root.handle(), name, Mode::RWXU).map_err(fault)?;
        let staging = Staging::open(root, name)?.ok_or_else(|| fault(Errno::NOENT))?;
        // The umask of the process may have taken away the owner's own rights.
        fs::fchmod(&staging.handle, Mode::RWXU).map_err(fault)?;
        Ok(staging)
    }

    /// Opens the directory, or returns `None` where it does not exist.
    pub(super) fn open(root: &'r Root, name: &str) -> Result<Option<Staging<'r>>, Fault> {
        match root.directory(name) {
            Ok(handle) => Ok(Some(Staging { root, name: name.to_owned(), handle })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(root.fault(name, errno)),
        }
    }

    /// Writes a file. It takes over the mode, and where possible the owner, of the file that it will replace.
    pub(super) fn write(&self, name: &str, content: &[u8], owner: Option<Owner>, sync: bool) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // The umask of the process is applied by the system.
        let opened = fs::openat(&self.handle, name, flags, Mode::from_raw_mode(0o666));
        let mut file = File::from(opened.map_err(|errno| self.fault(name, errno))?);
        let io_fault = |source: io::Error| match Errno::from_io_error(&source) {
            Some(errno) => self.fault(name, errno),
            None => Fault::from_io(&self.root.path().join(&self.name).join(name), source),
        };
        file.write_all(content).map_err(io_fault)?;
        if let Some(owner) = owner {
            take_over(&file, owner).map_err(|errno| self.fault(name, errno))?;
        }
        if sync { file.sync_all().map_err(io_fault) } else { Ok(()) }
    }

    /// Makes the directory itself, its names and its place at the root survive a power cut. `all` also syncs the
    /// contents.
    pub(super) fn sync(&self, all: bool) -> Result<(), Fault> {
        let synced =
            if all { sync_all(&self.handle) } else { sync(&self.handle).and_then(|()| sync(self.root.handle())) };
        synced.map_err(|errno| self.fault("", errno))
    }

    /// Returns a file of the directory. What another program put under its name is no file of ours, and is removed.
    pub(super) fn file(&self, name: &str) -> Result<Option<Stat>, Errno> {
        let Some(stat) = look(self, name)? else { return Ok(None) };
        if kind(&stat) == FileType::RegularFile {
            return Ok(Some(stat));
        }
        fs::unlinkat(&self.handle, name, AtFlags::empty()).map(|()| None)
    }

    /// Removes a file, where there is one.
    pub(super) fn unlink(&self, name: &str) -> Result<(), Fault> {
        match fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// Removes the directory. What another program put there as a directory stays, and so does the directory then.
    pub(super) fn remove(self) -> Result<(), Fault> {
        // More than once: another program may put something there meanwhile.
        for _ in 0..REMOVED_MAX {
            for name in names(&self.handle).map_err(|errno| self.fault("", errno))? {
                match fs::unlinkat(&self.handle, &name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
                    Err(errno) => return Err(self.fault("", errno)),
                }
            }
            match fs::unlinkat(self.root.handle(), &self.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => break,
                Err(Errno::NOTEMPTY) => {}
                Err(errno) => return Err(self.fault("", errno)),
            }
        }
        sync(self.root.handle()).map_err(|errno| self.fault("", errno))
    }

    pub(super) fn fault(&self, name: &str, errno: Errno) -> Fault {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => self.root.fault(&format!("{}/{name}", self.name), errno),
            // The name is another one in each try, and says nothing to people. There is no room at the root, say.
            other => Fault::of(self.root.path(), other),
        }
    }
}

/// Returns all names of a directory, before any of them is removed: removing while listing may skip some.
pub(super) fn names(directory: impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if name.as_bytes() != b"." && name.as_bytes() != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

fn take_over(file: &File, owner: Owner) -> Result<(), Errno> {
    let stat = fs::fstat(file)?;
    let mut mode = owner.mode;
    if (stat.st_uid, stat.st_gid) != (owner.user, owner.group) {
        let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
        // Only the superuser may give files away. A file that runs as its owner must not run as another user instead.
        if fs::fchown(file, Some(user), Some(group)).is_err() {
            mode &= 0o1777;
        }
    }
    fs::fchmod(file, Mode::from_raw_mode(mode))
}
