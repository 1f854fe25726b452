//! A copy of a repository, for a run that must not change the original.
//!
//! Directories are opened from the handle of the root and links are copied as links, so nothing outside the root is
//! ever read. Only what a build looks at is kept: contents, modes and the times of files.
//!
//! Other programs go on while the repository is copied, and remove files: git its locks, editors their drafts. What is
//! gone before it is copied is left out, at whichever moment that shows.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::failpoint::{reached, reached_for};
use super::fault::Fault;
use super::inspect::open_file;
use super::protected::without_links;
use super::root::{Root, kind, sync_all};
use super::staging::{is_name, names};

/// How deep directories may be in each other. On the way to the deepest one two handles are open for each, and a
/// process may have a thousand open files.
const COPIED_DEPTH_MAX: usize = 128;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How much is copied at most.
#[derive(Clone, Copy, Debug)]
pub struct CopyLimits {
    /// Number of files, links and directories.
    pub files_max: u64,
    /// Bytes of all files together.
    pub bytes_max: u64,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Number of files.
    pub files: u64,
    /// Number of directories, without the root itself.
    pub directories: u64,
    /// Number of symbolic links.
    pub links: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Pipes, sockets and devices, which are not copied.
    pub special: u64,
}

/// Why there is no copy. What was copied until then is still there, for [`remove`](super::remove()) to clear away.
#[derive(Debug, thiserror::Error)]
pub enum CopyFault {
    /// The repository has more files than the limit.
    #[error("{} has more than {limit} files and directories", root.display())]
    TooManyFiles {
        /// The repository.
        root: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The repository has more bytes than the limit.
    #[error("{} has more than {limit} bytes", root.display())]
    TooManyBytes {
        /// The repository.
        root: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A directory is deeper than can be copied.
    #[error("{} is too deep to be copied", .0.display())]
    TooDeep(PathBuf),
    /// A directory or a file could not be used.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Copies a root directory: see [`super::Repository::copy_to`].
pub(super) fn copy(
    root: &Root,
    to: &Path,
    skip: &[PathBuf],
    (limits, is_wanted): (CopyLimits, &dyn Fn() -> bool),
) -> Result<Copied, CopyFault> {
    // Not by its path: a link may stand there by now.
    let (from, root) = (root.directory("").map_err(|errno| root.fault("", errno))?, root.path());
    fs::mkdir(to, Mode::RWXU).map_err(|errno| Fault::of(to, errno))?;
    let copy = fs::open(to, DIRECTORY, Mode::empty()).map_err(|errno| Fault::of(to, errno))?;
    let skipped = skip.iter().map(PathBuf::as_path).chain([to]).map(without_links).collect();
    let mut copying = Copying { skipped, copied: Copied::default(), root, limits, is_wanted };
    copying.directory(&from, &copy, root, 0)?;
    expect_still_there(&from, root)?;
    let lasting = reached("copied").and_then(|()| sync_all(&copy));
    lasting.map_err(|errno| Fault::of(to, errno))?;
    Ok(copying.copied)
}

struct Copying<'a> {
    skipped: Vec<PathBuf>,
    copied: Copied,
    root: &'a Path,
    limits: CopyLimits,
    is_wanted: &'a dyn Fn() -> bool,
}

impl Copying<'_> {
    fn directory(&mut self, from: &OwnedFd, to: &OwnedFd, path: &Path, depth: usize) -> Result<(), CopyFault> {
        let fault = |errno| Fault::of(path, errno);
        if depth > COPIED_DEPTH_MAX {
            return Err(CopyFault::TooDeep(path.to_owned()));
        }
        reached_for("copy_opened", depth).map_err(fault)?;
        // A directory that was removed since it was opened reads as an empty one.
        for name in unless_gone(names(from)).map_err(fault)?.unwrap_or_default() {
            let path = path.join(OsStr::from_bytes(name.as_bytes()));
            // What another process writes just now, or has left half written, is no part of the repository. It may be
            // deeper: a root may be in this one.
            let is_staging = name.to_str().is_ok_and(is_name);
            if !is_staging && !self.skipped.contains(&path) {
                self.entry(from, to, &name, &path, depth)?;
            }
        }
        // Set last: a directory may be one that its owner may not write to.
        let mode = fs::fstat(from).map_err(fault)?.st_mode;
        fs::fchmod(to, Mode::from_raw_mode(mode & 0o777)).map_err(fault)?;
        Ok(())
    }

    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &CStr, path: &Path, depth: usize) -> Result<(), CopyFault> {
        let fault = |errno| Fault::of(path, errno);
        let seen = unless_gone(fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)).map_err(fault)?;
        let Some(stat) = seen else { return Ok(()) };
        reached_for("copy_seen", depth).map_err(fault)?;
        match kind(&stat) {
            FileType::RegularFile => {
                let Some(source) = unless_gone(open_file(from, name)).map_err(fault)? else { return Ok(()) };
                self.file(File::from(source), to, name, path)?;
            }
            FileType::Symlink => {
                let read = unless_gone(fs::readlinkat(from, name, Vec::new())).map_err(fault)?;
                let Some(target) = read else { return Ok(()) };
                fs::symlinkat(target.as_c_str(), to, name).map_err(fault)?;
                self.copied.links += 1;
            }
            FileType::Directory => {
                let opened = unless_gone(fs::openat(from, name, DIRECTORY, Mode::empty())).map_err(fault)?;
                let Some(inner) = opened else { return Ok(()) };
                fs::mkdirat(to, name, Mode::RWXU).map_err(fault)?;
                let made = fs::openat(to, name, DIRECTORY, Mode::empty()).map_err(fault)?;
                self.copied.directories += 1;
                self.directory(&inner, &made, path, depth + 1)?;
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => self.copied.special += 1,
        }
        self.count()
    }

    fn file(&mut self, source: File, to: &OwnedFd, name: &CStr, path: &Path) -> Result<(), CopyFault> {
        let fault = |errno| Fault::of(path, errno);
        let stat = fs::fstat(&source).map_err(fault)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut target = File::from(fs::openat(to, name, flags, Mode::RUSR | Mode::WUSR).map_err(fault)?);
        // A file with holes may be much longer than the disk. Nothing of it is copied in vain.
        let room = self.limits.bytes_max.saturating_sub(self.copied.bytes);
        if u64::try_from(stat.st_size).unwrap_or_default() > room {
            return Err(CopyFault::TooManyBytes { root: self.root.to_owned(), limit: self.limits.bytes_max });
        }
        // One byte beyond the limit tells that there is more. The file may grow while it is copied.
        let room = room.saturating_add(1);
        let bytes = io::copy(&mut source.take(room), &mut target).map_err(|source| Fault::from_io(path, source))?;
        self.copied.bytes += bytes;
        self.copied.files += 1;
        fs::fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o777)).map_err(fault)?;
        fs::futimens(&target, &modified(&stat)).map_err(fault)?;
        Ok(())
    }

    fn count(&self) -> Result<(), CopyFault> {
        if !(self.is_wanted)() {
            return Err(Fault::Unwanted.into());
        }
        let (root, copied) = (self.root.to_owned(), &self.copied);
        if copied.files + copied.directories + copied.links > self.limits.files_max {
            return Err(CopyFault::TooManyFiles { root, limit: self.limits.files_max });
        }
        if copied.bytes > self.limits.bytes_max {
            return Err(CopyFault::TooManyBytes { root, limit: self.limits.bytes_max });
        }
        Ok(())
    }
}

/// Checks that the root was not removed or replaced while it was copied: only a part would be copied, or nothing.
fn expect_still_there(from: &OwnedFd, root: &Path) -> Result<(), Fault> {
    let stats = fs::stat(root).and_then(|now| Ok((now, fs::fstat(from)?)));
    let (now, then) = stats.map_err(|errno| Fault::of(root, errno))?;
    let is_same = (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino);
    if is_same { Ok(()) } else { Err(Fault::Changed(root.to_owned())) }
}

/// Returns `None` for what another program removed since its directory was listed.
fn unless_gone<T>(opened: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Tools such as make compare the times of files.
fn modified(stat: &Stat) -> Timestamps {
    let nanos = stat.st_mtime_nsec.try_into().unwrap_or_default();
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: nanos },
    }
}
