//! What became of a question.
//!
//! The file and the text in it are parsed separately (BRIDGE-5). The file is already parsed when there is an
//! [`Answer`]. The text may be anything, so it is only parsed where the program asks for JSON.

use crosspoint_contracts::json::Tape;

use crate::response::{Answer, Status};

/// The agent did not do the work. This is no failure of the bridge: the program decides what to do then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({error_type})")]
pub struct Failed {
    /// Whether the agent took too long or failed otherwise.
    pub status: Status,
    /// What went wrong, for programs.
    pub error_type: String,
    /// What went wrong, for people.
    pub message: String,
}

/// Why there is no JSON in an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The agent did not do the work.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// The agent's text is not JSON (BRIDGE-5.2).
    #[error("the answer is not JSON: {what} (at byte {offset} of its text)")]
    NotJson {
        /// What is wrong with the text.
        what: &'static str,
        /// How to mend the text.
        hint: &'static str,
        /// Where the text goes wrong, in bytes from its beginning.
        offset: usize,
    },
}

impl Answer {
    /// How the work ended. An error of the type timeout is a timeout, whichever status the file gives (BRIDGE-3.4).
    pub fn ended(&self) -> Status {
        match self.status {
            Status::Error if self.error_type.as_deref() == Some("timeout") => Status::Timeout,
            status @ (Status::Success | Status::Error | Status::Timeout) => status,
        }
    }

    /// Returns what the agent said, which may be any text.
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

    /// Returns what the agent said, checked to be one JSON value.
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
