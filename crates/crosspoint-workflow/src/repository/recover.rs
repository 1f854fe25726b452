//! Brings to an end what a crash interrupted.

use std::path::Path;
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
        opened => opened?,
    };
    let Some((step, stage)) = record.steps()?.into_iter().find(|(_, stage)| *stage != Stage::Done) else {
        return Ok(Recovered::default());
    };
    // Another process may have finished it since it was listed.
    let Some(journal) = record.journal(step, stage)? else { return Ok(Recovered::default()) };
    let root = Root::open(Path::new(&journal.root))?;
    let _lock = root.lock(lock_wait_max, &|| true)?;
    settle(&root, &record)
}

/// Settles all steps that are not done. The caller holds the lock of the root.
pub(super) fn settle(root: &Root, record: &Record) -> Result<Recovered, Fault> {
    let mut recovered = Recovered::default();
    for (step, stage) in record.steps()? {
        if stage == Stage::Done {
            continue;
        }
        let Some(journal) = record.journal(step, stage)? else { continue };
        journal.expect_root(root)?;
        if settle_one(root, record, &journal, stage)? {
            recovered.finished.push(step);
        } else {
            recovered.undone.push(step);
        }
    }
    Ok(recovered)
}

/// Returns whether the step was finished, and not undone.
fn settle_one(root: &Root, record: &Record, journal: &Journal, stage: Stage) -> Result<bool, Fault> {
    match stage {
        Stage::Plan => undo::discard(root, record, journal).map(|()| false),
        Stage::Commit => carry(root, record, journal).map(|carried| matches!(carried, Carried::Forward)),
        Stage::Undo => undo::undo(root, record, journal, Parents::new(root)).map(|()| false),
        Stage::Done => Ok(true),
    }
}
