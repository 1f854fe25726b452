//! What a stage gave, as the output envelope that its run goes on with.

use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::{Outcome, Status};
use crosspoint_contracts::reply::{AgentDocument, Failed};
use crosspoint_contracts::workflow::Recommendation;
use crosspoint_contracts::workflow::clause::{WF_3, WF_106};
use crosspoint_contracts::{Contract, Document, Kind, Options};
use crosspoint_engine::job::Job;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_workflow::run::kept_notes;
use serde::Deserialize;
use serde_json::Value;

use super::printed;
use crate::backend::snapshot;

/// Longest summary, or word of a failure, that a run keeps, in bytes: it is stored with every step, and read again when
/// the run is taken up, as the notes are. The whole is in the job of the stage.
pub(super) const WORDS_BYTES_MAX: usize = 64 << 10;

/// An output envelope.
pub(super) struct Output {
    pub(super) success: bool,
    pub(super) summary: String,
    pub(super) notes: Vec<String>,
    pub(super) recommendation: Recommendation,
    /// Whether the summary is nearly an envelope itself.
    pub(super) is_nearly_envelope: bool,
}

/// Why there is no output.
pub(super) struct NoOutput {
    pub(super) failure: Failure,
    pub(super) message: String,
}

/// Returns the output of a stage that has ended. An agent that says `success: false` in an envelope has done its part:
/// the judge has its job completed, and the run follows what it recommends. A job that failed has no output.
pub(super) fn of(job: &Job) -> Result<Output, NoOutput> {
    let Some(ending) = job.outcome() else { return Err(unreadable()) };
    match ending.status {
        Status::Completed => {}
        Status::Failed | Status::Cancelled => return Err(failed(ending)),
    }
    let document = answer::document(&snapshot(job), Contract::Workflow, &Beside::default());
    read(&document).ok_or_else(unreadable)
}

/// Whether an agent itself says that it did not succeed. A program that says so exits with 0; what a program printed
/// that then broke off is no output (WF-8).
pub(super) fn is_said_by(failed: &Failed) -> bool {
    failed.failure == Failure::AgentFailed && !is_broken_off(failed.details.as_ref())
}

#[derive(Deserialize)]
struct Recommended {
    #[serde(default)]
    recommendation: Option<Value>,
}

/// Returns the rule that an envelope breaks which does not say where its run goes.
pub(super) fn unroutable(document: &AgentDocument) -> Option<&'static Clause> {
    if document.kind != Kind::WorkflowOutput {
        return None;
    }
    let recommended = serde_json::from_str(document.document.get()).unwrap_or(Recommended { recommendation: None });
    match recommended.recommendation.as_ref().and_then(Value::as_str) {
        Some("proceed" | "retry" | "escalate") => None,
        Some(_) => Some(&WF_3),
        None => Some(&WF_106),
    }
}

/// How a program ended, as far as the failure says.
#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    exit_code: i32,
    signal: Option<i32>,
}

fn is_broken_off(details: Option<&Body>) -> bool {
    let ended = details.and_then(|details| serde_json::from_str::<Ended>(details.get()).ok());
    ended.is_some_and(|ended| ended.exit_code != 0 || ended.signal.is_some())
}

fn read(document: &str) -> Option<Output> {
    let options = Options { kind: Some(Kind::WorkflowOutput), ..Options::default() };
    let read = crosspoint_contracts::read(document.as_bytes(), &options);
    let Document::WorkflowOutput(output) = read.document? else { return None };
    let notes: Vec<String> = output.notes.unwrap_or_default().iter().map(|note| note.decode().into_owned()).collect();
    let mut summary = output.summary.decode().into_owned();
    let is_nearly_envelope = printed::is_nearly_envelope(&summary);
    summary.truncate(summary.floor_char_boundary(WORDS_BYTES_MAX));
    let (success, recommendation) = (output.success, output.recommendation);
    Some(Output { success, summary, notes: kept_notes(&notes), recommendation, is_nearly_envelope })
}

fn failed(outcome: &Outcome) -> NoOutput {
    let failure = outcome.failure().unwrap_or(Failure::Cancelled);
    let said = outcome.reason.as_ref().and_then(|reason| reason.message.as_ref());
    let message = said.and_then(text).unwrap_or_else(|| failure.sentence().to_owned());
    NoOutput { failure, message }
}

fn text(json: &Body) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}

fn unreadable() -> NoOutput {
    NoOutput { failure: Failure::BrokenContract, message: "The output of the stage cannot be read.".to_owned() }
}
