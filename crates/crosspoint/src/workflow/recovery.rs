//! Files that a crash left half written are finished or taken back before anything else is done in their repository.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_engine::runtime::Attempt;
use crosspoint_workflow::repository::{self, Fault};
use rustix::io::Errno;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::began;
use super::blocking::blocking;
use super::held::Hold;
use super::places::COPY;
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
pub(super) struct Unsettled {
    /// The run, as its record is called.
    run: String,
    /// The repository and its number; any, if that cannot be told.
    root: Option<(PathBuf, u64)>,
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
        let half_written = repository::half_written(record).map(|half| (half.root, half.inode));
        let root = half_written.or_else(|| began::root(record));
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

    /// A root may be in another one. The copy of a dry run is no part of the root that the data directory is in.
    fn is_near(&self, root: &Path, own: &Path) -> bool {
        let Some((of, _)) = &self.root else { return true };
        if is_copy(of, Path::new(&self.run)) || is_copy(root, own) {
            return of == root;
        }
        of.starts_with(root) || root.starts_with(of)
    }

    /// Whether the directory is still where it was. One that is away is in nothing's way: its own run waits for it, and
    /// perhaps for ever. Waits for the disk.
    fn is_there(&self) -> bool {
        let Some((root, inode)) = &self.root else { return true };
        match fs::metadata(root) {
            Ok(found) => found.ino() == *inode,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
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

    /// Whether the directory is gone in which files of a run are half written. Waits for the disk.
    pub(super) fn is_away(record: &Path, fault: &Fault) -> bool {
        let unsettled = Unsettled::of(record, fault);
        fault.is_half_done() && unsettled.root.is_some() && !unsettled.is_there()
    }

    /// Takes note that nothing of a run is left in this root: it was removed.
    pub(super) fn forget_at(&self, record: &Path, root: &Path) {
        let mut unsettled = self.unsettled();
        if unsettled.get(record).and_then(|left| left.root.as_ref()).is_some_and(|(of, _)| of == root) {
            unsettled.remove(record);
        }
    }

    /// Holds a run as long as files of other runs are half written in its repository: its stages would read them, and
    /// what it writes would be lost when they are taken back.
    pub(super) async fn others(&self, attempt: &Attempt, root: &Path, own: &Path) -> Result<(), Parting> {
        let mut hold = Hold::default();
        while self.in_the_way(root, own).await?.is_some() {
            self.again().await;
            if let Some(unsettled) = self.in_the_way(root, own).await? {
                hold.wait(attempt, &unsettled.told_to(attempt).await).await?;
            }
        }
        Ok(())
    }

    /// Returns what another run has half written in this repository.
    pub(super) async fn in_the_way(&self, root: &Path, own: &Path) -> Result<Option<Unsettled>, Parting> {
        let near = self.near(root, own);
        if near.is_empty() {
            return Ok(None);
        }
        blocking(move || near.into_iter().find(Unsettled::is_there)).await
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

    /// Returns what other runs have half written at this path.
    fn near(&self, root: &Path, own: &Path) -> Vec<Unsettled> {
        let unsettled = self.unsettled();
        let others = unsettled.iter().filter(|(record, _)| record.as_path() != own);
        others.map(|(_, unsettled)| unsettled).filter(|unsettled| unsettled.is_near(root, own)).cloned().collect()
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
        || is_exhausted(fault)
        || matches!(fault, Fault::AnotherRoot { .. } | Fault::Locked { .. } | Fault::Full(_) | Fault::Gone(_))
}

/// Whether this process, or the machine, has no room for another open file just now.
fn is_exhausted(fault: &Fault) -> bool {
    let Fault::Other { source, .. } = fault else { return false };
    let errno = source.raw_os_error().map(Errno::from_raw_os_error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN].contains(&errno))
}

fn settled(record: &Path) -> Result<(), Fault> {
    repository::recover_within(record, LOCK_WAIT_MAX).map(drop)
}

fn still_unsettled(record: &Path) -> Option<Unsettled> {
    let fault = settled(record).err().filter(Fault::is_half_done)?;
    Some(Unsettled::of(record, &fault))
}

fn settle_all(records: &Path) -> io::Result<Vec<(PathBuf, Unsettled)>> {
    let entries = match fs::read_dir(records) {
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

/// Whether a root is the copy that the dry run with this record works in.
fn is_copy(root: &Path, record: &Path) -> bool {
    record.file_name().is_some_and(|run| root.ends_with(Path::new(run).join(COPY)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_in_each_other_are_near_and_copies_of_dry_runs_are_not() {
        let near = |(run, of): (&str, &str), (own, root): (&str, &str)| {
            let root_of = Some((PathBuf::from(of), 1));
            let unsettled = Unsettled { run: run.into(), root: root_of, are: "are", why: String::new(), kind: "" };
            unsettled.is_near(Path::new(root), &Path::new("/w/.crosspoint/workflows").join(own))
        };
        let (repo, within) = (("r", "/w"), ("s", "/w/sub"));
        let copies = ["r", "s"].map(|run| format!("/w/.crosspoint/workflows/{run}/copy"));
        let [copy, other] = [("r", &*copies[0]), ("s", &*copies[1])];
        assert!(near(repo, within) && near(("r", "/w/sub"), ("s", "/w")) && near(repo, ("s", "/w")));
        assert!(!near(("r", "/w/a"), ("s", "/w/b")));
        assert!(!near(copy, ("s", "/w")), "half an output in a copy");
        assert!(!near(repo, other), "a dry run that has its copy");
        assert!(near(copy, ("s", copy.1)) && !near(copy, other));
    }
}
