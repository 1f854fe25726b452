//! What is asked of a repository, and what came of it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crosspoint_contracts::clause::Clause;
use serde::{Deserialize, Serialize};

use super::fault::Fault;

/// What is to be done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Make a new file.
    Create,
    /// Replace a file that is there.
    Update,
    /// Whichever of the two is right: agents of contracts without operations do not say.
    Write,
}

/// One file to write.
#[derive(Clone)]
pub struct Change {
    /// The place of the file, from the root.
    pub path: String,
    /// What is to be done to the file.
    pub operation: Operation,
    /// The complete new content.
    pub content: Arc<str>,
}

/// Content may be secret, and a path is content that an agent chose, so only their sizes are printed.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, content) = (self.path.len(), self.content.len());
        write!(f, "Change(path of {path} bytes, {:?}, content of {content} bytes)", self.operation)
    }
}

/// What is allowed beyond the contract, and what is forbidden beyond it.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Allows paths under `.git` (WF-4.8).
    pub allow_git: bool,
    /// Absolute paths of files and directories that no artifact may touch, such as the server's data and configuration.
    pub protected: Vec<PathBuf>,
}

/// The result of applying an output. Both list files in the order of the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All files have the content that was asked for.
    Written(Vec<Written>),
    /// Some files cannot be written as asked (WF-5), so none was.
    Conflict(Vec<Clash>),
}

/// One file that has the content that was asked for. As JSON it is stored in records and in what happened in runs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The path as the change spelled it.
    pub path: String,
    /// What was done to the file.
    pub change: FileChange,
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Written(path of {} bytes, {:?})", self.path.len(), self.change)
    }
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// The file is new.
    Created,
    /// The file has new content.
    Updated,
    /// The file had that content already (WF-5.2).
    Unchanged,
}

/// One file that cannot be written as asked. As JSON it is stored in the same places.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// The path as the change spelled it.
    pub path: String,
    /// Why it cannot be written.
    pub why: ClashReason,
}

impl fmt::Debug for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clash(path of {} bytes, {:?})", self.path.len(), self.why)
    }
}

/// Why a file cannot be written as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClashReason {
    /// It is to be created and exists, with other content.
    Exists,
    /// It is to be updated and does not exist.
    Missing,
}

/// One path that may not be written.
#[derive(Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// The path, shortened and made harmless for showing.
    pub path: String,
    /// The rule that is broken.
    pub clause: &'static Clause,
    /// What is wrong, as a continuation of the path: "is absolute".
    pub complaint: &'static str,
}

impl fmt::Debug for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Misplaced(path of {} bytes, {} ({}))", self.path.len(), self.complaint, self.clause.id)
    }
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum NotApplied {
    /// Some paths may not be written (WF-4.10). There is at least one, and at most
    /// [`REFUSED_MAX`](super::REFUSED_MAX) are listed.
    #[error("{}", refusal(.0))]
    Refused(Vec<Misplaced>),
    /// The repository or the record could not be used.
    #[error(transparent)]
    Fault(#[from] Fault),
}

fn refusal(paths: &[Misplaced]) -> String {
    let Some(first) = paths.first() else { return "the paths are refused".to_owned() };
    let others = match paths.len() {
        1 => String::new(),
        more => format!(", and {} more", more - 1),
    };
    format!("{} {} ({}){others}", first.path, first.complaint, first.clause.id)
}
