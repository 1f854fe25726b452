//! What can happen in a run.
//!
//! What happened is stored as it is here, and read again after a restart: names of members are stable, and members that
//! a later version adds are read past. An answer keeps its spelling, so what happened is read from JSON text directly:
//! it cannot be flattened into another object, or be a variant of an enum with an inner tag.

mod recommended;

use std::fmt;

use crosspoint_contracts::workflow::Recommendation;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Something that happened. As JSON it is one object, as `{"answered":{"step":2,"answer":"yes"}}`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// The stage's agent gave an output. Its artifacts were applied, or clashed, and then none was.
    Said {
        /// The run of the stage.
        step: u32,
        /// The child job.
        job: String,
        /// Whether the agent completed its task.
        success: bool,
        /// What happened, in the agent's words.
        summary: String,
        /// What the next agent is told.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
        /// What the agent thinks should happen next.
        #[serde(with = "recommended")]
        recommendation: Recommendation,
        /// The files of the output, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Written>,
        /// The files that clashed. If there are any, nothing was written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<Clash>,
    },
    /// The child job failed, or its artifacts could not be applied.
    Broke {
        /// The run of the stage.
        step: u32,
        /// The child job, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<String>,
        /// The code of the failure, as `broken_contract`.
        failure: String,
        /// The clause that was broken, as `WF-4.2`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clause: Option<String>,
        /// What went wrong.
        message: String,
    },
    /// A person answered.
    Answered {
        /// The run of the stage that the question was about.
        step: u32,
        /// Any JSON value.
        answer: Box<RawValue>,
    },
}

impl Happened {
    /// Returns the number of the run of a stage that this belongs to.
    pub fn step(&self) -> u32 {
        match self {
            Happened::Said { step, .. } | Happened::Broke { step, .. } | Happened::Answered { step, .. } => *step,
        }
    }
}

/// A file that was applied.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// From the repository's root.
    pub path: String,
    /// What was done to it.
    pub change: Change,
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// It has other content than before.
    Updated,
    /// It had this content already (WF-5.2).
    Unchanged,
}

/// A file that clashed with the repository.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// From the repository's root.
    pub path: String,
    /// Why it clashed.
    pub why: Clashed,
}

/// Why a file clashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clashed {
    /// `create` of a file that exists.
    Exists,
    /// `update` of a file that does not exist.
    Missing,
}

/// Words and paths are content, so sizes are shown.
impl fmt::Debug for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happened::Said { step, job, success, summary, notes, recommendation, artifacts, conflicts } => f
                .debug_struct("Said")
                .field("step", step)
                .field("job", job)
                .field("success", success)
                .field("summary", &format_args!("[{} bytes]", summary.len()))
                .field("notes", &notes.len())
                .field("recommendation", recommendation)
                .field("artifacts", artifacts)
                .field("conflicts", conflicts)
                .finish(),
            Happened::Broke { step, job, failure, clause, message } => f
                .debug_struct("Broke")
                .field("step", step)
                .field("job", job)
                .field("failure", failure)
                .field("clause", clause)
                .field("message", &format_args!("[{} bytes]", message.len()))
                .finish(),
            Happened::Answered { step, answer } => f
                .debug_struct("Answered")
                .field("step", step)
                .field("answer", &format_args!("[{} bytes]", answer.get().len()))
                .finish(),
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} [{} bytes]", self.change, self.path.len())
    }
}

impl fmt::Debug for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} [{} bytes]", self.why, self.path.len())
    }
}
