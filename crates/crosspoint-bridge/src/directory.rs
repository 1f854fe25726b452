//! A directory of the bridge.
//!
//! Every step goes through one open descriptor of the directory, so that renaming the directory between a look and a
//! step cannot slip in another one. Files are written whole or not at all (BRIDGE-7): under a name of their own,
//! synced, renamed, and the directory synced. Links, pipes, devices and directories under the names of files are
//! neither followed nor opened; they can only be moved out of the way.
//!
//! One driver at a time works in a directory. It holds a lock on the directory itself, which needs no file and ends
//! with the driver's process.

mod clear;
mod names;

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

pub use self::clear::Removed;
use self::names::TEMPORARY;
pub use self::names::{Leftover, half_removed};
use crate::failpoint;
use crate::fault::Fault;

/// The steps of writing a file. Failpoints name them after the file that is written: `response.created` and so on.
pub const WRITE_STEPS: [&str; 5] = ["created", "written", "synced", "renamed", "kept"];

/// Files may hold any content, so only their owner may read them.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// The lock of a directory. The process that holds it is the one driver of the directory.
#[derive(Debug)]
pub struct Lock {
    /// A descriptor of its own: the lock is released when it and all its copies are closed.
    descriptor: OwnedFd,
}

/// A process that is given a copy of the descriptor holds the lock too, even after the process that took it has ended.
impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The contents of a file. It has no `Debug`, because the bytes are content.
pub struct Found {
    /// The beginning of the file, up to the limit that the reader gave.
    pub bytes: Vec<u8>,
    /// The length of the file, in bytes.
    pub length: u64,
    /// When the file was last written.
    pub modified: SystemTime,
}

/// Tells, without reading the file, whether a name still stands for the same unchanged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    inode: u64,
    length: i64,
    modified: (i64, i64),
    /// Also changes with the file's permissions: a file that could not be read may be readable now.
    changed: (i64, i64),
}

impl Directory {
    /// Opens a directory, which must exist.
    pub fn open(path: &Path) -> Result<Directory, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = fs::open(path, flags, Mode::empty()).map_err(|errno| Fault::of(path, errno))?;
        Ok(Directory { descriptor, path: path.to_owned() })
    }

    /// Opens a directory within this one, and makes it where it does not exist, readable by its owner only. A link is
    /// not followed.
    pub(crate) fn within_made(&self, name: &str) -> Result<Directory, Fault> {
        match fs::mkdirat(&self.descriptor, name, Mode::RWXU) {
            Ok(()) => self.sync()?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.fault(name, errno)),
        }
        self.within(name)?.ok_or_else(|| Fault::Gone(self.path.join(name)))
    }

    /// Opens a directory within this one, or returns `None` where it does not exist. A link is not followed.
    pub(crate) fn within(&self, name: &str) -> Result<Option<Directory>, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Directory { descriptor, path: self.path.join(name) })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// Returns the path as the directory was opened with it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock that makes this process the one driver of the directory. Fails with [`Fault::InUse`] where
    /// another driver holds it.
    pub fn lock(&self) -> Result<Lock, Fault> {
        let again = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor =
            fs::openat(&self.descriptor, ".", again, Mode::empty()).map_err(|errno| self.fault("", errno))?;
        match fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock { descriptor }),
            Err(Errno::WOULDBLOCK) => Err(Fault::InUse(self.path.clone())),
            Err(errno) => Err(self.fault("", errno)),
        }
    }

    /// Returns whether there is an entry of this name, whatever it is.
    pub fn has(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.look(name)?.is_some())
    }

    /// Returns the mark of the entry of this name without reading it, or `None` where there is no such entry.
    pub fn mark(&self, name: &str) -> Result<Option<Mark>, Fault> {
        Ok(self.look(name)?.map(|stat| mark(&stat)))
    }

    /// Reads at most `bytes_max` bytes of a file. Returns `None` where there is no such file.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Found>, Fault> {
        let Some(stat) = self.look(name)? else { return Ok(None) };
        self.expect_file(name, &stat)?;
        // Between the look and now the file may have been replaced by a link, or by a pipe that no process writes to.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = match fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened.map_err(|errno| self.fault(name, errno))?,
        };
        let stat = fs::fstat(&opened).map_err(|errno| self.fault(name, errno))?;
        self.expect_file(name, &stat)?;
        let mut bytes = Vec::new();
        let file = std::fs::File::from(opened);
        (&file).take(bytes_max).read_to_end(&mut bytes).map_err(|source| self.other(name, source))?;
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        // Another process may be writing the file in place.
        let length = if (bytes.len() as u64) < bytes_max { bytes.len() as u64 } else { length.max(bytes_max) };
        Ok(Some(Found { bytes, length, modified: modified(&stat) }))
    }

    /// Writes a file whole or not at all, over a file that has the name. `what` names the file for failpoints.
    pub fn write(&self, name: &str, what: &str, bytes: &[u8]) -> Result<(), Fault> {
        let put = |temporary: &str| fs::renameat(&self.descriptor, temporary, &self.descriptor, name);
        self.write_and(name, what, bytes, put)
    }

    /// Writes a file whole or not at all, but only where no file has the name. Returns whether it was written.
    pub fn write_anew(&self, name: &str, what: &str, bytes: &[u8]) -> Result<bool, Fault> {
        let mut first = true;
        self.write_and(name, what, bytes, |temporary| match self.rename_anew(temporary, name) {
            Err(Errno::EXIST) => {
                first = false;
                fs::unlinkat(&self.descriptor, temporary, AtFlags::empty())
            }
            renamed => renamed,
        })?;
        Ok(first)
    }

    fn write_and(
        &self,
        name: &str,
        what: &str,
        bytes: &[u8],
        put: impl FnOnce(&str) -> Result<(), Errno>,
    ) -> Result<(), Fault> {
        let temporary = format!("{name}{TEMPORARY}{}", Uuid::new_v4().simple());
        let written = self.write_under(&temporary, what, bytes);
        let written = written.and_then(|()| put(&temporary).map_err(|errno| self.fault(name, errno)));
        if let Err(fault) = written {
            // If the file cannot be removed either, the next sweep removes it.
            let _ = fs::unlinkat(&self.descriptor, &temporary, AtFlags::empty());
            return Err(fault);
        }
        failpoint::reached(what, "renamed");
        self.sync()?;
        failpoint::reached(what, "kept");
        Ok(())
    }

    fn write_under(&self, temporary: &str, what: &str, bytes: &[u8]) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = fs::openat(&self.descriptor, temporary, flags, FILE_MODE);
        let mut file = std::fs::File::from(opened.map_err(|errno| self.fault("", errno))?);
        // The umask of the process may have taken away the owner's own rights.
        fs::fchmod(&file, FILE_MODE).map_err(|errno| self.fault(temporary, errno))?;
        failpoint::reached(what, "created");
        file.write_all(bytes).map_err(|source| self.other(temporary, source))?;
        failpoint::reached(what, "written");
        file.sync_all().map_err(|source| self.other(temporary, source))?;
        failpoint::reached(what, "synced");
        Ok(())
    }

    /// Leaves an empty file as a mark. It is not synced: a mark that is lost does no harm.
    pub(crate) fn leave_mark(&self, name: &str) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        fs::openat(&self.descriptor, name, flags, FILE_MODE).map(drop).map_err(|errno| self.fault(name, errno))
    }

    /// Moves a file into a directory within this one, under another name. `what` names the file for failpoints.
    pub(crate) fn move_into(&self, name: &str, within: &Directory, to: &str, what: &str) -> Result<(), Fault> {
        let moved = fs::renameat(&self.descriptor, name, &within.descriptor, to);
        moved.map_err(|errno| self.fault(name, errno))?;
        failpoint::reached(what, "moved");
        within.sync()?;
        self.sync()?;
        failpoint::reached(what, "kept");
        Ok(())
    }

    /// Moves a file back out of a directory within this one, if no file has the name there.
    pub(crate) fn move_out_of(&self, within: &Directory, from: &str, name: &str) -> Result<(), Fault> {
        let moved = fs::renameat_with(&within.descriptor, from, &self.descriptor, name, RenameFlags::NOREPLACE);
        moved.map_err(|errno| self.fault(name, errno))
    }

    /// Returns the names of all entries that belong to the bridge or look like it, in order.
    pub fn names(&self) -> Result<Vec<String>, Fault> {
        self.names_that(|name| name.starts_with(".agent-"))
    }

    /// Returns the names of all entries whose names are UTF-8, in order.
    pub(crate) fn all_names(&self) -> Result<Vec<String>, Fault> {
        self.names_that(|_| true)
    }

    fn names_that(&self, matter: impl Fn(&str) -> bool) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        self.each_name(|name| names.extend(matter(name).then(|| name.to_owned())))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Calls `show` with each name, in no order, without keeping them: there may be very many.
    fn each_name(&self, mut show: impl FnMut(&str)) -> Result<(), Fault> {
        for entry in fs::Dir::read_from(&self.descriptor).map_err(|errno| self.fault("", errno))? {
            let entry = entry.map_err(|errno| self.fault("", errno))?;
            let name = entry.file_name().to_str();
            if let Some(name) = name.ok().filter(|name| ![".", ".."].contains(name)) {
                show(name);
            }
        }
        Ok(())
    }

    /// Renames a file, but not over another one.
    fn rename_anew(&self, from: &str, to: &str) -> Result<(), Errno> {
        let (directory, flags) = (&self.descriptor, RenameFlags::NOREPLACE);
        match fs::renameat_with(directory, from, directory, to, flags) {
            // Some file systems do not support this. The holder of the lock is the only one to use its own names.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match fs::statat(directory, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => fs::renameat(directory, from, directory, to),
                    Err(errno) => Err(errno),
                    Ok(_) => Err(Errno::EXIST),
                }
            }
            renamed => renamed,
        }
    }

    fn look(&self, name: &str) -> Result<Option<Stat>, Fault> {
        match fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) if self.is_there() => Ok(None),
            Err(errno) => Err(self.fault("", errno)),
        }
    }

    /// Returns whether the directory still exists. A removed directory holds no names, and nothing can be put into it.
    fn is_there(&self) -> bool {
        fs::fstat(&self.descriptor).is_ok_and(|stat| stat.st_nlink > 0)
    }

    fn expect_file(&self, name: &str, stat: &Stat) -> Result<(), Fault> {
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => return Ok(()),
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a named pipe",
            FileType::Directory => "a directory",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            _ => "something else",
        };
        Err(Fault::NotAFile { path: self.path.join(name), what })
    }

    fn sync(&self) -> Result<(), Fault> {
        match fs::fsync(&self.descriptor) {
            // Some file systems cannot sync a directory, and keep it in order by themselves.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(errno) => Err(self.fault("", errno)),
        }
    }

    fn fault(&self, name: &str, errno: Errno) -> Fault {
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        // Where the directory still exists, the file is what is missing; otherwise the directory is.
        Fault::of(if self.is_there() { &path } else { &self.path }, errno)
    }

    fn other(&self, name: &str, source: std::io::Error) -> Fault {
        match source.raw_os_error() {
            Some(code) => self.fault(name, Errno::from_raw_os_error(code)),
            None => Fault::Other { path: self.path.join(name), source },
        }
    }
}

fn mark(stat: &Stat) -> Mark {
    Mark {
        inode: stat.st_ino,
        length: stat.st_size,
        modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or_default()),
    }
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    UNIX_EPOCH + Duration::new(seconds, nanos)
}
