//! Why a question cannot be asked, or its answer not be taken, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use crosspoint_contracts::Report;
use crosspoint_contracts::clause::Level;

use crate::fault::Fault;
use crate::request;

/// Why there is neither an answer nor a request. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The question is no request that could be acted on.
    #[error("{0}")]
    Unfit(&'static str),
    /// The request would be so long, in bytes, and drivers refuse it (BRIDGE-8).
    #[error("the request is {0} bytes long, and at most {max} are read", max = request::BYTES_MAX)]
    TooLarge(usize),
    /// A request of somebody else waits in its place.
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
        /// Whether it answers another question of this run.
        is_ours: bool,
    },
    /// The response cannot be read as one.
    #[error(transparent)]
    Malformed(Box<Malformed>),
    /// The files cannot be used.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A response that cannot be read as one. It is content, and does not print itself.
pub struct Malformed {
    /// The file, which is still there.
    pub path: PathBuf,
    /// What is wrong with it.
    pub report: Report,
    /// What it holds, for those who show where.
    pub document: Vec<u8>,
}

impl Refused {
    /// What to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Refused::Unfit(_) => "mend the question in the program",
            Refused::TooLarge(_) => "pass large content by path",
            Refused::Taken(_) => {
                "one request at a time waits in a directory: have it answered first, ask in another directory or phase, or remove it if nobody needs it"
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

/// What stands for an id in somebody else's file may be as long as the file.
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
        let first = self.report.findings.iter().find(|finding| finding.clause.level == Level::Error);
        first.map_or("mend the file", |finding| &finding.hint)
    }
}

/// With the clauses, and where they are broken.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a valid response", self.path.display())?;
        let errors = self.report.findings.iter().filter(|finding| finding.clause.level == Level::Error);
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
