//! Looks at the places of all changes, and judges what is there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::workflow::clause::{WF_4_6, WF_4_8, WF_4_9, WF_4_10};
use rustix::fs::{self, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::change::{Change, NotApplied, Rules};
use super::fault::Fault;
use super::limit::{self, DIRECTORIES_BYTES_MAX};
use super::parents::Parents;
use super::protected::Protected;
use super::root::{Root, kind, look};
use super::spelling::{self, Complaints};

/// What was found. The files are in the order of the changes.
#[derive(Debug)]
pub(super) struct Inspected {
    pub(super) files: Vec<Place>,
    /// Directories that do not exist, each after the one that it is in.
    pub(super) missing: Vec<String>,
}

/// The place of one change.
#[derive(Debug)]
pub(super) struct Place {
    /// The normal spelling of the path.
    pub(super) path: String,
    pub(super) found: Found,
}

/// What is at the place of a change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Nothing,
    /// A file with the content that it is to have.
    Same,
    /// A file with other content.
    Other(Owner),
}

/// What a new file takes over from the one that it replaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
}

/// What is at the path of a directory.
#[derive(Clone, Copy, Debug)]
enum Way {
    Open,
    Missing,
    Wrong(&'static Clause, &'static str),
}

/// Judges all places, and returns what is there where none is refused.
pub(super) fn inspect(
    root: &Root,
    changes: &[Change],
    rules: &Rules,
    protected: &Protected,
) -> Result<Inspected, NotApplied> {
    let normals: Vec<String> = changes.iter().map(|change| spelling::normal(&change.path)).collect();
    let mut complaints = spelling::judge(changes, &normals, rules);
    if !rules.allow_git && spelling::is_under_git(root.path()) {
        changes.iter().for_each(|change| complaints.add(&change.path, &WF_4_8, "is under .git, because the root is"));
    }
    complaints.none().map_err(NotApplied::Refused)?;
    let mut look = Look { root, protected, parents: Parents::new(root), ways: BTreeMap::new(), ways_bytes: 0 };
    let (mut files, mut complaints) = (Vec::with_capacity(changes.len()), Complaints::default());
    for (change, path) in changes.iter().zip(normals) {
        match look.at(&path, &change.content)? {
            Ok(found) => files.push(Place { path, found }),
            Err((clause, complaint)) => complaints.add(&change.path, clause, complaint),
        }
    }
    complaints.none().map_err(NotApplied::Refused)?;
    // In the order of their spelling a directory comes before what is in it.
    let missing = look.ways.into_iter().filter(|(_, way)| matches!(way, Way::Missing)).map(|(path, _)| path).collect();
    Ok(Inspected { files, missing })
}

/// A refusal: the clause and the complaint.
type Wrong = (&'static Clause, &'static str);

struct Look<'r> {
    root: &'r Root,
    protected: &'r Protected,
    parents: Parents<'r>,
    /// The directories that were looked at.
    ways: BTreeMap<String, Way>,
    /// The bytes of their paths: a path of many parts takes much more than its own length.
    ways_bytes: u64,
}

impl Look<'_> {
    fn at(&mut self, path: &str, content: &str) -> Result<Result<Found, Wrong>, Fault> {
        if self.protected.has_path(path) {
            return Ok(Err(PROTECTED));
        }
        let (directory, name) = spelling::split(path);
        match self.way(directory)? {
            Way::Open => {}
            Way::Missing => return Ok(Ok(Found::Nothing)),
            Way::Wrong(clause, complaint) => return Ok(Err((clause, complaint))),
        }
        let fault = |errno| self.root.fault(path, errno);
        let parent = self.parents.get(directory).map_err(fault)?;
        let Some(stat) = look(&parent, name).map_err(fault)? else { return Ok(Ok(Found::Nothing)) };
        if self.protected.has(&stat) {
            return Ok(Err(PROTECTED));
        }
        if let Some(wrong) = not_a_file(&stat) {
            return Ok(Err(wrong));
        }
        let same = has_content(&parent, name, content.as_bytes()).map_err(fault)?;
        Ok(Ok(if same { Found::Same } else { Found::Other(owner(&stat)) }))
    }

    /// Looks at a directory and at those on the way to it, each once.
    fn way(&mut self, path: &str) -> Result<Way, Fault> {
        if path.is_empty() {
            return Ok(Way::Open);
        }
        if let Some(known) = self.ways.get(path) {
            return Ok(*known);
        }
        let (above, name) = spelling::split(path);
        // The number of parts is limited, so this goes no deeper than the limit.
        let way = match self.way(above)? {
            Way::Open => self.directory(above, name, path)?,
            other @ (Way::Missing | Way::Wrong(..)) => other,
        };
        self.ways_bytes += path.len() as u64;
        limit::at_most("bytes of paths of directories", self.ways_bytes, DIRECTORIES_BYTES_MAX)?;
        self.ways.insert(path.to_owned(), way);
        Ok(way)
    }

    fn directory(&mut self, above: &str, name: &str, path: &str) -> Result<Way, Fault> {
        let fault = |errno| self.root.fault(path, errno);
        let parent = self.parents.get(above).map_err(fault)?;
        let Some(stat) = look(&parent, name).map_err(fault)? else { return Ok(Way::Missing) };
        if self.protected.has(&stat) {
            return Ok(Way::Wrong(PROTECTED.0, PROTECTED.1));
        }
        match kind(&stat) {
            FileType::Directory => self.parents.get(path).map(|_| Way::Open).map_err(fault),
            FileType::Symlink => Ok(Way::Wrong(&WF_4_9, "leads through a symbolic link")),
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(Way::Wrong(&WF_4_6, "leads through a file")),
        }
    }
}

const PROTECTED: Wrong = (&WF_4_10, "is a protected place");

fn not_a_file(stat: &Stat) -> Option<Wrong> {
    match kind(stat) {
        FileType::RegularFile => None,
        FileType::Symlink => Some((&WF_4_9, "is a symbolic link")),
        FileType::Directory => Some((&WF_4_6, "is the name of a directory")),
        FileType::Fifo => Some((&WF_4_6, "is a named pipe, not a file")),
        FileType::Socket => Some((&WF_4_6, "is a socket, not a file")),
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            Some((&WF_4_6, "is a device, not a file"))
        }
    }
}

pub(super) fn owner(stat: &Stat) -> Owner {
    Owner { mode: stat.st_mode & 0o7777, user: stat.st_uid, group: stat.st_gid }
}

/// Opens a regular file to read it. A file may have been replaced since it was looked at, by a link or by a pipe that
/// no program writes to.
pub(super) fn open_file(directory: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = fs::openat(directory, name, flags, Mode::empty())?;
    let is_file = kind(&fs::fstat(&opened)?) == FileType::RegularFile;
    if is_file { Ok(opened) } else { Err(Errno::LOOP) }
}

/// Whether a file has this content.
pub(super) fn has_content(directory: impl AsFd, name: &str, content: &[u8]) -> Result<bool, Errno> {
    let length = look(&directory, name)?.map_or(-1, |stat| stat.st_size);
    if u64::try_from(length) != Ok(content.len() as u64) {
        return Ok(false);
    }
    let mut file = File::from(open_file(directory, name)?);
    let (mut rest, mut buffer) = (content, vec![0; 64 << 10]);
    loop {
        let read = file.read(&mut buffer).map_err(|source| Errno::from_io_error(&source).unwrap_or(Errno::IO))?;
        match rest.strip_prefix(&buffer[..read]) {
            Some(left) if read > 0 => rest = left,
            Some(left) => return Ok(left.is_empty()),
            None => return Ok(false),
        }
    }
}
