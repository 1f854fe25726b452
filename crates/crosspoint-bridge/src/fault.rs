//! Why a directory or a file in it cannot be used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What went wrong with the files of a directory.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is no such directory, or no longer.
    #[error("{} is not there", .0.display())]
    Gone(PathBuf),
    /// It is something else than a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// It may not be read, or not be written.
    #[error("{}: {why}", path.display())]
    Denied {
        /// What it is about.
        path: PathBuf,
        /// The system's own word.
        why: &'static str,
    },
    /// There is no room.
    #[error("there is no room for {}", .0.display())]
    Full(PathBuf),
    /// Under the name of a file there is something that is not followed or opened.
    #[error("{} is {what}, not a file to read", path.display())]
    NotAFile {
        /// What it is about.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Somebody else works in it.
    #[error("another driver works in {}", .0.display())]
    InUse(PathBuf),
    /// Anything else that the system says.
    #[error("{}: {source}", path.display())]
    Other {
        /// What it is about.
        path: PathBuf,
        /// The system's own word.
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

    /// What to do about it.
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
