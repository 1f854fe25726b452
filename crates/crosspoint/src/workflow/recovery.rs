//! Files that a crash left half written are finished or taken back before anything else is done in their repository.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_engine::runtime::Attempt;
use crosspoint_workflow::repository::{self, Fault};
use tokio::sync::OnceCell;

use super::began;
use super::blocking::blocking;
use super::held::Hold;
use super::runner::Parting;

/// Longest wait for the lock of a root at a time. A run that cannot have it is held, and tries again.
pub(super) const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);

/// What is half written in all repositories.
#[derive(Default)]
pub(super) struct Recovery {
    looked: OnceCell<()>,
    /// The records of runs whose files could not be settled, with the repositories. Hardly ever are there any.
    unsettled: Mutex<Vec<(PathBuf, PathBuf)>>,
}

impl Recovery {
    /// Settles everything once, before the first run does anything: runs in one repository do not know of each other.
    pub(super) async fn all(&self, records: &Path) -> Result<(), Parting> {
        let look = async {
            let records = records.to_owned();
            let left = blocking(move || settle_all(&records)).await?;
            self.unsettled().extend(left);
            Ok(())
        };
        self.looked.get_or_try_init(|| look).await.map(|_| ())
    }

    /// Notes that files of a run are half written in a repository, so that nothing else is done there.
    pub(super) fn note(&self, record: &Path, root: &Path) {
        self.forget(record);
        self.unsettled().push((record.to_owned(), root.to_owned()));
    }

    /// Whether files of other runs are half written in this repository.
    pub(super) fn is_unsettled(&self, root: &Path, own: &Path) -> bool {
        self.unsettled_in(root, own).is_some()
    }

    /// Holds a run as long as files of other runs are half written in its repository: its stages would read them, and
    /// what it writes would be lost when they are taken back.
    pub(super) async fn others(&self, attempt: &Attempt, root: &Path, own: &Path) -> Result<(), Parting> {
        let mut hold = Hold::default();
        while let Some(record) = self.unsettled_in(root, own) {
            let settling = record.clone();
            match blocking(move || settled(&settling)).await? {
                Err(fault @ Fault::Unfinished { .. }) => {
                    let run = record.file_name().unwrap_or_default().display().to_string();
                    let why = format!("files of the run {run} are half written there: {fault}. {}", fault.hint());
                    hold.wait(attempt, &why).await?;
                }
                Ok(()) | Err(_) => self.forget(&record),
            }
        }
        Ok(())
    }

    /// Tries again to settle what is half written. Nobody else does that for a run that was cancelled.
    pub(super) async fn again(&self) {
        let records: Vec<PathBuf> = self.unsettled().iter().map(|(record, _)| record.clone()).collect();
        for record in records {
            let settling = record.clone();
            let tried = tokio::task::spawn_blocking(move || settled(&settling)).await;
            if !matches!(tried, Ok(Err(Fault::Unfinished { .. })) | Err(_)) {
                self.forget(&record);
            }
        }
    }

    /// A root may be in another one.
    fn unsettled_in(&self, root: &Path, own: &Path) -> Option<PathBuf> {
        let is_near = |of: &Path| of.starts_with(root) || root.starts_with(of);
        let unsettled = self.unsettled();
        let found = unsettled.iter().find(|(record, of)| is_near(of) && record != own);
        found.map(|(record, _)| record.clone())
    }

    fn forget(&self, record: &Path) {
        self.unsettled().retain(|(left, _)| left != record);
    }

    fn unsettled(&self) -> MutexGuard<'_, Vec<(PathBuf, PathBuf)>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Settles what a crash left of this run. Until that is possible the run is held: it is not known how much is there.
pub(super) async fn own(attempt: &Attempt, record: &Path) -> Result<(), Parting> {
    let mut hold = Hold::default();
    loop {
        let settling = record.to_owned();
        match blocking(move || settled(&settling)).await? {
            Ok(()) => return Ok(()),
            Err(fault @ Fault::Unfinished { .. }) => {
                hold.wait(attempt, &format!("its files are half written: {fault}. {}", fault.hint())).await?;
            }
            // Nothing is half written. The next output of the run is judged again, and the person who is then asked is
            // told of it.
            Err(fault) => {
                tracing::error!(job = %attempt.job().id(), fault = fault.kind(), "the record of a run cannot be used");
                return Ok(());
            }
        }
    }
}

fn settled(record: &Path) -> Result<(), Fault> {
    repository::recover_within(record, LOCK_WAIT_MAX).map(drop)
}

fn settle_all(records: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut left = Vec::new();
    for entry in std::fs::read_dir(records).into_iter().flatten().flatten() {
        let Err(fault) = settled(&entry.path()) else { continue };
        log_unsettled(&entry.file_name().display(), &fault);
        // A journal that cannot be read does not say where the run works.
        let is_half = matches!(fault, Fault::Unfinished { .. });
        let root = repository::half_written(&entry.path()).or_else(|| began::root(&entry.path()).filter(|_| is_half));
        left.extend(root.map(|root| (entry.path(), root)));
    }
    left
}

/// Says in the log what is left of a run.
pub(super) fn log_unsettled(run: &dyn Display, fault: &Fault) {
    if let Fault::Unfinished { why, .. } = fault {
        tracing::error!(%run, fault = why.kind(), "files of a run are half written");
    } else {
        tracing::error!(%run, fault = fault.kind(), "what a crash left of a run cannot be cleared away");
    }
}
