//! Writes again what is missing of a step that was interrupted.
//!
//! The staging directory is a directory of the repository that no program knows: `git clean -fd` removes it between a
//! crash and the recovery. A staged file that is missing is therefore no proof that it was put in its place. What is in
//! the place is compared with the record, and where it is anything else, the file is staged again from the contents
//! that the record keeps.
//!
//! Safe to do again after a crash at any point: a file gets the name that others look for only when it is whole and
//! synced.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::fs::{self, FileType};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::change::FileChange;
use super::failpoint::reached_for;
use super::fault::Fault;
use super::inspect::{Owner, has_content, open_file, owner};
use super::journal::{Extent, Journal};
use super::limit::SYNCED_EACH_MAX;
use super::pack;
use super::parents::Parents;
use super::record::{Record, Side, content_name};
use super::root::{Root, kind, look};
use super::spelling;
use super::staging::{Staging, new_file, old_file, unfinished_file};

/// What is in the place of a file of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum There {
    /// The file that the step writes.
    Written(Owner),
    /// Another file.
    Other(Owner),
    /// Nothing, in a directory that is there.
    Nothing,
    /// Something that is no file, or the directory is missing or is a link.
    Blocked,
}

/// A file of the staging directory that is written again.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) name: String,
    pub(super) side: Side,
    pub(super) extent: Extent,
    pub(super) owner: Option<Owner>,
}

/// Makes the staging directory of a committed step whole. Returns it with the numbers of the files that wait in it: all
/// others are in place, with the content that the record says.
pub(super) fn restage<'r>(
    root: &'r Root,
    record: &Record,
    journal: &Journal,
) -> Result<(Staging<'r>, BTreeSet<usize>), Fault> {
    let staging = match Staging::open(root, &journal.staging)? {
        Some(staging) => staging,
        None => Staging::make(root, &journal.staging)?,
    };
    let mut parents = Parents::new(root);
    let (mut waiting, mut lost) = (BTreeSet::new(), Vec::new());
    for (number, path, change) in journal.written() {
        let is_waiting = staging.file(&new_file(number)).map_err(|errno| root.fault(&path, errno))?.is_some();
        if is_waiting || lose(record, journal, &staging, &mut parents, (number, &path, change), &mut lost)? {
            waiting.insert(number);
        }
    }
    write_again(record, journal.step, &staging, &lost)?;
    Ok((staging, waiting))
}

/// Lists what has to be written again for one file that is not staged. Returns whether there is anything.
fn lose(
    record: &Record,
    journal: &Journal,
    staging: &Staging<'_>,
    parents: &mut Parents<'_>,
    (number, path, change): (usize, &str, FileChange),
    lost: &mut Vec<Lost>,
) -> Result<bool, Fault> {
    let entry = &journal.entries[number];
    let Some(extent) = entry.after else { return Ok(false) };
    let taken_over = match there(record, journal.step, parents, path, extent)? {
        There::Written(_) => return Ok(false),
        There::Other(other) => Some(other),
        There::Nothing | There::Blocked if change != FileChange::Updated => None,
        There::Blocked => None,
        There::Nothing => {
            let kept = staging.file(&old_file(number)).map_err(|errno| parents.fault(path, errno))?;
            // The original was set aside and is gone with the staging directory. It is needed to take the step back.
            if let (None, Some(extent)) = (kept, entry.before) {
                lost.push(Lost { name: old_file(number), side: Side::Before, extent, owner: None });
            }
            kept.as_ref().map(owner)
        }
    };
    lost.push(Lost { name: new_file(number), side: Side::After, extent, owner: taken_over });
    Ok(true)
}

/// Looks at the place of a file, and compares it with what the record says that the step writes.
pub(super) fn there(
    record: &Record,
    step: u32,
    parents: &mut Parents<'_>,
    path: &str,
    after: Extent,
) -> Result<There, Fault> {
    let (directory, name) = spelling::split(path);
    let parent = match parents.get(directory) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(There::Blocked),
        opened => opened.map_err(|errno| parents.fault(path, errno))?,
    };
    let Some(stat) = look(&parent, name).map_err(|errno| parents.fault(path, errno))? else {
        return Ok(There::Nothing);
    };
    if kind(&stat) != FileType::RegularFile {
        return Ok(There::Blocked);
    }
    let is_as_long = u64::try_from(stat.st_size) == Ok(after.length);
    let is_written = is_as_long && holds(record, step, &parent, (name, path), after, parents)?;
    Ok(if is_written { There::Written(owner(&stat)) } else { There::Other(owner(&stat)) })
}

/// Whether a file has the content that a step writes. Of a very long one the record has only the digest.
fn holds(
    record: &Record,
    step: u32,
    parent: impl AsFd,
    (name, path): (&str, &str),
    after: Extent,
    parents: &Parents<'_>,
) -> Result<bool, Fault> {
    let fault = |errno| parents.fault(path, errno);
    if after.kept {
        let content = content(record, step, Side::After, after)?;
        return has_content(parent, name, &content).map_err(fault);
    }
    let Some(expected) = after.digest else { return Ok(true) };
    let file = open_file(parent, name).and_then(|opened| digest(File::from(opened)));
    Ok(file.map_err(fault)? == expected)
}

fn digest(mut file: File) -> Result<[u8; 32], Errno> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer).map_err(|source| Errno::from_io_error(&source).unwrap_or(Errno::IO))? {
            0 => return Ok(hasher.finalize().into()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// Writes files of the staging directory from the record. Their names appear when all of them are synced: a name that
/// is there means a whole file.
pub(super) fn write_again(record: &Record, step: u32, staging: &Staging<'_>, lost: &[Lost]) -> Result<(), Fault> {
    if lost.is_empty() {
        return Ok(());
    }
    let is_many = lost.len() > SYNCED_EACH_MAX;
    for (number, Lost { name, side, extent, owner }) in lost.iter().enumerate() {
        let unfinished = unfinished_file(name);
        staging.unlink(&unfinished)?;
        staging.write(&unfinished, &content(record, step, *side, *extent)?, *owner, !is_many)?;
        reached_for("written_again", number).map_err(|errno| staging.fault(name, errno))?;
    }
    staging.sync(is_many)?;
    for (number, Lost { name, .. }) in lost.iter().enumerate() {
        let renamed = fs::renameat(staging, unfinished_file(name), staging, name);
        let renamed = renamed.and_then(|()| reached_for("staged_again", number));
        renamed.map_err(|errno| staging.fault(name, errno))?;
    }
    Ok(())
}

/// Reads a content of the record, which must have it.
fn content(record: &Record, step: u32, side: Side, extent: Extent) -> Result<Vec<u8>, Fault> {
    let damaged = |why: String| Fault::Record { file: content_name(step, side), why };
    if !extent.kept {
        return Err(damaged("a file that is needed was too long to be kept".to_owned()));
    }
    pack::read(record, step, side, extent).map_err(|error| damaged(error.to_string()))
}
