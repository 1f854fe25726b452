//! Where a run works: the repository that was asked for, or its copy.
//!
//! The directory is opened when something is done in it, and must still be the one that the run began in. A handle
//! that is kept would let a run write to a directory that was moved away while its agents read another one, and a
//! server with many runs that wait for people would have no handles left.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crosspoint_engine::runtime::Attempt;
use crosspoint_workflow::repository::{self, CopyLimits, Fault, Repository, Rules};
use uuid::Uuid;

use super::held::Hold;
use super::order::Settled;
use super::places::Places;
use super::runner::{Parting, invalid};

/// How much a dry run copies at most: more is no repository that is copied while a person waits.
const COPY_LIMITS: CopyLimits = CopyLimits { files_max: 500_000, bytes_max: 8 << 30 };

/// The file in a record that says that the copy is whole.
const COPIED: &str = "copied";

/// Where a run works.
pub(crate) struct Workplace {
    /// The repository, or its copy.
    pub(crate) root: PathBuf,
    /// The number of that directory.
    inode: u64,
    /// The repository of which a dry run has a copy.
    copy_of: Option<PathBuf>,
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

    /// Returns the repository that the run was asked for.
    pub(super) fn origin(&self) -> &Path {
        self.copy_of.as_ref().unwrap_or(&self.root)
    }

    /// Waits until the directory is there in which the run began. Meanwhile the run is held.
    pub(super) async fn reached(self: &std::sync::Arc<Self>, attempt: &Attempt) -> Result<(), Parting> {
        let place = self.clone();
        held(attempt, move || place.open().map(drop)).await
    }

    /// Returns the rules for the artifacts of a stage.
    pub(super) fn rules(&self, stage: &str) -> Rules {
        let allow_git = self.git_stages.iter().any(|allowed| allowed == stage);
        Rules { allow_git, protected: self.protected.clone() }
    }
}

/// Returns where the run works. A dry run works in a copy, which is made once.
pub(super) async fn of_run(places: &Places, attempt: &Attempt, settled: &Settled) -> Result<Workplace, Parting> {
    let allowed = settled.definition.stages().iter().filter(|stage| stage.allow_git);
    let git_stages = allowed.map(|stage| stage.id.clone()).collect();
    let root = settled.root.clone();
    if !settled.dry_run {
        let opened = held(attempt, move || expect_at(Repository::open(&root)?, &root)).await?;
        let (root, inode) = (settled.root.clone(), opened.inode());
        let protected = places.protected().to_vec();
        return Ok(Workplace { root, inode, copy_of: None, protected, git_stages });
    }
    let copy = copied(places, attempt, settled).await?;
    let opened = held(attempt, move || Repository::open(&copy)).await?;
    // What the run may not touch, it may not touch in the copy either: the diff would not be that of a real run.
    let settle = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let inside = places.protected().iter().filter_map(|path| Some(settle(path).strip_prefix(&root).ok()?.to_owned()));
    let protected = inside.map(|path| opened.path().join(path)).collect();
    let (inode, copy) = (opened.inode(), opened.path().to_owned());
    Ok(Workplace { root: copy, inode, copy_of: Some(root), protected, git_stages })
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
        let opening = open.clone();
        match tokio::task::spawn_blocking(opening).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(fault)) => hold.wait(attempt, &format!("{fault}. {}", fault.hint())).await?,
            Err(_) => return Err(Parting::Leaving),
        }
    }
}

/// Copies the repository for a dry run, unless that was done before a restart. Returns where the copy is.
async fn copied(places: &Places, attempt: &Attempt, settled: &Settled) -> Result<PathBuf, Parting> {
    let id = attempt.job().id().uuid();
    let (root, copy, record) = (settled.root.clone(), places.copy(id), places.record(id));
    let (skip, made) = (places.protected().to_vec(), copy.clone());
    let copying = tokio::task::spawn_blocking(move || copy_once(&root, &copy, &record, &skip)).await;
    match copying.unwrap_or_else(|_| Err("it broke off".to_owned())) {
        Ok(()) => Ok(made),
        Err(why) => {
            // Half a copy is of no use, and may be large.
            clear_copy(places, id).await;
            Err(invalid(&format!("The repository cannot be copied for a dry run: {why}.")))
        }
    }
}

fn copy_once(root: &Path, copy: &Path, record: &Path, skip: &[PathBuf]) -> Result<(), String> {
    let done = record.join(COPIED);
    if done.exists() {
        return Ok(());
    }
    repository::remove(copy).map_err(|fault| fault.to_string())?;
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(record).map_err(|error| format!("{}: {error}", record.display()))?;
    repository::copy(root, copy, skip, COPY_LIMITS).map_err(|fault| fault.to_string())?;
    std::fs::write(&done, b"").map_err(|error| format!("{}: {error}", done.display()))
}

/// Removes the copy of a dry run that is over. What the run changed is in its record.
pub(super) async fn clear_copy(places: &Places, run: Uuid) {
    let copy = places.copy(run);
    let _ = tokio::task::spawn_blocking(move || repository::remove(&copy)).await;
}
