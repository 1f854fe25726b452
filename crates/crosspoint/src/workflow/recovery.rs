//! Files that a crash left half written are finished or taken back before anything else is done in their repository.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crosspoint_engine::runtime::Attempt;
use crosspoint_workflow::repository::{self, Fault};
use tokio::sync::OnceCell;

use super::held::Hold;
use super::runner::Parting;

/// Longest wait for the lock of a root at a time. A run that cannot have it is held, and tries again.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);

/// What crashes left half written in all repositories.
#[derive(Default)]
pub(super) struct Recovery {
    looked: OnceCell<()>,
    /// The records of runs whose files could not be settled, with the repositories. Hardly ever are there any.
    unsettled: Mutex<Vec<(PathBuf, PathBuf)>>,
}

impl Recovery {
    /// Settles everything once, before the first run does anything: runs in one repository do not know of each other.
    pub(super) async fn all(&self, records: &Path) {
        let look = async {
            let records = records.to_owned();
            // What broke off is tried again by the run that it belongs to.
            let left = tokio::task::spawn_blocking(move || settle_all(&records)).await.unwrap_or_default();
            *self.unsettled.lock().unwrap_or_else(PoisonError::into_inner) = left;
        };
        self.looked.get_or_init(|| look).await;
    }

    /// Holds a run as long as files of other runs are half written in its repository: its stages would read them, and
    /// what it writes would be lost when they are taken back.
    pub(super) async fn others(&self, attempt: &Attempt, root: &Path, own: &Path) -> Result<(), Parting> {
        let mut hold = Hold::default();
        while let Some(record) = self.unsettled_in(root, own) {
            let settling = record.clone();
            match tokio::task::spawn_blocking(move || settled(&settling)).await {
                Ok(Err(fault @ Fault::Unfinished { .. })) => {
                    let run = record.file_name().unwrap_or_default().display().to_string();
                    let why = format!("files of the run {run} are half written there: {fault}. {}", fault.hint());
                    hold.wait(attempt, &why).await?;
                }
                Ok(_) => self.forget(&record),
                Err(_) => return Err(Parting::Leaving),
            }
        }
        Ok(())
    }

    fn unsettled_in(&self, root: &Path, own: &Path) -> Option<PathBuf> {
        let unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        let found = unsettled.iter().find(|(record, of)| of == root && record != own);
        found.map(|(record, _)| record.clone())
    }

    fn forget(&self, record: &Path) {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).retain(|(left, _)| left != record);
    }
}

/// Settles what a crash left of this run. Until that is possible the run is held: it is not known how much is there.
pub(super) async fn own(attempt: &Attempt, record: &Path) -> Result<(), Parting> {
    let mut hold = Hold::default();
    loop {
        let settling = record.to_owned();
        match tokio::task::spawn_blocking(move || settled(&settling)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(fault @ Fault::Unfinished { .. })) => {
                hold.wait(attempt, &format!("its files are half written: {fault}. {}", fault.hint())).await?;
            }
            // Nothing is half written. The next output of the run is judged again, and the person who is then asked is
            // told of it.
            Ok(Err(fault)) => {
                tracing::error!(job = %attempt.job().id(), fault = fault.kind(), "the record of a run cannot be used");
                return Ok(());
            }
            Err(_) => return Err(Parting::Leaving),
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
        let run = entry.file_name();
        tracing::error!(run = %run.display(), fault = fault.kind(), "files of a run are half written");
        left.extend(repository::half_written(&entry.path()).map(|root| (entry.path(), root)));
    }
    left
}
