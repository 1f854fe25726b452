//! What a run remembers of one stage.

use crosspoint_contracts::json::{Tape, plain};

/// How deep an answer may nest: room is left for the envelope around it, which every reader of JSON must read.
const LEVELS_MAX: usize = 100;

/// What a run remembers of one stage.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Retries since the start, or since a person last answered for the stage.
    pub(super) retries: u32,
    /// The answers that the stage was given, in order.
    pub(super) answers: Vec<Answer>,
}

/// A person's answer.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) question: String,
    /// The answer as JSON.
    pub(super) json: String,
    /// The answer in words: a string by its text, anything else as JSON on one line (ALL-8).
    words: String,
}

/// Whether an answer can be handed on to agents: every reader of JSON reads it, and reads the same.
pub fn is_readable(answer: &str) -> bool {
    Answer::read("", answer).is_some()
}

impl Answer {
    /// Reads an answer. Returns `None` if readers of JSON could not read it, or would disagree on what it says.
    pub(super) fn read(question: &str, json: &str) -> Option<Answer> {
        let tape = Tape::scan(json.as_bytes()).ok().filter(|tape| tape.deepest() <= LEVELS_MAX)?;
        let value = tape.root().filter(|root| !tape.is_ambiguous(*root))?;
        let words = value.text().map_or_else(|| plain(value), |text| text.decode().into_owned());
        Some(Answer { question: question.to_owned(), json: value.source().to_owned(), words })
    }

    /// Returns question and answer as the agent is told of them.
    pub(super) fn sentence(&self) -> String {
        format!("Question: {} Answer: {}", self.question, self.words)
    }
}
