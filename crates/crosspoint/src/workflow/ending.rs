//! What a run says at its end, gathered from what happened in it.

use std::collections::BTreeSet;

use crosspoint_workflow::repository::{FileChange, Written};
use crosspoint_workflow::run::{Feature, Happened, Run};
use serde::Serialize;

/// Most bytes of the paths that a run names at its end. Its diff has all of them.
const FILES_BYTES_MAX: usize = 4 << 20;

/// What a run says at its end.
#[derive(Default)]
pub(super) struct Last {
    summary: String,
    notes: Vec<String>,
    stages: u32,
    /// How many answers the run has heard.
    pub(super) answers: usize,
    files: BTreeSet<String>,
    files_bytes: usize,
    /// How many times a file was written for whose path there was no room any more: which of them are the same file is
    /// not known.
    files_left_out: u32,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    files_left_out: Option<u32>,
}

impl Last {
    pub(super) fn note(&mut self, happened: Happened) {
        match happened {
            Happened::Said { summary, notes, artifacts, .. } => {
                (self.summary, self.notes, self.stages) = (summary, notes, self.stages + 1);
                let is_change = |written: &Written| written.change != FileChange::Unchanged;
                artifacts.into_iter().filter(is_change).for_each(|written| self.note_file(written.path));
            }
            Happened::Broke { .. } => self.stages += 1,
            Happened::Answered { .. } => self.answers += 1,
        }
    }

    /// Whether anything has happened in the run.
    pub(super) fn has_begun(&self) -> bool {
        self.stages > 0
    }

    fn note_file(&mut self, path: String) {
        if self.files.contains(&path) {
            return;
        }
        if self.files_bytes + path.len() > FILES_BYTES_MAX {
            self.files_left_out = self.files_left_out.saturating_add(1);
            return;
        }
        self.files_bytes += path.len();
        self.files.insert(path);
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
            files_left_out: (self.files_left_out > 0).then_some(self.files_left_out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_paths_are_named_at_the_end() {
        let mut last = Last::default();
        let path = |number: usize| format!("{number:04000}");
        for number in (0..2_000).chain(0..2_000) {
            last.note_file(path(number));
        }
        let named = FILES_BYTES_MAX / 4_000;
        assert_eq!(last.files.len(), named);
        assert_eq!(last.files_left_out as usize, 2 * (2_000 - named), "the named ones are named once");
    }
}
