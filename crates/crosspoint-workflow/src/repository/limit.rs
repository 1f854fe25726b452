//! Limits of one output, each with its reason.

use std::time::Duration;

use super::change::Change;
use super::fault::Fault;

/// Number of files in one output. Ten times the largest trees that agents generate in one go.
pub const CHANGES_MAX: usize = 100_000;

/// Content of all files of one output, in bytes. All of it is in memory at once.
pub const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// Length of a path, in bytes. Linux takes no longer one in a system call.
pub const PATH_BYTES_MAX: usize = 4_096;

/// Length of one part of a path, in bytes. Common file systems store no longer name.
pub const NAME_BYTES_MAX: usize = 255;

/// Number of parts of a path. No source tree is as deep, and each part costs a look.
pub const DEPTH_MAX: usize = 128;

/// Paths of all directories on the way to the files of one output, in bytes. All of them are in memory at once.
pub const DIRECTORIES_BYTES_MAX: u64 = 64 << 20;

/// Largest file of which a record keeps the content, in bytes. A longer one is not shown in a difference anyway.
pub const KEPT_FILE_BYTES_MAX: u64 = 16 << 20;

/// Length of the journal of a step, in bytes. It has room for as many files as are allowed, each with the longest path.
pub(super) const JOURNAL_BYTES_MAX: u64 = 512 << 20;

/// Number of refused paths that are listed. A person reads the first few.
pub const REFUSED_MAX: usize = 100;

/// Length of a path that is shown, in characters: one line of a terminal or a log.
pub const SHOWN_PATH_CHARACTERS_MAX: usize = 120;

/// Longest wait for another apply to the same root, or for another program that holds the root's lock. Ten thousand
/// files are applied in a few seconds. A larger output on a slow disk may take longer than this; an apply that waits
/// for it ends with a fault, has written nothing, and may be tried again.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(60);

/// Number of files or directories that are synced one by one. Beyond it one sync of the whole file system is faster.
pub(super) const SYNCED_EACH_MAX: usize = 64;

/// Number of directory handles that are held at once. A process may have a thousand open files, and a server needs most
/// of them for connections.
pub(super) const HANDLES_MAX: usize = 128;

/// Checks the limits that concern the output as a whole.
pub(super) fn check(changes: &[Change]) -> Result<(), Fault> {
    let bytes = changes.iter().map(|change| change.content.len() as u64).sum();
    at_most("files", changes.len() as u64, CHANGES_MAX as u64)?;
    at_most("bytes", bytes, CONTENT_BYTES_MAX)
}

/// Checks one number against its limit.
pub(super) fn at_most(what: &'static str, found: u64, limit: u64) -> Result<(), Fault> {
    if found > limit { Err(Fault::Limit { what, found, limit }) } else { Ok(()) }
}
