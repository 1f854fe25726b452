//! Brings to an end what a crash interrupted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fault::Fault;
use super::journal::Journal;
use super::limit::LOCK_WAIT_MAX;
use super::parents::Parents;
use super::place::{Carried, carry};
use super::record::{Record, Stage};
use super::root::Root;
use super::undo;

/// The steps that a crash had interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Steps whose files are all in place now.
    pub finished: Vec<u32>,
    /// Steps of which nothing is in place now. Applying them again starts from the beginning.
    pub undone: Vec<u32>,
}

/// Finishes or undoes what a crash left of a run in its repository. Does nothing where the run has no record.
///
/// A program that starts again calls this for every run that was under way, before it applies anything: another run
/// does not know of a half-applied output of this one.
///
/// Waits while an apply to the same root is under way, at most [`LOCK_WAIT_MAX`].
pub fn recover(record: &Path) -> Result<Recovered, Fault> {
    recover_within(record, LOCK_WAIT_MAX)
}

/// Does the same as [`recover`], with another longest wait for the lock of the root.
pub fn recover_within(record: &Path, lock_wait_max: Duration) -> Result<Recovered, Fault> {
    let record = match Record::open(record) {
        Err(Fault::Gone(_)) => return Ok(Recovered::default()),
        opened => opened.map_err(Fault::unknown)?,
    };
    let steps = record.steps().map_err(Fault::unknown)?;
    let Some(&(step, stage)) = steps.iter().find(|(_, stage)| *stage != Stage::Done) else {
        return Ok(Recovered::default());
    };
    let unsettled = |fault| unsettled(&steps, fault);
    // Another process may have finished it since it was listed.
    let Some(journal) = record.journal(step, stage).map_err(unsettled)? else { return Ok(Recovered::default()) };
    let root = Root::open(Path::new(&journal.root)).map_err(unsettled)?;
    let _lock = root.lock(lock_wait_max, &|| true).map_err(unsettled)?;
    settle(&root, &record, &steps)
}

/// A root in which a step may be half in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfWritten {
    /// Its path.
    pub root: PathBuf,
    /// Its number, which tells it from another directory at the same path.
    pub inode: u64,
}

/// Returns where a step of this record may be half in place.
pub fn half_written(record: &Path) -> Option<HalfWritten> {
    let record = Record::open(record).ok()?;
    let steps = record.steps().ok()?;
    let (step, stage) = steps.into_iter().find(|(_, stage)| is_half_done(*stage))?;
    let journal = record.journal(step, stage).ok()??;
    Some(HalfWritten { inode: journal.inode, root: PathBuf::from(journal.root) })
}

/// Forgets the steps of a record that are not done, where they were written to this root. For a root that was removed
/// on purpose, as the copy of a dry run is: nothing is left that could be finished or taken back.
pub fn abandon(record: &Path, root: &Path) -> Result<(), Fault> {
    let record = match Record::open(record) {
        Err(Fault::Gone(_)) => return Ok(()),
        opened => opened?,
    };
    for (step, stage) in record.steps()?.into_iter().filter(|(_, stage)| *stage != Stage::Done) {
        let journal = record.journal(step, stage)?;
        if journal.is_some_and(|journal| Path::new(&journal.root) == root) {
            record.forget(step, stage)?;
        }
    }
    Ok(())
}

fn is_half_done(stage: Stage) -> bool {
    match stage {
        Stage::Commit | Stage::Undo => true,
        Stage::Plan | Stage::Done => false,
    }
}

/// Returns what a fault means while these steps are as they are: if one of them may be half in place, it is not
/// finished.
pub(super) fn unsettled(steps: &[(u32, Stage)], fault: Fault) -> Fault {
    match steps.iter().find(|(_, stage)| is_half_done(*stage)) {
        Some((step, _)) => fault.unfinished(*step),
        None => fault,
    }
}

/// Settles all steps that are not done. The caller holds the lock of the root. `before` are the steps as they were when
/// the lock was waited for: they say what may be half in place if the steps cannot be listed again.
pub(super) fn settle(root: &Root, record: &Record, before: &[(u32, Stage)]) -> Result<Recovered, Fault> {
    let mut recovered = Recovered::default();
    let steps = record.steps().map_err(|fault| unsettled(before, fault))?;
    for (at, &(step, stage)) in steps.iter().enumerate() {
        if stage == Stage::Done {
            continue;
        }
        // A fault also keeps the steps after this one as they are.
        match settle_one(root, record, step, stage).map_err(|fault| unsettled(&steps[at..], fault))? {
            Some(true) => recovered.finished.push(step),
            Some(false) => recovered.undone.push(step),
            None => {}
        }
    }
    Ok(recovered)
}

/// Returns whether the step was finished, and not undone. Returns `None` if there is no such step any more.
fn settle_one(root: &Root, record: &Record, step: u32, stage: Stage) -> Result<Option<bool>, Fault> {
    let Some(journal) = record.journal(step, stage)? else { return Ok(None) };
    journal.expect_root(root)?;
    bring_to_end(root, record, &journal, stage).map(Some)
}

fn bring_to_end(root: &Root, record: &Record, journal: &Journal, stage: Stage) -> Result<bool, Fault> {
    match stage {
        Stage::Plan => undo::discard(root, record, journal).map(|()| false),
        Stage::Commit => carry(root, record, journal).map(|carried| matches!(carried, Carried::Forward)),
        Stage::Undo => undo::undo(root, record, journal, Parents::new(root)).map(|()| false),
        Stage::Done => Ok(true),
    }
}
