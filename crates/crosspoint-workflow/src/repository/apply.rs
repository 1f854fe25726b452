//! The order of steps in which an output is applied.
//!
//! What precedes what, and why:
//!
//! 1. The contents before and after are kept in the record. Nothing in the repository depends on them.
//! 2. The plan is written and synced before the staging directory is made: after a crash it tells where that is.
//! 3. The new files, their names and the staging directory itself are synced before the commit mark: a committed output
//!    never depends on bytes that a power cut can take away.
//! 4. The commit mark is synced before the first rename: files in place without a mark would be half an output that
//!    nobody knows of.
//! 5. The directories with the new names are synced before the originals are removed: until then they are needed to
//!    take the output back.
//! 6. The staging directory is removed before the step is marked as done: after it nobody would look for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::change::{Applied, Change, Clash, ClashReason, FileChange, NotApplied, Operation, Rules};
use super::failpoint::{reached, reached_for};
use super::fault::Fault;
use super::inspect::{Found, Inspected, inspect};
use super::journal::{Entry, Journal, digest};
use super::limit::{self, SYNCED_EACH_MAX};
use super::pack::Pack;
use super::parents::Parents;
use super::place::{Carried, carry};
use super::protected::{Protected, without_links};
use super::record::{Record, Side, Stage};
use super::recover::{settle, unsettled};
use super::root::Root;
use super::staging::{self, Staging, new_file};
use super::undo;

/// What is asked of a repository.
pub(super) struct Order<'a> {
    pub(super) record: &'a Path,
    pub(super) step: u32,
    pub(super) changes: &'a [Change],
    pub(super) rules: &'a Rules,
    pub(super) is_wanted: &'a dyn Fn() -> bool,
}

impl Order<'_> {
    fn expect_wanted(&self) -> Result<(), Fault> {
        if (self.is_wanted)() { Ok(()) } else { Err(Fault::Unwanted) }
    }
}

pub(super) fn apply(root: &Root, lock_wait_max: Duration, order: &Order<'_>) -> Result<Applied, NotApplied> {
    let &Order { step, changes, rules, .. } = order;
    limit::check(changes)?;
    let record = Record::make(order.record)?;
    let before = record.steps()?;
    let lock = root.lock(lock_wait_max, order.is_wanted);
    // Another process may have worked on this run since.
    let _lock = lock.map_err(|fault| unsettled(record.steps().as_ref().unwrap_or(&before), fault))?;
    settle(root, &record, &before)?;
    expect_same_root(root, &record)?;
    let digest = digest(changes);
    if let Some(done) = done_before(root, &record, step, &digest)? {
        return Ok(done.applied());
    }
    let inspected = inspect(root, changes, rules, &protected(root, &record, rules))?;
    // Asked here too: an output without anything to write, or with a conflict, comes to no commit mark.
    order.expect_wanted()?;
    let journal = match decide(changes, &inspected) {
        Ok(decided) => {
            let journal = Journal::new(root, step, digest);
            write(&Step { root, record: &record, order, inspected: &inspected }, journal, &decided)?
        }
        Err(clashes) => {
            let journal = Journal::of_conflict(root, step, digest, clashes);
            record.write(&journal, Stage::Done)?;
            journal
        }
    };
    Ok(journal.applied())
}

/// Checks that the last step was written to this root: another directory may stand at its path by now, and a run that
/// goes on there would be split over both.
fn expect_same_root(root: &Root, record: &Record) -> Result<(), Fault> {
    let Some((step, stage)) = record.steps()?.pop() else { return Ok(()) };
    record.journal(step, stage)?.map_or(Ok(()), |journal| journal.expect_root(root))
}

/// Returns the journal of a step that was applied before.
fn done_before(root: &Root, record: &Record, step: u32, digest: &str) -> Result<Option<Journal>, Fault> {
    let Some(done) = record.journal(step, Stage::Done)? else { return Ok(None) };
    done.expect_root(root)?;
    if !done.has_digest(digest) {
        return Err(Fault::AnotherStep { step });
    }
    Ok(Some(done))
}

/// Returns the places that this run may not touch. Its record is one of them, unless the repository is a copy that is
/// kept within the record.
fn protected(root: &Root, record: &Record, rules: &Rules) -> Protected {
    let mut places: Vec<PathBuf> = rules.protected.clone();
    let record = without_links(record.path());
    if !root.path().starts_with(&record) {
        places.push(record);
    }
    Protected::new(root.path(), &places)
}

/// Decides what happens to each file, or returns all conflicts (WF-5).
fn decide(changes: &[Change], inspected: &Inspected) -> Result<Vec<FileChange>, Vec<Clash>> {
    let (mut decided, mut clashes) = (Vec::with_capacity(changes.len()), Vec::new());
    for (change, place) in changes.iter().zip(&inspected.files) {
        match decide_one(change.operation, place.found) {
            Ok(it) => decided.push(it),
            Err(why) => clashes.push(Clash { path: change.path.clone(), why }),
        }
    }
    if clashes.is_empty() { Ok(decided) } else { Err(clashes) }
}

fn decide_one(operation: Operation, found: Found) -> Result<FileChange, ClashReason> {
    match (operation, found) {
        (Operation::Create | Operation::Update | Operation::Write, Found::Same) => Ok(FileChange::Unchanged),
        (Operation::Create | Operation::Write, Found::Nothing) => Ok(FileChange::Created),
        (Operation::Update | Operation::Write, Found::Other(_)) => Ok(FileChange::Updated),
        (Operation::Create, Found::Other(_)) => Err(ClashReason::Exists),
        (Operation::Update, Found::Nothing) => Err(ClashReason::Missing),
    }
}

/// What a step works with.
struct Step<'a> {
    root: &'a Root,
    record: &'a Record,
    order: &'a Order<'a>,
    inspected: &'a Inspected,
}

/// Writes all files, or none, and returns the journal.
fn write(step: &Step<'_>, mut journal: Journal, decided: &[FileChange]) -> Result<Journal, Fault> {
    let (root, record) = (step.root, step.record);
    if decided.iter().all(|change| *change == FileChange::Unchanged) {
        journal.entries = unchanged(step.order.changes);
        record.write(&journal, Stage::Done)?;
        return Ok(journal);
    }
    journal.entries = keep_contents(step, journal.step, decided)?;
    journal.directories.clone_from(&step.inspected.missing);
    journal.staging = staging::new_name();
    record.write(&journal, Stage::Plan)?;
    if let Err(fault) = stage(step, &journal).and_then(|()| commit(step, &journal)) {
        return Err(undo::after_fault(root, record, &journal, Parents::new(root), fault)?);
    }
    match carry(root, record, &journal)? {
        Carried::Forward => Ok(journal),
        Carried::Back(fault) => Err(fault),
    }
}

fn unchanged(changes: &[Change]) -> Vec<Entry> {
    let change = FileChange::Unchanged;
    changes.iter().map(|it| Entry { path: it.path.clone(), change, before: None, after: None }).collect()
}

/// Keeps what the files were and what they become, for the difference that a person is shown.
fn keep_contents(step: &Step<'_>, number: u32, decided: &[FileChange]) -> Result<Vec<Entry>, Fault> {
    let mut parents = Parents::new(step.root);
    let mut before = Pack::create(step.record, number, Side::Before)?;
    let mut after = Pack::create(step.record, number, Side::After)?;
    let mut entries = Vec::with_capacity(decided.len());
    for ((change, place), decided) in step.order.changes.iter().zip(&step.inspected.files).zip(decided) {
        let mut entry = Entry { path: change.path.clone(), change: *decided, before: None, after: None };
        if *decided == FileChange::Updated {
            entry.before = Some(before.add_file(&mut parents, &place.path)?);
        }
        if entry.is_written() {
            entry.after = Some(after.add(change.content.as_bytes())?);
        }
        entries.push(entry);
    }
    before.finish()?;
    after.finish()?;
    reached("kept_contents").map_err(|errno| step.root.fault("", errno))?;
    Ok(entries)
}

/// Writes the new files to the staging directory, and syncs them.
fn stage(step: &Step<'_>, journal: &Journal) -> Result<(), Fault> {
    let fault = |errno| step.root.fault("", errno);
    reached("planned").map_err(fault)?;
    let staging = Staging::make(step.root, &journal.staging)?;
    reached("staging_made").map_err(fault)?;
    let is_many = journal.written().nth(SYNCED_EACH_MAX).is_some();
    for (number, _, _) in journal.written() {
        let owner = match step.inspected.files[number].found {
            Found::Other(owner) => Some(owner),
            Found::Nothing | Found::Same => None,
        };
        staging.write(&new_file(number), step.order.changes[number].content.as_bytes(), owner, !is_many)?;
        reached_for("staged", number).map_err(fault)?;
    }
    staging.sync(is_many)?;
    reached("synced").map_err(fault)
}

fn commit(step: &Step<'_>, journal: &Journal) -> Result<(), Fault> {
    step.order.expect_wanted()?;
    step.record.advance(journal.step, Stage::Plan, Stage::Commit)?;
    reached("committed").map_err(|errno| step.root.fault("", errno))
}
