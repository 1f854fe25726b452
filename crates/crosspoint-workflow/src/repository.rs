//! The directory that artifacts are applied to.
//!
//! An output of a stage is a list of files to write, made by a program that is not trusted to name only harmless
//! places. Two promises are kept here. Nothing outside the repository is ever written (WF-4), whatever the paths say
//! and whatever links are planted while the files are written. And the files of one output are applied all or none
//! (WF-5.3), also when the process is killed, the power fails or the disk is full.
//!
//! **Inside.** Paths are judged by their spelling first. Directories are then opened from the handle of the root,
//! without following a link, and files are written by a name within an open directory. A link that is planted between
//! the look and the write can make the write fail, but cannot lead it elsewhere.
//!
//! **All or none.** Writing in place, or renaming file by file, shows half of an output after a crash. So the new files
//! are first written to a staging directory at the root and synced. Then one rename in the *record* of the run, a
//! directory of the caller, marks the output as committed. Only then are the files renamed to their places, and the
//! files that they replace are kept in the staging directory until all is in place. What happens when it is
//! interrupted:
//!
//! | interrupted | then |
//! |---|---|
//! | before the commit mark | nothing was visible; the staging directory is removed |
//! | after it, by a crash | [`recover()`], or the next [`Repository::apply`] of this run, renames the rest |
//! | after it, by a fault | the originals are put back at once and nothing was written |
//!
//! A program that knows nothing of this may have changed a file between a crash and the recovery. The rest is still
//! renamed where the rules of `create` and `update` allow it at that moment: an `update` replaces whatever file is
//! there, as it would have done a moment later. Where they do not (a file to create has appeared, a file to update is
//! gone, a link or a directory is in the way), the whole output is taken back and the next apply judges it anew. All or
//! none comes first: taking back also replaces a file of this output that was edited since.
//!
//! Such a program may also have removed the staging directory, as `git clean -fd` does, or files that were in place. So
//! before a step is marked as done, each of its files was either renamed to its place just now, or is compared with the
//! content that the record keeps. One that differs is staged again from the record and follows the same rules. Where
//! the record does not have the content any more (a very long file, or a damaged record), there is
//! [`Fault::Unfinished`]. Steps that are done are never looked at again: files may change after them.
//!
//! Applies to the same root wait for each other, also across processes: each holds a lock on the root's handle. The
//! wait has an end, because any program can hold that lock.
//!
//! Reading order: `change` and `fault` (the vocabulary), `apply` (the order of steps), `spelling`, `protected` and
//! `inspect` (what is allowed and what is there), `root`, `parents` and `staging` (handles), `record`, `journal` and
//! `pack` (what is remembered), `place`, `restage`, `undo` and `recover`; then `diff` and `copy`, which stand by
//! themselves.

mod apply;
mod change;
mod copy;
mod diff;
pub mod failpoint;
mod fault;
mod inspect;
mod journal;
mod limit;
mod pack;
mod parents;
mod place;
mod protected;
mod record;
mod recover;
mod remove;
mod restage;
mod root;
mod spelling;
mod staging;
mod undo;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::change::{
    Applied, Change, Clash, ClashReason, FileChange, Misplaced, NotApplied, Operation, Rules, Written,
};
pub use self::copy::{Copied, CopyFault, CopyLimits};
pub use self::diff::{Summary, diff};
pub use self::fault::Fault;
pub use self::limit::{
    CHANGES_MAX, CONTENT_BYTES_MAX, DEPTH_MAX, DIRECTORIES_BYTES_MAX, KEPT_FILE_BYTES_MAX, LOCK_WAIT_MAX,
    NAME_BYTES_MAX, PATH_BYTES_MAX, REFUSED_MAX, SHOWN_PATH_CHARACTERS_MAX,
};
use self::protected::Protected;
use self::record::Record;
pub use self::recover::{HalfWritten, Recovered, abandon, half_written, recover, recover_within};
pub use self::remove::remove;
use self::root::Root;

/// Makes the directory in which a run remembers what it did, and those above it. When this returns, a power cut does
/// not take it away.
pub fn make_record(record: &Path) -> Result<(), Fault> {
    Record::make(record).map(drop)
}

/// Judges changes as far as no repository is needed for it: how many there are, and how their paths are spelled.
/// Whether a stage may write under `.git` is left to [`Repository::check`].
pub fn check_spelling(changes: &[Change]) -> Result<(), NotApplied> {
    limit::check(changes)?;
    let normals: Vec<String> = changes.iter().map(|change| spelling::normal(&change.path)).collect();
    let rules = Rules { allow_git: true, ..Rules::default() };
    spelling::judge(changes, &normals, &rules).none().map_err(NotApplied::Refused)
}

/// A root directory that files are written to. It is opened once: a directory that is put at its path later is another.
#[derive(Debug)]
pub struct Repository {
    root: Root,
    lock_wait_max: Duration,
}

impl Repository {
    /// Opens a root directory, which must exist. The path may lead through links; they are resolved once, here.
    pub fn open(root: &Path) -> Result<Repository, Fault> {
        Ok(Repository { root: Root::open(root)?, lock_wait_max: LOCK_WAIT_MAX })
    }

    /// Opens the directory that was opened before as this one, where it is still at its path. So the handle need not be
    /// kept open for as long as a person thinks.
    pub fn open_again(path: &Path, inode: u64) -> Result<Repository, Fault> {
        let repository = Repository::open(path)?;
        let is_same = repository.root.inode() == inode && repository.path() == path;
        if is_same { Ok(repository) } else { Err(Fault::AnotherRoot { root: path.to_owned() }) }
    }

    /// Returns the number of the root directory, by which it is told from another one at its path.
    pub fn inode(&self) -> u64 {
        self.root.inode()
    }

    /// Sets the longest wait for the lock of the root, instead of [`LOCK_WAIT_MAX`].
    #[must_use]
    pub fn with_lock_wait(self, lock_wait_max: Duration) -> Repository {
        Repository { lock_wait_max, ..self }
    }

    /// Returns the path of the root, absolute and without links.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Judges the places of all changes without writing anything. Conflicts are no matter of places: only
    /// [`Repository::apply`] tells them.
    pub fn check(&self, changes: &[Change], rules: &Rules) -> Result<(), NotApplied> {
        limit::check(changes)?;
        let protected = Protected::new(self.path(), &rules.protected);
        inspect::inspect(&self.root, changes, rules, &protected).map(drop)
    }

    /// Copies the root to a directory that must not exist yet. No output is half there: an apply that is under way is
    /// waited for, as [`Repository::apply`] does.
    ///
    /// Links are copied as links and hard links as files. Places in `skip`, which are absolute, are left out, and so is
    /// the copy itself where it is inside the root. When this returns, a power cut does not take the copy away.
    pub fn copy_to(&self, to: &Path, skip: &[PathBuf], limits: CopyLimits) -> Result<Copied, CopyFault> {
        self.copy_while(to, skip, limits, &|| true)
    }

    /// Copies the root as [`Repository::copy_to`] does, as long as the copy is wanted. After a "no" there is
    /// [`Fault::Unwanted`], and half a copy.
    pub fn copy_while(
        &self,
        to: &Path,
        skip: &[PathBuf],
        limits: CopyLimits,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Copied, CopyFault> {
        let _lock = self.root.lock(self.lock_wait_max, is_wanted)?;
        copy::copy(&self.root, to, skip, (limits, is_wanted))
    }

    /// Applies all changes of one output, or none.
    ///
    /// `record` is the directory in which this run remembers what it did. It is made where it does not exist, and no
    /// artifact may touch it. `step` numbers the outputs of the run. A step that was applied before, with whatever
    /// result, returns that result again and writes nothing; so the call may be repeated after a crash at any point.
    ///
    /// Waits while another apply to the same root is under way, but not for ever: see [`Fault::Locked`].
    pub fn apply(&self, record: &Path, step: u32, changes: &[Change], rules: &Rules) -> Result<Applied, NotApplied> {
        self.apply_while(record, step, changes, rules, &|| true)
    }

    /// Applies all changes of one output as [`Repository::apply`] does, as long as the output is wanted.
    ///
    /// `is_wanted` is asked while the lock is waited for and, under the lock, right before the commit mark. After a
    /// "no" there is [`Fault::Unwanted`], nothing was written and the step is not recorded. After the commit mark it is
    /// not asked any more: the output is applied. A step that was applied before returns its result without asking.
    pub fn apply_while(
        &self,
        record: &Path,
        step: u32,
        changes: &[Change],
        rules: &Rules,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Applied, NotApplied> {
        let order = apply::Order { record, step, changes, rules, is_wanted };
        apply::apply(&self.root, self.lock_wait_max, &order)
    }
}
