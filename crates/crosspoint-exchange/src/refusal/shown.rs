//! A refusal as JSON: in our own shape, or as the open field of a contract's error.

use crosspoint_contracts::{Finding, Report};
use schemars::JsonSchema;
use serde::Serialize;

use super::word::{FailureName, RepeatName};
use super::{More, Refusal};

/// Why a request was refused: one shape for all of them.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Refusal")]
pub struct Shown<'a> {
    error: Error<'a>,
}

/// What is wrong, and what to do about it. It quotes nothing that came in.
#[derive(Serialize, JsonSchema)]
struct Error<'a> {
    /// One of the twelve failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FailureName")]
    code: Option<&'static str>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    message: Option<&'a str>,
    /// What to do about it.
    hint: &'a str,
    /// Whether sending the same again is safe.
    #[schemars(with = "RepeatName")]
    repeat: &'static str,
    /// The rule that was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    clause: Option<&'static str>,
    /// Where in the request it is wrong, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    /// All that is wrong with the request, where that is more than one thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Mistake<'static>>>")]
    mistakes: Vec<Mistake<'a>>,
    /// All that is wrong with the document, where one was to be judged or translated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Found<'static>>>")]
    findings: Vec<Found<'a>>,
}

/// The open field of a contract's error.
#[derive(Serialize)]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(flatten)]
    error: Error<'a>,
}

/// One of several things that are wrong.
#[derive(Serialize, JsonSchema)]
struct Mistake<'a> {
    /// What is wrong.
    message: &'a str,
    /// What to do about it.
    hint: &'a str,
    /// Where in the request it is wrong, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
}

impl Refusal {
    /// Writes the refusal in our own shape.
    pub fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&Shown { error: self.error() }).unwrap_or_default()
    }

    fn error(&self) -> Error<'_> {
        Error {
            code: Some(self.failure.name()),
            message: Some(&self.message),
            hint: &self.hint,
            repeat: self.repeat.name(),
            clause: self.clause,
            at: self.at.as_deref(),
            mistakes: self.mistakes(),
            findings: self.findings(),
        }
    }

    /// Writes everything but the code and the message, for the open field of a contract's error.
    pub fn details(&self) -> String {
        let mut error = self.error();
        (error.code, error.message) = (None, None);
        let field = self.own.as_ref().and_then(|own| own.field.as_deref());
        serde_json::to_string(&Details { field, error }).unwrap_or_default()
    }

    fn mistakes(&self) -> Vec<Mistake<'_>> {
        let Some(More::Others(others)) = self.more.as_deref() else { return Vec::new() };
        let all = std::iter::once(self).chain(others);
        all.map(|one| Mistake { message: &one.message, hint: &one.hint, at: one.at.as_deref() }).collect()
    }

    fn findings(&self) -> Vec<Found<'_>> {
        let Some(More::Report(report)) = self.more.as_deref() else { return Vec::new() };
        found(report)
    }
}

/// One clause that is broken at one place.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct Found<'r> {
    /// The id of the clause: `crosspoint clauses ID` says what it demands.
    clause: &'static str,
    /// `error` or `warning`.
    level: &'static str,
    /// Where, as a JSON pointer.
    pointer: &'r str,
    /// From 1; 0 where it is nowhere in the text.
    line: usize,
    /// From 1, in characters.
    column: usize,
    /// What is wrong; it quotes nothing of the document.
    message: &'r str,
    /// How to mend it.
    hint: &'r str,
}

/// Lists the findings of a report.
pub fn found(report: &Report) -> Vec<Found<'_>> {
    report.findings.iter().map(Found::new).collect()
}

impl<'r> Found<'r> {
    fn new(finding: &'r Finding) -> Found<'r> {
        Found {
            clause: finding.clause.id,
            level: finding.level.name(),
            pointer: &finding.pointer,
            line: finding.line,
            column: finding.column,
            message: &finding.message,
            hint: &finding.hint,
        }
    }
}
