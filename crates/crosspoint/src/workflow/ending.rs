//! What a run says at its end, gathered from what happened in it.

use std::collections::BTreeSet;

use crosspoint_workflow::repository::{FileChange, Written};
use crosspoint_workflow::run::{Feature, Happened, Run};
use serde::Serialize;

/// What a run says at its end.
#[derive(Default)]
pub(super) struct Last {
    summary: String,
    notes: Vec<String>,
    stages: u32,
    /// How many answers the run has heard.
    pub(super) answers: usize,
    files: BTreeSet<String>,
}

/// The outputs of a run's job.
#[derive(Serialize)]
pub(super) struct Outputs<'r> {
    workflow: &'r str,
    feature_id: Option<&'r str>,
    summary: &'r str,
    notes: &'r [String],
    iterations: u32,
    stages: u32,
    files: &'r BTreeSet<String>,
}

impl Last {
    pub(super) fn note(&mut self, happened: Happened) {
        match happened {
            Happened::Said { summary, notes, artifacts, .. } => {
                (self.summary, self.notes, self.stages) = (summary, notes, self.stages + 1);
                let is_change = |written: &Written| written.change != FileChange::Unchanged;
                self.files.extend(artifacts.into_iter().filter(is_change).map(|written| written.path));
            }
            Happened::Broke { .. } => self.stages += 1,
            Happened::Answered { .. } => self.answers += 1,
        }
    }

    pub(super) fn outputs<'r>(&'r self, run: &'r Run) -> Outputs<'r> {
        Outputs {
            workflow: run.definition().name(),
            feature_id: run.feature().map(Feature::as_str),
            summary: &self.summary,
            notes: &self.notes,
            iterations: run.iteration(),
            stages: self.stages,
            files: &self.files,
        }
    }
}
