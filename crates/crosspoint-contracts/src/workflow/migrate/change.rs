//! What a rewriting did, and why it could not be done.

use std::fmt;

use super::Rewritten;
use crate::clause::Clause;
use crate::json::Type;
use crate::report::Report;

/// One step of a rewriting. Places are JSON pointers: `from` in the document, `to` in the envelope. Printed as a line,
/// a change names the places and never quotes the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A value was moved, as it was spelled.
    Moved {
        /// Its place in the document.
        from: String,
        /// Its place in the envelope.
        to: String,
    },
    /// A value stands in a second place too.
    Copied {
        /// Its place in the document.
        from: String,
        /// Its second place, in the envelope.
        to: String,
    },
    /// A value was summarised in a note.
    Summarised {
        /// Its place in the document.
        from: String,
        /// The place of the note.
        to: String,
    },
    /// State updates became the content of a file.
    Filed {
        /// Their place in the document.
        from: String,
        /// The place of the artifact.
        to: String,
    },
    /// The envelope demands a value that the document does not have.
    Added {
        /// Its place in the envelope.
        at: String,
        /// Its JSON text, which reveals nothing about the document.
        value: &'static str,
    },
    /// A value was given beside the document.
    Given {
        /// Its place in the envelope.
        at: String,
    },
    /// A value stands in the envelope already.
    Repeated {
        /// Its place in the document.
        from: String,
        /// The place in the envelope that says the same.
        at: String,
    },
    /// A value that says nothing was left out, because the envelope has no place for it.
    LeftOut {
        /// Its place in the document.
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
            // An artifact is a whole file, and what else that file holds is not known here.
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
    /// The document is no JSON object, or readers disagree on what it says.
    #[error("the document cannot be read")]
    Unreadable(Report),
    /// Nothing tells whether the document is an input or an output, or as much speaks for one as for the other.
    #[error("cannot tell whether this is an input or an output: {}", undecided(input, output))]
    Undecided {
        /// Members of the document that inputs have.
        input: Vec<&'static str>,
        /// Members of the document that outputs have.
        output: Vec<&'static str>,
    },
    /// An input must name its workflow and its action, and these cannot be made up.
    #[error("the document names no {}", unnamed(*workflow, *action))]
    Unnamed {
        /// Whether the workflow is not named.
        workflow: bool,
        /// Whether the action is not named.
        action: bool,
    },
    /// An output lacks these members, and they cannot be derived from the rest.
    #[error("the document has no `{}`, which cannot be told from the rest", .0.join("` and no `"))]
    Missing(Vec<&'static str>),
    /// A member to which other members are to be added has the wrong type.
    #[error("{pointer} is {}, not {wanted} ({})", found.described(), clause.id)]
    WrongType {
        /// The place of the member.
        pointer: String,
        /// The type that it has.
        found: Type,
        /// The type that it should have.
        wanted: &'static str,
        /// The rule that demands the type.
        clause: &'static Clause,
    },
    /// Another value stands at the place where a value should go.
    #[error("{from} belongs to {to}, and something else stands there")]
    Taken {
        /// The place of the value in the document.
        from: String,
        /// The place where it should go.
        to: String,
    },
    /// State updates become a file, and neither the document nor the caller says which.
    #[error("/state_updates becomes the index file, and the document does not say where that is")]
    NoIndex,
    /// No artifact may be written to the path of the index file.
    #[error("the path of the index file {complaint} ({})", clause.id)]
    Misplaced {
        /// The rule that is broken.
        clause: &'static Clause,
        /// What is wrong, as a continuation of the path's name.
        complaint: &'static str,
    },
    /// The document writes the index file itself.
    #[error("/state_updates becomes the index file, and {artifact} is that file already")]
    IndexWritten {
        /// The place of the artifact.
        artifact: String,
    },
    /// The envelope would break clauses: values that were wrong are still wrong at their new places.
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
