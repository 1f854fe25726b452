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

use crate::repository::{Clash, Written};

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
        /// The rules that the output breaks, as `WF-106`. It counts all the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        broken: Vec<String>,
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

/// Words are content, so their sizes are shown.
impl fmt::Debug for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happened::Said { step, job, success, summary, notes, recommendation, artifacts, conflicts, broken } => f
                .debug_struct("Said")
                .field("step", step)
                .field("job", job)
                .field("success", success)
                .field("summary", &format_args!("[{} bytes]", summary.len()))
                .field("notes", &notes.len())
                .field("recommendation", recommendation)
                .field("artifacts", artifacts)
                .field("conflicts", conflicts)
                .field("broken", broken)
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
