//! What one step does, written down before it is done.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::change::{Applied, Change, Clash, FileChange, Operation, Written};
use super::fault::Fault;
use super::record::Stage;
use super::root::Root;
use super::{spelling, staging};

/// The version of the form below. A record of another version is refused, not guessed at.
const VERSION: u32 = 1;

/// One step of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    version: u32,
    pub(super) step: u32,
    /// The root's path and number.
    pub(super) root: String,
    pub(super) inode: u64,
    /// Tells the changes from others.
    digest: String,
    /// The name of the staging directory at the root.
    pub(super) staging: String,
    /// Directories to make, each after the one that it is in.
    pub(super) directories: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// Where there are any, nothing is written.
    clashes: Vec<Clash>,
}

/// One file of a step.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The path as the change spelled it.
    pub(super) path: String,
    pub(super) change: FileChange,
    /// What was there, for an update.
    pub(super) before: Option<Extent>,
    /// What was written, unless nothing was.
    pub(super) after: Option<Extent>,
}

impl Entry {
    /// Whether the step writes this file.
    pub(super) fn is_written(&self) -> bool {
        match self.change {
            FileChange::Created | FileChange::Updated => true,
            FileChange::Unchanged => false,
        }
    }
}

/// Where the content of a file is within the contents of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Very long files are not kept.
    pub(super) kept: bool,
    /// Tells a very long file that a step wrote from others. There is none for what was there before, nor in records of
    /// the first programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<[u8; 32]>,
}

impl Journal {
    pub(super) fn new(root: &Root, step: u32, digest: String) -> Journal {
        Journal {
            version: VERSION,
            step,
            root: root.path().to_string_lossy().into_owned(),
            inode: root.inode(),
            digest,
            staging: String::new(),
            directories: Vec::new(),
            entries: Vec::new(),
            clashes: Vec::new(),
        }
    }

    pub(super) fn of_conflict(root: &Root, step: u32, digest: String, clashes: Vec<Clash>) -> Journal {
        Journal { clashes, ..Journal::new(root, step, digest) }
    }

    /// Reads the journal of a step at a stage. What it names is used without another look, so one that no program wrote
    /// is refused: it could lead out of the root, or have other files taken for staged ones.
    pub(super) fn read(bytes: &[u8], step: u32, stage: Stage) -> Result<Journal, String> {
        let journal: Journal = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if journal.version != VERSION {
            return Err(format!("it has version {}, and this program knows version {VERSION}", journal.version));
        }
        if journal.step != step {
            return Err(format!("it is about step {}", journal.step));
        }
        // A step that wrote nothing has no staging directory, and is done at once.
        let has_none = stage == Stage::Done && journal.staging.is_empty();
        if !has_none && !staging::is_name(&journal.staging) {
            return Err("it names no staging directory".to_owned());
        }
        let mut paths = journal.entries.iter().map(|entry| &entry.path).chain(&journal.directories);
        if paths.any(|path| !spelling::stays_inside(path)) {
            return Err("it names a path that no step writes".to_owned());
        }
        Ok(journal)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        // Strings and numbers can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Checks that the journal is about this root, and not about one that was at the same path before.
    pub(super) fn expect_root(&self, root: &Root) -> Result<(), Fault> {
        if self.inode == root.inode() {
            return Ok(());
        }
        Err(Fault::AnotherRoot { root: root.path().to_owned() })
    }

    /// Returns the files that the step writes, with their numbers and normal spellings.
    pub(super) fn written(&self) -> impl DoubleEndedIterator<Item = (usize, String, FileChange)> {
        let written = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_written());
        written.map(|(number, entry)| (number, spelling::normal(&entry.path), entry.change))
    }

    /// Returns the directories in which the step makes names.
    pub(super) fn touched(&self) -> BTreeSet<String> {
        let files = self.written().map(|(_, path, _)| spelling::split(&path).0.to_owned());
        let directories = self.directories.iter().map(|path| spelling::split(path).0.to_owned());
        files.chain(directories).collect()
    }

    pub(super) fn has_digest(&self, digest: &str) -> bool {
        self.digest == digest
    }

    /// Returns the result of the step, once it is done.
    pub(super) fn applied(self) -> Applied {
        if !self.clashes.is_empty() {
            return Applied::Conflict(self.clashes);
        }
        let written = |entry: Entry| Written { path: entry.path, change: entry.change };
        Applied::Written(self.entries.into_iter().map(written).collect())
    }
}

/// Returns a digest of all changes. Lengths are part of it, so that no two lists of changes read as the same bytes.
pub(super) fn digest(changes: &[Change]) -> String {
    let mut hasher = Sha256::new();
    for change in changes {
        let operation = match change.operation {
            Operation::Create => 0,
            Operation::Update => 1,
            Operation::Write => 2,
        };
        hasher.update([operation]);
        for text in [change.path.as_str(), &change.content] {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
