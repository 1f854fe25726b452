//! The verdict on a document, as JSON.
//!
//! `crosspoint validate --format json` prints it and `POST /api/v1/validate` answers with it. Both use one type, so
//! that a program that reads the one reads the other.

use crosspoint_contracts::kind::Undetected;
use crosspoint_contracts::{Kind, Reading, Report};
use crosspoint_exchange::refusal::{Found, found};
use schemars::JsonSchema;
use serde::Serialize;

use crate::terminal::undetected;

/// One document's report. The order of the members is the order they are printed in.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Judged")]
pub(crate) struct DocumentReport<'r> {
    /// The file, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// What it is; null where that could not be told.
    #[schemars(with = "crosspoint_contracts::content::Nullable<String>")]
    kind: Option<&'static str>,
    /// Whether no clause is broken that is an error.
    valid: bool,
    /// What is wrong with it, in order of the places.
    findings: Vec<Found<'r>>,
    /// How many more were found and are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<usize>")]
    unlisted: usize,
    /// Why it could not be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What it could be, where that is not clear.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    candidates: Vec<&'static str>,
}

impl<'r> DocumentReport<'r> {
    pub(crate) fn new(report: &'r Report, good: bool) -> DocumentReport<'r> {
        DocumentReport {
            file: None,
            kind: report.kind.map(Kind::name),
            valid: good,
            findings: found(report),
            unlisted: report.unlisted,
            error: None,
            candidates: Vec::new(),
        }
    }

    pub(crate) fn of(reading: &'r Reading<'_>, good: bool) -> DocumentReport<'r> {
        let mut report = DocumentReport::new(&reading.report, good);
        if let Some(undetected) = &reading.undetected {
            report.error = Some(undetected::sentence(undetected));
            report.candidates = candidates(undetected);
        }
        report
    }
}

/// Returns the kinds that a document could be.
pub(crate) fn candidates(undetected: &Undetected) -> Vec<&'static str> {
    match undetected {
        Undetected::Unknown => Vec::new(),
        Undetected::Ambiguous(candidates) => candidates.iter().map(|candidate| candidate.kind.name()).collect(),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
