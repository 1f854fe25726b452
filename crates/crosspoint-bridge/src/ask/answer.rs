//! What became of a question.
//!
//! Two things are parsed apart (BRIDGE-5): the file, which was done when there is an [`Answer`], and the text in it, which is only done where somebody
//! wants it, because it may be anything.

use crosspoint_contracts::json::Tape;

use crate::response::{Answer, Status};

/// The agent did not do it. That is no mistake of the bridge: the program has its own idea of what to do then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({error_type})")]
pub struct Failed {
    /// Whether it took too long, or failed otherwise.
    pub status: Status,
    /// What went wrong, for programs.
    pub error_type: String,
    /// What went wrong, for people.
    pub message: String,
}

/// There is no JSON in an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Because the agent did not do it.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// Because what it said is something else (BRIDGE-5.2).
    #[error("the answer is not JSON: {what} (at byte {offset} of its text)")]
    NotJson {
        /// What is wrong with it.
        what: &'static str,
        /// How to mend it.
        hint: &'static str,
        /// Where it goes wrong, in bytes from the beginning of the text.
        offset: usize,
    },
}

impl Answer {
    /// How it ended. An error of the type timeout is a timeout, however it is written (BRIDGE-3.4).
    pub fn ended(&self) -> Status {
        match self.status {
            Status::Error if self.error_type.as_deref() == Some("timeout") => Status::Timeout,
            status @ (Status::Success | Status::Error | Status::Timeout) => status,
        }
    }

    /// What the agent said: any text.
    pub fn text(&self) -> Result<&str, Failed> {
        match &self.response {
            Some(text) => Ok(text),
            None => Err(Failed {
                status: self.ended(),
                error_type: self.error_type.clone().unwrap_or_default(),
                message: self.error_message.clone().unwrap_or_default(),
            }),
        }
    }

    /// The same, known to be one JSON value.
    pub fn json(&self) -> Result<&str, Unusable> {
        let text = self.text()?;
        match Tape::scan(text.as_bytes()) {
            Ok(tape) => Ok(tape.root().map_or(text, |root| root.source())),
            Err(broken) => Err(Unusable::NotJson {
                what: broken.error.kind.message(),
                hint: broken.error.kind.hint(),
                offset: broken.error.offset,
            }),
        }
    }
}
