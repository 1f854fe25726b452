//! What rewriting did, and why it could not be done.

use std::fmt;

use super::Rewritten;
use crate::clause::Clause;
use crate::json::Type;
use crate::report::Report;

/// One thing that was done. Places are JSON pointers: from where in the document, to where in the envelope. As a line
/// it names them and never quotes what stood there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A value stands elsewhere, as it was spelled.
    Moved {
        /// Where it stood.
        from: String,
        /// Where it stands.
        to: String,
    },
    /// A value stands in a second place too.
    Copied {
        /// Where it stood.
        from: String,
        /// Where it stands too.
        to: String,
    },
    /// A value is said in a note.
    Summarised {
        /// Where it stood.
        from: String,
        /// The note.
        to: String,
    },
    /// State updates are the content of a file.
    Filed {
        /// Where they stood.
        from: String,
        /// The artifact.
        to: String,
    },
    /// The envelope demands a value that the document does not have.
    Added {
        /// Where it stands.
        at: String,
        /// Its JSON text, which says nothing about the document.
        value: &'static str,
    },
    /// A value was given beside the document.
    Given {
        /// Where it stands.
        at: String,
    },
    /// A value stands in the envelope already.
    Repeated {
        /// Where it stood.
        from: String,
        /// What says the same.
        at: String,
    },
    /// A value that says nothing has no place in the envelope.
    LeftOut {
        /// Where it stood.
        from: String,
        /// Why nothing is lost.
        why: &'static str,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Moved { from, to } => write!(f, "moved {from} to {to}"),
            Change::Copied { from, to } => write!(f, "copied {from} to {to}"),
            Change::Summarised { from, to } => write!(f, "summarised {from} in {to}"),
            // An artifact is a whole file, and nobody here knows what else is in it.
            Change::Filed { from, to } => {
                write!(f, "wrote {from} as the file of {to}; it holds the updates alone: add the rest of the index")
            }
            Change::Added { at, value } => write!(f, "made up {at}: {value}"),
            Change::Given { at } => write!(f, "set {at} as given"),
            Change::Repeated { from, at } => write!(f, "left out {from}: {at} says the same"),
            Change::LeftOut { from, why } => write!(f, "left out {from}: {why}"),
        }
    }
}

/// Why a document could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is no JSON object, or readers disagree on what it says.
    #[error("the document cannot be read")]
    Unreadable(Report),
    /// Nothing says whether it is an input or an output, or as much speaks for the one as for the other.
    #[error("cannot tell whether this is an input or an output: {}", undecided(input, output))]
    Undecided {
        /// Its members that inputs have.
        input: Vec<&'static str>,
        /// Its members that outputs have.
        output: Vec<&'static str>,
    },
    /// An input must name its workflow and its action, and nobody can make those up.
    #[error("the document names no {}", unnamed(*workflow, *action))]
    Unnamed {
        /// The workflow is not named.
        workflow: bool,
        /// The action is not named.
        action: bool,
    },
    /// An output lacks these, and they cannot be told from the rest.
    #[error("the document has no `{}`, which cannot be told from the rest", .0.join("` and no `"))]
    Missing(Vec<&'static str>),
    /// A member that others are added to is of another type.
    #[error("{pointer} is {}, not {wanted} ({})", found.described(), clause.id)]
    WrongType {
        /// The member.
        pointer: String,
        /// What it is.
        found: Type,
        /// What it should be.
        wanted: &'static str,
        /// The rule that says so.
        clause: &'static Clause,
    },
    /// Something else stands where a value should go.
    #[error("{from} belongs to {to}, and something else stands there")]
    Taken {
        /// Where the value stands.
        from: String,
        /// Where it should go.
        to: String,
    },
    /// State updates become a file, and nobody said which.
    #[error("/state_updates becomes the index file, and the document does not say where that is")]
    NoIndex,
    /// No artifact may be written to the path of the index file.
    #[error("the path of the index file {complaint} ({})", clause.id)]
    Misplaced {
        /// The rule that is broken.
        clause: &'static Clause,
        /// Continues the path's name.
        complaint: &'static str,
    },
    /// The document writes the index file itself.
    #[error("/state_updates becomes the index file, and {artifact} is that file already")]
    IndexWritten {
        /// The artifact.
        artifact: String,
    },
    /// The envelope would break clauses: values that were wrong are still wrong where they are now.
    #[error("the rewritten envelope is not valid")]
    Invalid {
        /// The envelope.
        document: Rewritten,
        /// What is wrong with it.
        report: Report,
    },
}

fn undecided(input: &[&str], output: &[&str]) -> String {
    if input.is_empty() && output.is_empty() {
        return "it has no member that older inputs or outputs have".to_owned();
    }
    format!("it has {} like an input and {} like an output", input.join(", "), output.join(", "))
}

fn unnamed(workflow: bool, action: bool) -> &'static str {
    match (workflow, action) {
        (true, true) => "workflow, and no action or mode",
        (true, false) => "workflow",
        (false, _) => "action or mode",
    }
}
