//! Takes a step back.
//!
//! Safe to do again after a crash at any point. What is left to do shows in the staging directory: a kept original that
//! is still there goes back to its place, and a file that was created goes back to the staging directory. Where another
//! program removed the staging directory, it shows in the places: whatever the step wrote is taken back, and originals
//! are written again from the record.

use rustix::fs::{self, AtFlags, FileType};
use rustix::io::Errno;

use super::change::FileChange;
use super::failpoint::{reached, reached_for};
use super::fault::Fault;
use super::journal::Journal;
use super::parents::Parents;
use super::place::rename_anew;
use super::record::{Record, Side, Stage};
use super::restage::{Lost, There, there, write_again};
use super::root::{Root, kind, look};
use super::spelling;
use super::staging::{AGAIN, Staging, new_file, old_file};

/// Takes a step back after a fault, and returns the fault. `parents` holds the directories that files were written in.
/// Fails where the step could not be taken back either.
pub(super) fn after_fault(
    root: &Root,
    record: &Record,
    journal: &Journal,
    parents: Parents<'_>,
    fault: Fault,
) -> Result<Fault, Fault> {
    let taken_back = match stage_of(record, journal.step) {
        Ok(Some(Stage::Commit)) => {
            // Marked first: after a crash from here on, a step that is half taken back must not be carried forward.
            let marked = record.advance(journal.step, Stage::Commit, Stage::Undo);
            marked.and_then(|()| undo(root, record, journal, parents))
        }
        Ok(Some(Stage::Undo)) => undo(root, record, journal, parents),
        Ok(Some(Stage::Plan)) => discard(root, record, journal),
        Ok(Some(Stage::Done) | None) => Ok(()),
        Err(fault) => Err(fault),
    };
    taken_back.map(|()| fault).map_err(|why| why.unfinished(journal.step))
}

fn stage_of(record: &Record, step: u32) -> Result<Option<Stage>, Fault> {
    Ok(record.steps()?.into_iter().find(|(number, _)| *number == step).map(|(_, stage)| stage))
}

/// Forgets a step of which nothing is in place.
pub(super) fn discard(root: &Root, record: &Record, journal: &Journal) -> Result<(), Fault> {
    if let Some(staging) = Staging::open(root, &journal.staging)? {
        staging.remove()?;
    }
    record.forget(journal.step, Stage::Plan)
}

/// Takes back a step that is marked for it, and forgets it.
pub(super) fn undo(root: &Root, record: &Record, journal: &Journal, mut parents: Parents<'_>) -> Result<(), Fault> {
    let fault = |errno| root.fault("", errno);
    reached("undo_marked").map_err(fault)?;
    let (staging, is_lost) = open_or_replace(root, &journal.staging)?;
    let originals = lost_originals(root, record, journal, &staging, &mut parents)?;
    write_again(record, journal.step, &staging, &originals)?;
    for (number, path, change) in journal.written().rev() {
        if !is_lost || change != FileChange::Created || is_written(record, journal, &mut parents, number, &path)? {
            take_back(&staging, &mut parents, number, &path, change).map_err(|errno| root.fault(&path, errno))?;
        }
        reached_for("undone", number).map_err(fault)?;
    }
    parents.sync(&journal.touched())?;
    reached("undo_synced").map_err(fault)?;
    remove_directories(journal, &mut parents);
    reached("undo_directories").map_err(fault)?;
    staging.remove()?;
    reached("undo_cleaned").map_err(fault)?;
    record.forget(journal.step, Stage::Undo)
}

/// Opens the staging directory, or one in its stead, and returns whether it is lost. The other one has another name, so
/// that after a crash it is still known that the first is lost: then a created file is taken back only where its
/// content is the step's own.
fn open_or_replace<'r>(root: &'r Root, name: &str) -> Result<(Staging<'r>, bool), Fault> {
    if let Some(staging) = Staging::open(root, name)? {
        return Ok((staging, false));
    }
    let other = format!("{name}{AGAIN}");
    // What a crash left there may be half written.
    if let Some(left) = Staging::open(root, &other)? {
        left.remove()?;
    }
    Staging::make(root, &other).map(|staging| (staging, true))
}

/// Lists the originals that are neither in their places nor in the staging directory.
fn lost_originals(
    root: &Root,
    record: &Record,
    journal: &Journal,
    staging: &Staging<'_>,
    parents: &mut Parents<'_>,
) -> Result<Vec<Lost>, Fault> {
    let mut lost = Vec::new();
    for (number, path, _) in journal.written() {
        let entry = &journal.entries[number];
        let (Some(extent), Some(after)) = (entry.before, entry.after) else { continue };
        let staged = |name: String| staging.file(&name).map_err(|errno| root.fault(&path, errno));
        if staged(new_file(number))?.is_some() || staged(old_file(number))?.is_some() {
            continue;
        }
        let owner = match there(record, journal.step, parents, &path, after)? {
            There::Written(owner) => Some(owner),
            There::Nothing => None,
            // The original is back, or another program wrote the file since.
            There::Other(_) | There::Blocked => continue,
        };
        lost.push(Lost { name: old_file(number), side: Side::Before, extent, owner });
    }
    Ok(lost)
}

/// Whether the place of a file has what the step wrote.
fn is_written(
    record: &Record,
    journal: &Journal,
    parents: &mut Parents<'_>,
    number: usize,
    path: &str,
) -> Result<bool, Fault> {
    let Some(after) = journal.entries[number].after else { return Ok(false) };
    Ok(matches!(there(record, journal.step, parents, path, after)?, There::Written(_)))
}

fn take_back(
    staging: &Staging<'_>,
    parents: &mut Parents<'_>,
    number: usize,
    path: &str,
    change: FileChange,
) -> Result<(), Errno> {
    let (new, old) = (new_file(number), old_file(number));
    let (is_waiting, is_kept) = (staging.file(&new)?.is_some(), staging.file(&old)?.is_some());
    // Not yet put in place, or taken back already.
    if !is_kept && (is_waiting || change != FileChange::Created) {
        return Ok(());
    }
    let (directory, name) = spelling::split(path);
    let parent = match parents.get(directory) {
        // The file that was created is gone with its directory.
        Err(Errno::NOENT) if !is_kept => return Ok(()),
        opened => opened?,
    };
    let there = look(&parent, name)?;
    match (is_kept, is_waiting) {
        (true, false) => fs::renameat(staging, &old, parent, name),
        // Nothing replaced the original yet. It is missing only where it could not have a second name.
        (true, true) if there.is_none() => rename_anew(staging, &old, parent, name),
        (true, true) => Ok(()),
        // Also what another program had put under the name of the new file.
        (false, _) if there.is_some_and(|stat| kind(&stat) != FileType::Directory) => {
            fs::renameat(parent, name, staging, &new)
        }
        (false, _) => Ok(()),
    }
}

/// Removes the directories that the step made, where they are empty. One that is not has got another program's files.
fn remove_directories(journal: &Journal, parents: &mut Parents<'_>) {
    for path in journal.directories.iter().rev() {
        let (above, name) = spelling::split(path);
        // One that cannot be removed is no part of an output.
        let _ = parents.get(above).and_then(|parent| fs::unlinkat(parent, name, AtFlags::REMOVEDIR));
    }
}
