//! Renames staged files to their places.
//!
//! Safe to do again after a crash at any point: a file that is no longer in the staging directory is in place, or
//! [`restage`](super::restage) puts it there again.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;

use super::change::FileChange;
use super::failpoint::{reached, reached_for};
use super::fault::Fault;
use super::journal::Journal;
use super::parents::Parents;
use super::record::{Record, Stage};
use super::restage::restage;
use super::root::{Root, kind, look};
use super::spelling;
use super::staging::{Staging, new_file, old_file};
use super::undo;

/// Which way a committed step went.
#[derive(Debug)]
pub(super) enum Carried {
    /// All files are in place, and the step is done.
    Forward,
    /// There was this fault, so all files are as they were and the step is forgotten.
    Back(Fault),
}

/// Brings a committed step to its end. Fails where it could be brought neither forward nor back.
pub(super) fn carry(root: &Root, record: &Record, journal: &Journal) -> Result<Carried, Fault> {
    let unfinished = |fault: Fault| fault.unfinished(journal.step);
    // Nothing is taken back because a file cannot be staged again: what is in place may be all that is left of it.
    let (staging, waiting) = restage(root, record, journal).map_err(unfinished)?;
    let mut parents = Parents::new(root);
    if let Err(fault) = place_all(root, journal, &staging, &waiting, &mut parents) {
        return undo::after_fault(root, record, journal, parents, fault).map(Carried::Back);
    }
    staging.remove().map_err(unfinished)?;
    let finished = reached("cleaned").map_err(|errno| root.fault("", errno));
    finished.and_then(|()| record.advance(journal.step, Stage::Commit, Stage::Done)).map_err(unfinished)?;
    reached("done").map_err(|errno| unfinished(root.fault("", errno)))?;
    Ok(Carried::Forward)
}

fn place_all(
    root: &Root,
    journal: &Journal,
    staging: &Staging<'_>,
    waiting: &BTreeSet<usize>,
    parents: &mut Parents<'_>,
) -> Result<(), Fault> {
    for (number, directory) in journal.directories.iter().enumerate() {
        make_directory(parents, directory)?;
        reached_for("made", number).map_err(|errno| root.fault(directory, errno))?;
    }
    for (number, path, change) in journal.written() {
        if waiting.contains(&number) {
            place(root, staging, parents, number, &path, change)?;
        }
        reached_for("placed", number).map_err(|errno| root.fault(&path, errno))?;
    }
    parents.sync(&journal.touched())?;
    reached("settled").map_err(|errno| root.fault("", errno))
}

fn make_directory(parents: &mut Parents<'_>, path: &str) -> Result<(), Fault> {
    let (above, name) = spelling::split(path);
    let parent = parents.get_checked(above)?;
    // The umask of the process is applied by the system.
    match fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        // Made before a crash, or by another program meanwhile. Whether it is a directory shows when it is opened.
        Ok(()) | Err(Errno::EXIST) => parents.get_checked(path).map(drop),
        Err(errno) => Err(parents.fault(path, errno)),
    }
}

fn place(
    root: &Root,
    staging: &Staging<'_>,
    parents: &mut Parents<'_>,
    number: usize,
    path: &str,
    change: FileChange,
) -> Result<(), Fault> {
    let fault = |errno| root.fault(path, errno);
    let new = new_file(number);
    let (directory, name) = spelling::split(path);
    let parent = parents.get_checked(directory)?;
    let there = look(&parent, name).map_err(fault)?;
    reached_for("checked", number).map_err(fault)?;
    let placed = match (there, change) {
        (None, FileChange::Created) => rename_anew(staging, &new, &parent, name),
        // The original was set aside, and a crash came.
        (None, FileChange::Updated) if staging.file(&old_file(number)).map_err(fault)?.is_some() => {
            rename_anew(staging, &new, &parent, name)
        }
        (Some(stat), FileChange::Updated) if kind(&stat) == FileType::RegularFile => {
            replace(staging, number, &parent, name)
        }
        (None | Some(_), FileChange::Created | FileChange::Updated | FileChange::Unchanged) => Err(Errno::LOOP),
    };
    placed.map_err(fault)?;
    // Another program may have put something else under the name of the new file, up to the last moment.
    let is_file = look(&parent, name).map_err(fault)?.is_some_and(|stat| kind(&stat) == FileType::RegularFile);
    if is_file { Ok(()) } else { Err(fault(Errno::LOOP)) }
}

/// Puts a new file in the place of another, which is kept in the staging directory. A second name for the original
/// leaves its place never empty; where the file system has no second names, the original is moved.
fn replace(staging: &Staging<'_>, number: usize, parent: impl AsFd, name: &str) -> Result<(), Errno> {
    let (new, old) = (new_file(number), old_file(number));
    match fs::unlinkat(staging, &old, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    match fs::linkat(&parent, name, staging, &old, AtFlags::empty()) {
        Err(Errno::PERM | Errno::MLINK | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => {
            fs::renameat(&parent, name, staging, &old)?;
        }
        linked => linked?,
    }
    reached_for("kept", number)?;
    fs::renameat(staging, &new, parent, name)
}

/// Renames a file, but not over another one.
pub(super) fn rename_anew(from: impl AsFd, old: &str, to: impl AsFd, new: &str) -> Result<(), Errno> {
    match fs::renameat_with(&from, old, &to, new, RenameFlags::NOREPLACE) {
        // Some file systems do not support this.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match look(&to, new)? {
            None => fs::renameat(from, old, to, new),
            Some(_) => Err(Errno::LOOP),
        },
        // The name was free a moment ago.
        Err(Errno::EXIST) => Err(Errno::LOOP),
        renamed => renamed,
    }
}
