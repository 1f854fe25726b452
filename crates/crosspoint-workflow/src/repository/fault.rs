//! Why a repository or a record cannot be used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What went wrong. The call wrote nothing of its output, and no output is half in place, except where
/// [`Fault::is_half_done`] says so. [`Fault::Unwanted`] may come while an interrupted step still waits to be settled.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A directory or a file does not exist, or no longer.
    #[error("{} is not there", .0.display())]
    Gone(PathBuf),
    /// A path is not a directory.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// A path may not be read, or may not be written.
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
    /// Another file system is mounted there, and a rename cannot cross into it.
    #[error("{} is on another file system than the repository", .0.display())]
    Mount(PathBuf),
    /// Another program changed the file or a directory on the way while the output was applied.
    #[error("{} was changed by another program meanwhile", .0.display())]
    Changed(PathBuf),
    /// The output is larger than what is applied at once.
    #[error("the output has {found} {what}, and at most {limit} are applied at once")]
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The run has applied a different output under this number.
    #[error("step {step} of the run was another output")]
    AnotherStep {
        /// The number of the output.
        step: u32,
    },
    /// The directory is not the one that the last step of the run was written to. Another one may stand at its path.
    #[error("{} is another directory than the one that the run began in", root.display())]
    AnotherRoot {
        /// The root that was found.
        root: PathBuf,
    },
    /// A file of the record cannot be understood. Where the record is says nothing to those who read of the fault.
    #[error("the file {file} in the record of the run is damaged: {why}")]
    Record {
        /// The name of the file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The path of a root is not UTF-8.
    #[error("{} is not a UTF-8 path", .0.display())]
    NotUtf8(PathBuf),
    /// Another program holds the lock of the root.
    #[error("another program has held the lock of {} for {seconds} s", root.display())]
    Locked {
        /// The root that is locked.
        root: PathBuf,
        /// How long the lock was waited for, in seconds.
        seconds: u64,
    },
    /// The output was no longer wanted when it was about to be committed.
    #[error("the output is no longer wanted")]
    Unwanted,
    /// Files of a step may be half in place or half staged, and a fault is in the way of settling it.
    #[error("step {step} is not finished: {why}")]
    Unfinished {
        /// The number of the output.
        step: u32,
        /// What was in the way.
        why: Box<Fault>,
    },
    /// The record of a run cannot be looked through, so files of one of its steps may be half in place.
    #[error("it cannot be told whether files are half written: {why}")]
    Unknown {
        /// What was in the way.
        why: Box<Fault>,
    },
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
    pub(super) fn of(path: &Path, errno: Errno) -> Fault {
        let path = path.to_owned();
        match errno {
            Errno::NOENT => Fault::Gone(path),
            Errno::NOTDIR => Fault::NotADirectory(path),
            Errno::ACCESS | Errno::PERM => Fault::Denied { path, why: "permission denied" },
            Errno::ROFS => Fault::Denied { path, why: "the file system is read-only" },
            Errno::NOSPC | Errno::DQUOT => Fault::Full(path),
            Errno::XDEV => Fault::Mount(path),
            // A place was looked at before it was used, so a link there is a new one.
            Errno::LOOP => Fault::Changed(path),
            other => Fault::Other { path, source: other.into() },
        }
    }

    pub(super) fn from_io(path: &Path, source: io::Error) -> Fault {
        match source.raw_os_error() {
            Some(code) => Fault::of(path, Errno::from_raw_os_error(code)),
            None => Fault::Other { path: path.to_owned(), source },
        }
    }

    /// Returns the fault of a step that may be half in place. A fault that says so already stays, and so does
    /// [`Fault::Unwanted`]: it is what the caller said, and nothing is in the way.
    pub(super) fn unfinished(self, step: u32) -> Fault {
        if matches!(self, Fault::Unfinished { .. } | Fault::Unwanted) {
            return self;
        }
        Fault::Unfinished { step, why: Box::new(self) }
    }

    /// Whether files may be half in place. Then nothing else may be done in the repository before it is settled.
    pub fn is_half_done(&self) -> bool {
        matches!(self, Fault::Unfinished { .. } | Fault::Unknown { .. })
    }

    /// Returns the fault of a record that cannot be looked through.
    pub(super) fn unknown(self) -> Fault {
        Fault::Unknown { why: Box::new(self) }
    }

    /// Returns the kind of the fault in a few words, without a path: paths are content that an agent chose, and a log
    /// is read by people who may not see it.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Gone(_) => "a path is not there",
            Fault::NotADirectory(_) => "a path is not a directory",
            Fault::Denied { why, .. } => why,
            Fault::Full(_) => "there is no room",
            Fault::Mount(_) => "a path is on another file system",
            Fault::Changed(_) => "another program changed a path meanwhile",
            Fault::Limit { .. } => "the output is too large",
            Fault::AnotherStep { .. } => "the step was another output",
            Fault::AnotherRoot { .. } => "the run began in another directory",
            Fault::Record { .. } => "the record is damaged",
            Fault::NotUtf8(_) => "a path is not UTF-8",
            Fault::Locked { .. } => "another program holds the lock of the repository",
            Fault::Unwanted => "the output is no longer wanted",
            Fault::Unfinished { .. } => "the step is not finished",
            Fault::Unknown { .. } => "the record cannot be read",
            Fault::Other { .. } => "the system reports an error",
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Fault::Gone(_) => "make the directory, or name another",
            Fault::NotADirectory(_) => "name a directory, or remove the file that is in the way",
            Fault::Denied { .. } => "let this user read and write there, then try again; nothing was written",
            Fault::Full(_) => "make room, then try again; nothing was written",
            Fault::Mount(_) => "unmount it, or make the mounted directory the root of a repository of its own",
            Fault::Changed(_) => "try again; nothing was written",
            Fault::Limit { .. } => "have the agent write less in one output; nothing was written",
            Fault::AnotherStep { .. } => "give each output of a run a number of its own",
            Fault::AnotherRoot { .. } => {
                "put the directory back that the run began in, or cancel the run and begin it again in the new one"
            }
            Fault::Record { .. } => "restore the file from a copy",
            Fault::NotUtf8(_) => "rename the directory",
            Fault::Locked { .. } => {
                "let that program end (`fuser -v` with the path, or `lslocks`, names it), then try again; \
                 nothing was written"
            }
            Fault::Unwanted => "nothing was written; apply it again if it is wanted after all",
            Fault::Unfinished { why, .. } if matches!(**why, Fault::Locked { .. }) => {
                "let that program end (`fuser -v` with the path, or `lslocks`, names it), then try again: \
                 the step goes on where it stopped"
            }
            Fault::Unfinished { why, .. } if matches!(**why, Fault::Record { .. }) => {
                "restore the file from a copy; without it files stay half written, and removing the record gives up on them"
            }
            Fault::Unfinished { why, .. } if matches!(**why, Fault::AnotherRoot { .. } | Fault::Gone(_)) => {
                "put the directory back that the run began in, and the step goes on where it stopped; \
                 if it is gone for good, cancel the run"
            }
            Fault::Unfinished { .. } => {
                "mend what was in the way, then try again: it goes on where it stopped, and originals are kept until then"
            }
            Fault::Unknown { .. } => "let this user read the record of the run; then it is settled",
            Fault::Other { .. } => "mend what the system says, then try again; nothing was written",
        }
    }
}
