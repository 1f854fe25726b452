//! A directory of the bridge.
//!
//! Everything goes through one open descriptor of the directory, so that nothing can be slipped in between a look and a step by renaming it.
//! Files are written whole or not at all (BRIDGE-7): under a name of their own, synced, renamed, and the directory synced. Whatever is planted
//! under their names - links, pipes, devices, directories - is neither followed nor opened; it can only be moved out of the way.
//!
//! One driver at a time works in a directory: it holds a lock on the directory itself, which needs no file and goes with its process.

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

/// The steps of writing a file, as failpoints name them after what is written: `response.created` and so on.
pub const WRITE_STEPS: [&str; 5] = ["created", "written", "synced", "renamed", "kept"];

/// What is written for others to read may hold anything: only its owner reads it.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A directory that is open.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// Whoever holds it is the one driver of the directory.
#[derive(Debug)]
pub struct Lock {
    /// Of its own: the lock goes when it and all its copies are closed.
    descriptor: OwnedFd,
}

/// Whoever is given a copy of it holds the lock too, and on when the process that took it is gone.
impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What is in a file. It is content, and does not print itself.
pub struct Found {
    /// As much of it as was wanted.
    pub bytes: Vec<u8>,
    /// How long the file is.
    pub length: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

/// By what it is known, without reading it, that what has a name is still what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    inode: u64,
    length: i64,
    modified: (i64, i64),
    /// Changes with the rights to it too: what could not be read may be readable now.
    changed: (i64, i64),
}

impl Directory {
    /// Opens a directory that is there.
    pub fn open(path: &Path) -> Result<Directory, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = fs::open(path, flags, Mode::empty()).map_err(|errno| Fault::of(path, errno))?;
        Ok(Directory { descriptor, path: path.to_owned() })
    }

    /// Opens a directory within this one, which only its owner may look into, and makes it where it is not there. A link is not followed.
    pub(crate) fn within_made(&self, name: &str) -> Result<Directory, Fault> {
        match fs::mkdirat(&self.descriptor, name, Mode::RWXU) {
            Ok(()) => self.sync()?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.fault(name, errno)),
        }
        self.within(name)?.ok_or_else(|| Fault::Gone(self.path.join(name)))
    }

    /// The same, but `None` where it is not there.
    pub(crate) fn within(&self, name: &str) -> Result<Option<Directory>, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Directory { descriptor, path: self.path.join(name) })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Becomes the one driver of the directory; [`Fault::InUse`] where somebody else is.
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

    /// Whether something has this name, whatever it is.
    pub fn has(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.look(name)?.is_some())
    }

    /// What has this name, as far as it can be told without reading it; `None` where there is nothing.
    pub fn mark(&self, name: &str) -> Result<Option<Mark>, Fault> {
        Ok(self.look(name)?.map(|stat| mark(&stat)))
    }

    /// Reads a file, but no more of it than this; `None` where there is none.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Found>, Fault> {
        let Some(stat) = self.look(name)? else { return Ok(None) };
        self.expect_file(name, &stat)?;
        // Between the look and now it may have become a pipe that nobody writes to, or a link.
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
        // Somebody may be writing it in place.
        let length = if (bytes.len() as u64) < bytes_max { bytes.len() as u64 } else { length.max(bytes_max) };
        Ok(Some(Found { bytes, length, modified: modified(&stat) }))
    }

    /// Writes a file whole or not at all. `what` names it for failpoints.
    pub fn write(&self, name: &str, what: &str, bytes: &[u8]) -> Result<(), Fault> {
        let put = |temporary: &str| fs::renameat(&self.descriptor, temporary, &self.descriptor, name);
        self.write_and(name, what, bytes, put)
    }

    /// The same, but over nothing: says whether it is this one that is there now.
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
            // Where it cannot even be removed, the next sweep does.
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
        // The mask of the process may have taken the owner's own rights away.
        fs::fchmod(&file, FILE_MODE).map_err(|errno| self.fault(temporary, errno))?;
        failpoint::reached(what, "created");
        file.write_all(bytes).map_err(|source| self.other(temporary, source))?;
        failpoint::reached(what, "written");
        file.sync_all().map_err(|source| self.other(temporary, source))?;
        failpoint::reached(what, "synced");
        Ok(())
    }

    /// Leaves an empty file as a mark. It is not synced: whoever looks for it can do without.
    pub(crate) fn leave_mark(&self, name: &str) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        fs::openat(&self.descriptor, name, flags, FILE_MODE).map(drop).map_err(|errno| self.fault(name, errno))
    }

    /// Moves a file into a directory within this one, under another name. `what` names it for failpoints.
    pub(crate) fn move_into(&self, name: &str, within: &Directory, to: &str, what: &str) -> Result<(), Fault> {
        let moved = fs::renameat(&self.descriptor, name, &within.descriptor, to);
        moved.map_err(|errno| self.fault(name, errno))?;
        failpoint::reached(what, "moved");
        within.sync()?;
        self.sync()?;
        failpoint::reached(what, "kept");
        Ok(())
    }

    /// Moves it back out, over nothing.
    pub(crate) fn move_out_of(&self, within: &Directory, from: &str, name: &str) -> Result<(), Fault> {
        let moved = fs::renameat_with(&within.descriptor, from, &self.descriptor, name, RenameFlags::NOREPLACE);
        moved.map_err(|errno| self.fault(name, errno))
    }

    /// The names of files that have to do with the bridge, or seem to.
    pub fn names(&self) -> Result<Vec<String>, Fault> {
        self.names_that(|name| name.starts_with(".agent-"))
    }

    /// The names of all files whose names are text.
    pub(crate) fn all_names(&self) -> Result<Vec<String>, Fault> {
        self.names_that(|_| true)
    }

    fn names_that(&self, matter: impl Fn(&str) -> bool) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        self.each_name(|name| names.extend(matter(name).then(|| name.to_owned())))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Shows the names one by one, in no order: there may be more than anybody wants to keep.
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

    /// Renames, but over nothing.
    fn rename_anew(&self, from: &str, to: &str) -> Result<(), Errno> {
        let (directory, flags) = (&self.descriptor, RenameFlags::NOREPLACE);
        match fs::renameat_with(directory, from, directory, to, flags) {
            // Some file systems do not know how. Whoever holds the lock is alone with its own names.
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

    /// A directory that was removed has no names any more, and nothing can be put into it.
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
        // A step that finds nothing in a directory that is there found a file gone.
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
