//! Why a directory or a file in it cannot be used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What went wrong with a directory or with a file in it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The directory or the file does not exist, or no longer.
    #[error("{} is not there", .0.display())]
    Gone(PathBuf),
    /// The path is not a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The path may not be read, or may not be written.
    #[error("{}: {why}", path.display())]
    Denied {
        /// The path that may not be used.
        path: PathBuf,
        /// The reason that the system gives.
        why: &'static str,
    },
    /// The file system has no room for this path.
    #[error("there is no room for {}", .0.display())]
    Full(PathBuf),
    /// The name of a file is taken by an entry that is not followed or opened, such as a link or a pipe.
    #[error("{} is {what}, not a file to read", path.display())]
    NotAFile {
        /// The path of the entry.
        path: PathBuf,
        /// What the entry is instead.
        what: &'static str,
    },
    /// Another driver works in this directory.
    #[error("another driver works in {}", .0.display())]
    InUse(PathBuf),
    /// Any other error of the system.
    #[error("{}: {source}", path.display())]
    Other {
        /// The path that the error is about.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Fault {
    pub(crate) fn of(path: &Path, errno: Errno) -> Fault {
        let path = path.to_owned();
        match errno {
            Errno::NOENT => Fault::Gone(path),
            Errno::NOTDIR => Fault::NotADirectory(path),
            Errno::ACCESS | Errno::PERM => Fault::Denied { path, why: "permission denied" },
            Errno::ROFS => Fault::Denied { path, why: "the file system is read-only" },
            Errno::NOSPC | Errno::DQUOT => Fault::Full(path),
            Errno::LOOP => Fault::NotAFile { path, what: "a symbolic link" },
            Errno::NXIO => Fault::NotAFile { path, what: "a socket" },
            other => Fault::Other { path, source: other.into() },
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Fault::Gone(_) => "make the directory, or name another",
            Fault::NotADirectory(_) => "name the directory that the files are in",
            Fault::Denied { .. } => {
                "let this user read and write there; nothing is lost, and trying again goes on where it stopped"
            }
            Fault::Full(_) => "make room; nothing is lost, and trying again goes on where it stopped",
            Fault::NotAFile { .. } => "links, pipes and the like are not followed: remove it, and write a file there",
            Fault::InUse(_) => "wait for it, or end it; one driver at a time answers in a directory",
            Fault::Other { .. } => "nothing is lost, and trying again goes on where it stopped",
        }
    }
}
