//! Files that a crash left half written are finished or taken back before anything else is done in their repository.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_engine::runtime::Attempt;
use crosspoint_workflow::repository::{self, Fault};
use tokio::sync::OnceCell;
use uuid::Uuid;

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
    /// What could not be settled, by the record of its run. Hardly ever is there anything.
    unsettled: Mutex<BTreeMap<PathBuf, Unsettled>>,
    /// Held while it is tried again: a thousand runs may wait for it.
    trying: tokio::sync::Mutex<()>,
}

/// Files of a run that may be half written.
#[derive(Clone)]
struct Unsettled {
    /// The run, as its record is called.
    run: String,
    /// The repository; any, if that cannot be told.
    root: Option<PathBuf>,
    /// Whether files are half written, or may be.
    are: &'static str,
    /// Why they are not settled, and what to do about it. It names paths, which an agent chose.
    why: String,
    /// The same in a few words, for callers who may not see the run.
    kind: &'static str,
}

impl Unsettled {
    /// Looks where the files of a run are, of which this fault says that they may be half written.
    fn of(record: &Path, fault: &Fault) -> Unsettled {
        // A journal that cannot be read does not say where the run works.
        let root = repository::half_written(record).or_else(|| began::root(record));
        let run = record.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let are = if matches!(fault, Fault::Unknown { .. }) { "may be" } else { "are" };
        let kind = if let Fault::Unfinished { why, .. } = fault { why.kind() } else { fault.kind() };
        Unsettled { run, root, are, why: explained(fault), kind }
    }

    /// Says why they hold a run. What a caller's agents wrote is not for other callers.
    async fn told_to(&self, attempt: &Attempt) -> String {
        let Unsettled { run, are, why, kind, .. } = self;
        let engine = attempt.engine();
        let theirs = match engine.job_id(run) {
            Some(id) => engine.job(id).await.ok().flatten(),
            None => None,
        };
        if theirs.is_some_and(|theirs| theirs.job().request.caller == attempt.job().request.caller) {
            return format!("files of the run {run} {are} half written there: {why}");
        }
        format!("files of another run {are} half written there: {kind}; the server's log names the run")
    }

    /// A root may be in another one.
    fn is_near(&self, root: &Path) -> bool {
        self.root.as_ref().is_none_or(|of| of.starts_with(root) || root.starts_with(of))
    }
}

impl Recovery {
    /// Settles everything once, before the first run does anything: runs in one repository do not know of each other.
    pub(super) async fn all(&self, attempt: &Attempt, records: &Path) -> Result<(), Parting> {
        let mut hold = Hold::default();
        loop {
            let look = async {
                let records = records.to_owned();
                let left = blocking(move || settle_all(&records)).await.map_err(Unlooked::Parting)?;
                self.unsettled().extend(left.map_err(Unlooked::Unread)?);
                Ok(())
            };
            let why = match self.looked.get_or_try_init(|| look).await {
                Ok(()) => return Ok(()),
                Err(Unlooked::Parting(parting)) => return Err(parting),
                Err(Unlooked::Unread(error)) => error,
            };
            hold.wait(attempt, &format!("the records of runs cannot be listed: {why}")).await?;
        }
    }

    /// Notes that files of a run may be half written, so that nothing else is done in their repository. Looks at the
    /// record, so it may wait for the disk.
    pub(super) fn note(&self, record: &Path, fault: &Fault) {
        self.unsettled().insert(record.to_owned(), Unsettled::of(record, fault));
    }

    /// Takes note that the files of a run are settled.
    pub(super) fn forget(&self, record: &Path) {
        self.unsettled().remove(record);
    }

    /// Whether files of other runs are half written in this repository.
    pub(super) fn is_unsettled(&self, root: &Path, own: &Path) -> bool {
        self.near(root, own).is_some()
    }

    /// Holds a run as long as files of other runs are half written in its repository: its stages would read them, and
    /// what it writes would be lost when they are taken back.
    pub(super) async fn others(&self, attempt: &Attempt, root: &Path, own: &Path) -> Result<(), Parting> {
        let mut hold = Hold::default();
        while self.is_unsettled(root, own) {
            self.again().await;
            if let Some(near) = self.near(root, own) {
                hold.wait(attempt, &near.told_to(attempt).await).await?;
            }
        }
        Ok(())
    }

    /// Tries again to settle what is half written, unless that is done already. Nobody else does that for a run that
    /// was cancelled.
    pub(super) async fn again(&self) {
        let Ok(_trying) = self.trying.try_lock() else { return };
        let records: Vec<PathBuf> = self.unsettled().keys().cloned().collect();
        for record in records {
            let settling = record.clone();
            match tokio::task::spawn_blocking(move || still_unsettled(&settling)).await {
                Ok(None) => self.forget(&record),
                Ok(Some(still)) => drop(self.unsettled().insert(record, still)),
                Err(_) => {}
            }
        }
    }

    fn near(&self, root: &Path, own: &Path) -> Option<Unsettled> {
        let unsettled = self.unsettled();
        let near = unsettled.iter().find(|(record, unsettled)| record.as_path() != own && unsettled.is_near(root));
        near.map(|(_, unsettled)| unsettled.clone())
    }

    fn unsettled(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Unsettled>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the records were not looked through.
enum Unlooked {
    Parting(Parting),
    Unread(io::Error),
}

/// Settles what a crash left of this run. Until that is possible the run is held: it is not known how much is there.
pub(super) async fn own(attempt: &Attempt, record: &Path) -> Result<(), Parting> {
    let mut hold = Hold::default();
    loop {
        let settling = record.to_owned();
        match blocking(move || settled(&settling)).await? {
            Ok(()) => return Ok(()),
            Err(fault) if fault.is_half_done() => hold.wait(attempt, &why(&fault)).await?,
            // Nothing is half written. The next output of the run is judged again, and the person who is then asked is
            // told of it.
            Err(fault) => {
                tracing::error!(job = %attempt.job().id(), fault = fault.kind(), "the record of a run cannot be used");
                return Ok(());
            }
        }
    }
}

/// Says why the files of a run are not settled, and what to do about it.
pub(super) fn why(fault: &Fault) -> String {
    let half = if matches!(fault, Fault::Unfinished { .. }) { "its files are half written: " } else { "" };
    format!("{half}{}", explained(fault))
}

/// Says what is wrong, and what to do about it.
pub(super) fn explained(fault: &Fault) -> String {
    format!("{fault}. {}", fault.hint())
}

/// Whether a fault may pass, so that what a run has done is not thrown away for it.
pub(super) fn may_pass(fault: &Fault) -> bool {
    fault.is_half_done()
        || matches!(fault, Fault::AnotherRoot { .. } | Fault::Locked { .. } | Fault::Full(_) | Fault::Gone(_))
}

fn settled(record: &Path) -> Result<(), Fault> {
    repository::recover_within(record, LOCK_WAIT_MAX).map(drop)
}

fn still_unsettled(record: &Path) -> Option<Unsettled> {
    let fault = settled(record).err().filter(Fault::is_half_done)?;
    Some(Unsettled::of(record, &fault))
}

fn settle_all(records: &Path) -> io::Result<Vec<(PathBuf, Unsettled)>> {
    let entries = match std::fs::read_dir(records) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut left = Vec::new();
    for entry in entries {
        let record = entry?.path();
        let Err(fault) = (if is_record(&record) { settled(&record) } else { Ok(()) }) else { continue };
        log_unsettled(&record.file_name().unwrap_or_default().display(), &fault);
        if fault.is_half_done() {
            let unsettled = Unsettled::of(&record, &fault);
            left.push((record, unsettled));
        }
    }
    Ok(left)
}

/// Whether this is the record of a run, by its name. What others put there says nothing about any run.
fn is_record(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<Uuid>().is_ok())
}

/// Says in the log what is left of a run.
pub(super) fn log_unsettled(run: &dyn Display, fault: &Fault) {
    if let Fault::Unfinished { why, .. } = fault {
        tracing::error!(%run, fault = why.kind(), "files of a run are half written");
    } else {
        tracing::error!(%run, fault = fault.kind(), "what a crash left of a run cannot be cleared away");
    }
}
