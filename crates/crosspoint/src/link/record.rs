//! What an agent did wrong in one attempt, each rule once.

use std::borrow::Cow;
use std::sync::Arc;

use crosspoint_contracts::Report;
use crosspoint_contracts::clause::{Clause, Level};
use crosspoint_engine::runtime::Attempt;

/// Most different rules that are recorded for one attempt.
const RULES_MAX: usize = 32;

/// A rule that the agent broke, and how; without content.
pub(super) struct Note {
    pub(super) clause: &'static Clause,
    pub(super) level: Level,
    pub(super) what: Cow<'static, str>,
}

/// Notes that a rule was broken, at the rule's own level.
pub(super) fn note(clause: &'static Clause, what: impl Into<Cow<'static, str>>) -> Note {
    Note { clause, level: clause.level, what: what.into() }
}

/// The rules that were broken so far, each once.
#[derive(Default)]
pub(super) struct Broken(Vec<&'static str>);

impl Broken {
    /// Notes a rule, if it is the first time that it is broken.
    pub(super) fn note(&mut self, attempt: &Attempt, Note { clause, level, what }: Note) {
        if self.0.len() < RULES_MAX && !self.0.contains(&clause.id) {
            self.0.push(clause.id);
            attempt.noted(clause.id, level, what);
        }
    }
}

/// The record of one attempt. Writing it is not waited for: it is on disk before the outcome is.
pub(super) struct Record {
    attempt: Arc<Attempt>,
    broken: Broken,
}

impl Record {
    pub(super) fn new(attempt: Arc<Attempt>) -> Record {
        Record { attempt, broken: Broken::default() }
    }

    /// Notes a rule that was broken. `what` never holds content.
    pub(super) fn clause(&mut self, clause: &'static Clause, what: impl Into<Cow<'static, str>>) {
        self.note(note(clause, what));
    }

    pub(super) fn note(&mut self, note: Note) {
        self.broken.note(&self.attempt, note);
    }

    pub(super) fn all(&mut self, notes: impl IntoIterator<Item = Note>) {
        notes.into_iter().for_each(|note| self.note(note));
    }
}

/// Returns what is wrong with a document. A missing recommended member does no harm, and would be noted beside every
/// job, so it is left out.
pub(super) fn found(report: Report, recommended: &[&'static Clause]) -> Vec<Note> {
    let kept = report.findings.into_iter().filter(|finding| !recommended.contains(&finding.clause));
    kept.map(|finding| Note { clause: finding.clause, level: finding.level, what: finding.message }).collect()
}
