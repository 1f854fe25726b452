//! Why a question cannot be asked or its answer cannot be taken, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use crosspoint_contracts::Report;
use crosspoint_contracts::clause::Level;

use crate::fault::Fault;
use crate::request;

/// Why there is neither an answer nor a request. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The question would make a request that no driver could act on.
    #[error("{0}")]
    Unfit(&'static str),
    /// The request would be this long, in bytes, which is more than drivers accept (BRIDGE-8).
    #[error("the request is {0} bytes long, and at most {max} are read", max = request::BYTES_MAX)]
    TooLarge(usize),
    /// Another program's request waits in its place.
    #[error("another request waits in {}", .0.display())]
    Taken(PathBuf),
    /// The response is the answer to another request (BRIDGE-4.3).
    #[error("{} answers another request (BRIDGE-4.3): expected request_id {expected}, found {found:?}", path.display(), found = beginning(found))]
    Foreign {
        /// The file, which is still there.
        path: PathBuf,
        /// The id of the question.
        expected: String,
        /// The id in the file.
        found: String,
        /// Whether the file answers another question of this run.
        is_ours: bool,
    },
    /// The file cannot be read as a response.
    #[error(transparent)]
    Malformed(Box<Malformed>),
    /// The files cannot be used.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A file that cannot be read as a response. `Debug` does not print its bytes, because they are content.
pub struct Malformed {
    /// The file, which is still there.
    pub path: PathBuf,
    /// What is wrong with the file.
    pub report: Report,
    /// The bytes of the file, for callers that show where it is wrong.
    pub document: Vec<u8>,
}

impl Refused {
    /// Returns what to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Refused::Unfit(_) => "mend the question in the program",
            Refused::TooLarge(_) => "pass large content by path",
            Refused::Taken(_) => {
                "one request at a time waits in a directory: have it answered first, ask in another directory or phase, or remove it if it is not needed any more"
            }
            Refused::Foreign { is_ours: true, .. } => {
                "it answers another question of this program: the words of a question must be the same each time the program is run, so no dates or random numbers in them"
            }
            Refused::Foreign { is_ours: false, .. } => {
                "the file is kept; remove it and run the program again to have the question answered"
            }
            Refused::Malformed(malformed) => malformed.hint(),
            Refused::Fault(fault) => fault.hint(),
        }
    }
}

/// Shortens an id for an error message. The id in a foreign file may be as long as the file.
fn beginning(id: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    let mut shown: String = id.chars().take(CHARACTERS_MAX).collect();
    if shown.len() < id.len() {
        shown.push_str("...");
    }
    shown
}

impl Malformed {
    fn hint(&self) -> &str {
        let first = self.report.findings.iter().find(|finding| finding.level == Level::Error);
        first.map_or("mend the file", |finding| &finding.hint)
    }
}

/// Names the broken clauses and their places.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a valid response", self.path.display())?;
        let errors = self.report.findings.iter().filter(|finding| finding.level == Level::Error);
        for finding in errors.take(10) {
            write!(f, "\n  {}:{}: {}: {}", finding.line, finding.column, finding.clause.id, finding.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Malformed {}

impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Malformed({:?}, {:?}, [{} bytes])", self.path, self.report, self.document.len())
    }
}
