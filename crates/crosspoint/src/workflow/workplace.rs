//! Where a run works: the repository that was asked for, or its copy.
//!
//! The directory is opened when something is done in it, and must still be the one that the run began in. A handle
//! that is kept would let a run write to a directory that was moved away while its agents read another one, and a
//! server with many runs that wait for people would have no handles left.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crosspoint_engine::runtime::Attempt;
use crosspoint_workflow::repository::{self, CopyFault, CopyLimits, Fault, Repository, Rules};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::began;
use super::blocking::{blocking, blocking_while};
use super::held::Hold;
use super::order::Checked;
use super::places::{COPY, Places};
use super::recovery::{LOCK_WAIT_MAX, explained, may_pass};
use super::runner::{Parting, invalid};

/// How much a dry run copies at most: more is no repository that is copied while a person waits. It takes no more than
/// half of what the disk has left either.
const COPY_LIMITS: CopyLimits = CopyLimits { files_max: 500_000, bytes_max: 8 << 30 };

/// The file in a record that says that the copy is whole.
const COPIED: &str = "copied";

/// Where a run works.
pub(crate) struct Workplace {
    /// The repository, or its copy.
    pub(crate) root: PathBuf,
    /// The number of that directory.
    inode: u64,
    /// What the run remembers.
    record: PathBuf,
    /// What no artifact may touch.
    protected: Vec<PathBuf>,
    /// The stages whose artifacts may be written under `.git`.
    git_stages: Vec<String>,
}

impl Workplace {
    /// Returns the repository, if it is still the directory that the run began in.
    pub(super) fn open(&self) -> Result<Repository, Fault> {
        Repository::open_again(&self.root, self.inode)
    }

    /// Waits until the directory is there in which the run began, and its record. Meanwhile the run is held.
    pub(super) async fn reached(self: &std::sync::Arc<Self>, attempt: &Attempt) -> Result<(), Parting> {
        expect_record(attempt, &self.record).await?;
        let place = self.clone();
        held(attempt, move || place.open().map(drop)).await
    }

    /// Returns the rules for the artifacts of a stage.
    pub(super) fn rules(&self, stage: &str) -> Rules {
        let allow_git = self.git_stages.iter().any(|allowed| allowed == stage);
        Rules { allow_git, protected: self.protected.clone() }
    }
}

/// Checks that the record of a run that is taken up is there. Without it the run would begin anew in another copy, or
/// its diff would show half of what it did. Meanwhile the run is held.
pub(super) async fn expect_record(attempt: &Attempt, record: &Path) -> Result<(), Parting> {
    let mut hold = Hold::default();
    loop {
        let kept = record.to_owned();
        if blocking(move || began::is_noted(&kept) || kept.join(COPIED).exists()).await? {
            return Ok(());
        }
        hold.wait(attempt, NO_RECORD).await?;
    }
}

const NO_RECORD: &str = "its record is gone from the data directory (workflows/ID); put it back, or cancel the run and \
                         begin another";

/// Returns where the run works. A dry run works in a copy, which is made once.
pub(super) async fn of_run(places: &Places, attempt: &Attempt, order: &Checked) -> Result<Workplace, Parting> {
    let allowed = order.definition.stages().iter().filter(|stage| stage.allow_git);
    let git_stages = allowed.map(|stage| stage.id.clone()).collect();
    let (root, record) = (order.root.clone(), places.record(attempt.job().id().uuid()));
    if !order.dry_run {
        let began = record.clone();
        let open = move || {
            let opened = expect_at(Repository::open(&root)?, &root)?;
            began::expect(&began, &opened).map(|()| opened)
        };
        let opened = held(attempt, open).await?;
        let (root, inode) = (order.root.clone(), opened.inode());
        let protected = places.protected().chain(&order.file).cloned().collect();
        return Ok(Workplace { root, inode, record, protected, git_stages });
    }
    let copy = copied(places, attempt, order).await?;
    let opened = held(attempt, move || Repository::open(&copy)).await?;
    // What the run may not touch, it may not touch in the copy either: the diff would not be that of a real run.
    let settle = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let inside = places
        .protected()
        .chain(&order.file)
        .filter_map(|path| Some(settle(path).strip_prefix(&root).ok()?.to_owned()));
    let protected = inside.map(|path| opened.path().join(path)).collect();
    let (inode, copy) = (opened.inode(), opened.path().to_owned());
    Ok(Workplace { root: copy, inode, record, protected, git_stages })
}

/// Checks that no link was put at the path of the root after it was looked at: it might lead out of the allowed roots.
fn expect_at(opened: Repository, root: &Path) -> Result<Repository, Fault> {
    if opened.path() == root { Ok(opened) } else { Err(Fault::AnotherRoot { root: root.to_owned() }) }
}

/// Does something in a repository as soon as that is possible. Meanwhile the run is held, and shows why.
async fn held<T: Send + 'static>(
    attempt: &Attempt,
    open: impl Fn() -> Result<T, Fault> + Clone + Send + 'static,
) -> Result<T, Parting> {
    let mut hold = Hold::default();
    loop {
        match blocking(open.clone()).await? {
            Ok(opened) => return Ok(opened),
            Err(fault) => hold.wait(attempt, &explained(&fault)).await?,
        }
    }
}

/// Copies the repository for a dry run, unless that was done before a restart. Returns where the copy is.
async fn copied(places: &Places, attempt: &Attempt, order: &Checked) -> Result<PathBuf, Parting> {
    let id = attempt.job().id().uuid();
    let (copy, record) = (places.copy(id), places.record(id));
    let mut hold = Hold::default();
    loop {
        let turns = places.neighbours().turn_to_copy(attempt, &order.root, (places.records(), &record)).await?;
        let (root, copy, record) = (order.root.clone(), copy.clone(), record.clone());
        let skip = places.kept_out_of_copies().to_vec();
        let made = blocking_while(attempt, move |is_wanted| {
            let made = copy_once(&root, &copy, (&record, &skip), is_wanted);
            drop(turns);
            made
        });
        let made = hold.beside(attempt, "the repository is copied for the dry run", made).await?;
        match made {
            Ok(()) => break,
            Err(CopyFault::Fault(Fault::Unwanted)) => return Err(Parting::Over),
            Err(CopyFault::Fault(fault)) if may_pass(&fault) || matches!(fault, Fault::Changed(_)) => {
                clear_copy(places, id).await;
                hold.wait(attempt, &explained(&fault)).await?;
            }
            Err(why) => {
                // Half a copy is of no use, and may be large.
                clear_copy(places, id).await;
                return Err(invalid(&format!("The repository cannot be copied for a dry run: {why}.")));
            }
        }
    }
    Ok(copy)
}

fn copy_once(
    root: &Path,
    copy: &Path,
    (record, skip): (&Path, &[PathBuf]),
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), CopyFault> {
    let done = record.join(COPIED);
    if done.exists() {
        return Ok(());
    }
    repository::remove(copy)?;
    let fault = |source| Fault::Other { path: record.to_owned(), source };
    repository::make_record(record)?;
    let bytes_max = COPY_LIMITS.bytes_max.min(free_bytes(record).map_err(fault)? / 2);
    let repository = expect_at(Repository::open(root)?, root)?.with_lock_wait(LOCK_WAIT_MAX);
    repository.copy_while(copy, skip, CopyLimits { bytes_max, ..COPY_LIMITS }, is_wanted)?;
    let mark = || File::create(&done)?.sync_all().and_then(|()| File::open(record)?.sync_all());
    Ok(mark().map_err(fault)?)
}

/// Returns how much may be written to the disk of this directory. The store is there too.
fn free_bytes(directory: &Path) -> io::Result<u64> {
    let room = rustix::fs::statvfs(directory)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Removes the copy of a dry run that is over, once nothing writes there. What the run changed is in its record.
pub(super) async fn clear_copy(places: &Places, run: Uuid) {
    let turn = places.neighbours().in_copy(&places.copy(run)).await;
    clear(places, run, turn).await;
}

/// Does the same, unless something writes there: then the run is driven, and sees to its copy itself when it notices
/// that it is over.
pub(super) async fn clear_idle_copy(places: &Places, run: Uuid) {
    if let Some(turn) = places.neighbours().in_idle_copy(&places.copy(run)) {
        clear(places, run, turn).await;
    }
}

async fn clear(places: &Places, run: Uuid, turn: OwnedMutexGuard<()>) {
    let (copy, record, places) = (places.copy(run), places.record(run), places.clone());
    let clear = move || {
        let _turn = turn;
        let _ = repository::recover_within(&record, LOCK_WAIT_MAX);
        // Half a copy must not be taken for a whole one.
        match std::fs::remove_file(record.join(COPIED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return,
            Ok(()) | Err(_) => {}
        }
        // What could not be settled went with the copy.
        let root = record.canonicalize().map_or_else(|_| copy.clone(), |record| record.join(COPY));
        if repository::remove(&copy).and_then(|()| repository::abandon(&record, &root)).is_ok() {
            places.neighbours().recovery.forget_at(&record, &root);
        }
    };
    let _ = tokio::task::spawn_blocking(clear).await;
}
