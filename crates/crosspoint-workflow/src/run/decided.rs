//! What is decided when something has happened.

use std::fmt;

use serde::Serialize;

use super::next::Why;

/// What was decided. As JSON it is one object, which is stored beside what happened.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub enum Decided {
    /// A stage runs.
    Stage {
        /// The stage's id.
        id: String,
        /// The number of this run of a stage.
        step: u32,
        /// How many times the workflow has gone round.
        iteration: u32,
        /// How the run got there.
        why: Way,
    },
    /// A person is asked.
    Ask {
        /// What the person is asked.
        question: String,
        /// Why.
        why: Why,
    },
    /// The workflow is done.
    Done,
}

/// How a run gets to a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The stage before recommended to go on.
    Proceed,
    /// The stage before recommended to try again.
    Retry,
    /// Artifacts of the stage before clashed with the repository, which counts as a retry.
    Conflict,
    /// A person answered what a stage asked.
    Escalated,
    /// A person lets a stage that failed run again.
    Resumed,
}

/// The question may hold an agent's words, so its size is shown.
impl fmt::Debug for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decided::Stage { id, step, iteration, why } => {
                write!(f, "Stage {{ id: {id:?}, step: {step}, iteration: {iteration}, why: {why:?} }}")
            }
            Decided::Ask { question, why } => write!(f, "Ask {{ question: [{} bytes], why: {why:?} }}", question.len()),
            Decided::Done => f.write_str("Done"),
        }
    }
}

/// Why something cannot have happened to a run as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// The workflow is done.
    #[error("the workflow is done, and nothing follows")]
    Over,
    /// Another stage runs, or a question about another one is open.
    #[error("the run is at step {expected}, and this belongs to step {given}")]
    OtherStep {
        /// The step of the run.
        expected: u32,
        /// The step of what happened.
        given: u32,
    },
    /// A person is asked, and no stage runs.
    #[error("the run waits for a person's answer, and no stage runs")]
    Asked,
    /// A stage runs, and nobody is asked.
    #[error("nothing is asked; the stage has to end first")]
    NotAsked,
    /// The answer is no JSON that every reader reads alike.
    #[error("the answer repeats a name in an object, breaks a character, or nests too deep; write it as plain JSON")]
    Unreadable,
}
