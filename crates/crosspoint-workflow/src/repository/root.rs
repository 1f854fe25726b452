//! The open root directory, and the way from it to the directories inside.

use std::fs::{File, TryLockError};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::fault::Fault;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Pause between the first two tries to lock a root: an apply of a few files takes about as long.
const LOCK_PAUSE_MIN: Duration = Duration::from_millis(1);

/// Longest pause between two tries to lock a root. A person does not notice it, and it costs nothing.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(50);

/// How directories inside the root are opened.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By one call that follows no link and leaves neither the root nor its file system.
    Whole,
    /// Part by part, for systems that do not have that call.
    Parts,
}

/// An open root directory.
#[derive(Debug)]
pub(super) struct Root {
    handle: OwnedFd,
    path: PathBuf,
    device: u64,
    inode: u64,
    way: Way,
}

/// The lock of a root. It ends with its value, and with the process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Root, Fault> {
        let path = path.canonicalize().map_err(|source| Fault::from_io(path, source))?;
        if path.to_str().is_none() {
            return Err(Fault::NotUtf8(path));
        }
        let handle = fs::open(&path, DIRECTORY, Mode::empty()).map_err(|errno| Fault::of(&path, errno))?;
        let stat = fs::fstat(&handle).map_err(|errno| Fault::of(&path, errno))?;
        let way = if whole(&handle, ".").is_ok() { Way::Whole } else { Way::Parts };
        Ok(Root { handle, path, device: stat.st_dev, inode: stat.st_ino, way })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Returns the number of the directory. It tells another directory at the same path; the number of the device does
    /// not, because it may change with each start of the system.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Waits until no other apply works in this root, at most this long and as long as it is wanted. The lock has a
    /// handle of its own: threads that share a handle would share its lock.
    ///
    /// The system has no wait with an end, so the lock is tried again and again. Any program may hold it (`flock .`),
    /// and may never let it go.
    pub(super) fn lock(&self, wait_max: Duration, is_wanted: &dyn Fn() -> bool) -> Result<Lock, Fault> {
        let file = File::from(self.directory("").map_err(|errno| self.fault("", errno))?);
        let (began, mut pause) = (Instant::now(), LOCK_PAUSE_MIN);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(source)) => return Err(Fault::from_io(&self.path, source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if !is_wanted() {
                return Err(Fault::Unwanted);
            }
            let left = wait_max.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(Fault::Locked { root: self.path.clone(), seconds: wait_max.as_secs() });
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LOCK_PAUSE_MAX);
        }
    }

    /// Opens a directory inside, by its normal spelling. The empty path is the root.
    pub(super) fn directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        if path.is_empty() {
            return fs::openat(&self.handle, ".", DIRECTORY, Mode::empty());
        }
        match self.way {
            Way::Whole => match whole(&self.handle, path) {
                // The system could not be sure while other directories were renamed.
                Err(Errno::AGAIN) => self.by_parts(path),
                opened => opened,
            },
            Way::Parts => self.by_parts(path),
        }
    }

    fn by_parts(&self, path: &str) -> Result<OwnedFd, Errno> {
        let mut at = fs::openat(&self.handle, ".", DIRECTORY, Mode::empty())?;
        for part in path.split('/') {
            at = fs::openat(&at, part, DIRECTORY, Mode::empty())?;
            if fs::fstat(&at)?.st_dev != self.device {
                return Err(Errno::XDEV);
            }
        }
        Ok(at)
    }

    /// Whether a path still leads to the directory of a handle.
    pub(super) fn leads_to(&self, path: &str, handle: &OwnedFd) -> Result<bool, Errno> {
        let (now, then) = (fs::fstat(self.directory(path)?)?, fs::fstat(handle)?);
        Ok((now.st_dev, now.st_ino) == (then.st_dev, then.st_ino))
    }

    /// Says what is wrong with a path inside. Every path is looked at before it is used, so one that is missing, a link
    /// or no directory when it is used was changed in between.
    pub(super) fn fault(&self, path: &str, errno: Errno) -> Fault {
        match errno {
            _ if path.is_empty() => Fault::of(&self.path, errno),
            Errno::NOENT | Errno::NOTDIR => Fault::Changed(self.path.join(path)),
            other => Fault::of(&self.path.join(path), other),
        }
    }
}

#[cfg(target_os = "linux")]
fn whole(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let inside = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let open = |resolve| fs::openat2(root, path, DIRECTORY, Mode::empty(), resolve);
    match open(inside | ResolveFlags::BENEATH) {
        // Either a mount, or a directory that was moved out of the root at this moment. A path without links and `..`
        // needs no watching to stay inside, so without it the same error is about a mount.
        Err(Errno::XDEV) => match open(inside) {
            Err(Errno::XDEV) => Err(Errno::XDEV),
            Ok(_) | Err(_) => Err(Errno::LOOP),
        },
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn whole(_: &OwnedFd, _: &str) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Looks at an entry of a directory without following a link.
pub(super) fn look(directory: impl AsFd, name: &str) -> Result<Option<Stat>, Errno> {
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Syncs a directory. Some file systems cannot do this, and keep it in order by themselves.
pub(super) fn sync(directory: impl AsFd) -> Result<(), Errno> {
    match fs::fsync(directory) {
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        synced => synced,
    }
}

/// Syncs the file system that a handle is on.
#[cfg(target_os = "linux")]
pub(super) fn sync_all(handle: impl AsFd) -> Result<(), Errno> {
    fs::syncfs(handle)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn sync_all(_: impl AsFd) -> Result<(), Errno> {
    fs::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_follow_no_link_and_leave_no_file_system() {
        let scratch = std::env::temp_dir().join(format!("crosspoint-root-{}", std::process::id()));
        std::fs::create_dir_all(scratch.join("a/b")).expect("it can be made");
        std::os::unix::fs::symlink("a", scratch.join("link")).expect("it can be linked");
        std::fs::write(scratch.join("file"), "").expect("it can be written");
        for way in [Way::Whole, Way::Parts] {
            let root = Root { way, ..Root::open(&scratch).expect("it is there") };
            assert!(root.directory("a/b").is_ok() && root.directory("").is_ok(), "{way:?}");
            assert!(matches!(root.directory("link"), Err(Errno::LOOP | Errno::NOTDIR)), "{way:?}");
            assert!(matches!(root.directory("link/b"), Err(Errno::LOOP | Errno::NOTDIR)), "{way:?}");
            assert_eq!(root.directory("file").expect_err("it is a file"), Errno::NOTDIR, "{way:?}");
            assert_eq!(root.directory("a/c").expect_err("it is missing"), Errno::NOENT, "{way:?}");
            let root = Root { way, ..Root::open(Path::new("/")).expect("it is there") };
            assert_eq!(root.directory("proc").expect_err("it is a mount"), Errno::XDEV, "{way:?}");
        }
        std::fs::remove_dir_all(&scratch).expect("it can be removed");
    }
}
