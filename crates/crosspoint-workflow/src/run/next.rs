//! What has to be done next.

use std::fmt;

use serde::Serialize;

use super::question::Question;
use super::{Run, envelope};
use crate::definition::Stage;

/// What has to be done next.
#[derive(Clone, Copy, Debug)]
pub enum Next<'r> {
    /// A stage has to run.
    Stage(StageRun<'r>),
    /// A person has to be asked.
    Ask(Asking<'r>),
    /// Nothing: the workflow is done.
    Done,
}

/// A stage that has to run.
#[derive(Clone, Copy)]
pub struct StageRun<'r> {
    /// The number of this run of a stage, from 1: no two runs of stages have the same.
    pub step: u32,
    /// The stage.
    pub stage: &'r Stage,
    /// How many times the workflow has gone round, from 1.
    pub iteration: u32,
    at: usize,
    run: &'r Run,
}

impl<'r> StageRun<'r> {
    pub(super) fn new(run: &'r Run, at: usize) -> StageRun<'r> {
        StageRun { step: run.step, stage: run.stage(at), iteration: run.iteration, at, run }
    }

    /// Returns the input envelope for the stage's agent, as JSON.
    pub fn envelope(&self) -> String {
        envelope::written(self.run, self.at)
    }
}

impl fmt::Debug for StageRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageRun")
            .field("step", &self.step)
            .field("stage", &self.stage.id)
            .field("iteration", &self.iteration)
            .finish_non_exhaustive()
    }
}

/// A question that a person has to answer.
#[derive(Clone, Copy)]
pub struct Asking<'r> {
    /// The run of a stage that the question is about; the answer has to name it.
    pub step: u32,
    /// The stage.
    pub stage: &'r Stage,
    /// What the person is asked.
    pub question: &'r str,
    /// What the agent noted.
    pub notes: &'r [String],
    /// Why a person is asked.
    pub why: Why,
}

impl<'r> Asking<'r> {
    pub(super) fn new(run: &'r Run, question: &'r Question) -> Asking<'r> {
        Asking {
            step: run.step,
            stage: run.stage(question.stage),
            question: &question.text,
            notes: &question.notes,
            why: question.about.why(),
        }
    }
}

/// Question and notes are an agent's words, so their size is shown.
impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("step", &self.step)
            .field("stage", &self.stage.id)
            .field("question", &format_args!("[{} bytes]", self.question.len()))
            .field("notes", &self.notes.len())
            .field("why", &self.why)
            .finish()
    }
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The agent needs to know something.
    Escalated,
    /// The stage has used up its retries.
    LimitReached,
    /// The stage failed.
    Broke,
    /// The run has been long.
    StepsUsedUp,
}
