//! Runs of workflows, as stories and as properties.

mod answers;
mod bounds;
mod clashes;
mod envelopes;
mod failures;
mod features;
mod private;
mod refused;
mod routes;
mod simulation;
mod stored;

use std::sync::Arc;

use crosspoint_contracts::workflow::Recommendation;
use crosspoint_workflow::repository::{Clash, ClashReason, FileChange, Written};
use crosspoint_workflow::run::{Asking, Decided, Happened, Next, Run, StageRun};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::definition::{SPECIFY, read};

fn begin(text: &str) -> Run {
    Run::begin(Arc::new(read(text)), None)
}

/// A run of the documentation's workflow.
fn specify() -> Run {
    begin(SPECIFY)
}

/// A run of one stage with these lines.
fn one_stage(lines: &str) -> Run {
    begin(&format!("name = \"w\"\n[[stage]]\nid = \"a\"\nagent = \"x\"\naction = \"do\"\n{lines}\n"))
}

/// What an agent says in a story.
struct Output {
    success: bool,
    summary: String,
    notes: Vec<String>,
    recommendation: Recommendation,
    artifacts: Vec<Written>,
    conflicts: Vec<Clash>,
}

fn output(recommendation: Recommendation) -> Output {
    Output {
        success: true,
        summary: "Done what could be done.".to_owned(),
        notes: Vec::new(),
        recommendation,
        artifacts: Vec::new(),
        conflicts: Vec::new(),
    }
}

fn proceed() -> Output {
    output(Recommendation::Proceed)
}

fn retry() -> Output {
    output(Recommendation::Retry)
}

fn escalate(summary: &str) -> Output {
    Output { summary: summary.to_owned(), ..output(Recommendation::Escalate) }
}

impl Output {
    fn failed(self) -> Output {
        Output { success: false, ..self }
    }

    fn notes(self, notes: &[&str]) -> Output {
        Output { notes: notes.iter().map(|note| (*note).to_owned()).collect(), ..self }
    }

    fn wrote(self, paths: &[&str]) -> Output {
        let written = |path: &&str| Written { path: (*path).to_owned(), change: FileChange::Created };
        Output { artifacts: paths.iter().map(written).collect(), ..self }
    }

    fn clashed(self, clashes: &[(&str, ClashReason)]) -> Output {
        let clash = |(path, why): &(&str, ClashReason)| Clash { path: (*path).to_owned(), why: *why };
        Output { conflicts: clashes.iter().map(clash).collect(), ..self }
    }

    fn at(self, step: u32) -> Happened {
        let Output { success, summary, notes, recommendation, artifacts, conflicts } = self;
        let (job, broken) = ("j".to_owned(), Vec::new());
        Happened::Said { step, job, success, summary, notes, recommendation, artifacts, conflicts, broken }
    }
}

fn said(run: &mut Run, output: Output) -> Decided {
    let happened = output.at(run.step());
    run.apply(&happened).expect("a stage runs")
}

fn broke(run: &mut Run) -> Decided {
    let happened = Happened::Broke {
        step: run.step(),
        job: Some("j".to_owned()),
        failure: "broken_contract".to_owned(),
        clause: Some("WF-4.2".to_owned()),
        message: "a path leaves the repository".to_owned(),
    };
    run.apply(&happened).expect("a stage runs")
}

fn answer(json: &str, step: u32) -> Happened {
    Happened::Answered { step, answer: RawValue::from_string(json.to_owned()).expect("it is JSON") }
}

fn answered(run: &mut Run, json: &str) -> Decided {
    let step = run.step();
    run.apply(&answer(json, step)).expect("a person is asked")
}

/// The stage that runs.
fn running(run: &Run) -> StageRun<'_> {
    match run.next() {
        Next::Stage(stage) => stage,
        Next::Ask(asking) => panic!("a person is asked: {asking:?}"),
        Next::Done => panic!("the workflow is done"),
    }
}

fn stage(run: &Run) -> &str {
    &running(run).stage.id
}

/// The question that a person is asked.
fn asked(run: &Run) -> Asking<'_> {
    match run.next() {
        Next::Ask(asking) => asking,
        Next::Stage(stage) => panic!("a stage runs: {stage:?}"),
        Next::Done => panic!("the workflow is done"),
    }
}

fn envelope(run: &Run) -> Value {
    serde_json::from_str(&running(run).envelope()).expect("the envelope is JSON")
}

/// What the stage that runs is told of the one before.
fn prior(run: &Run) -> Vec<String> {
    let envelope = envelope(run);
    let notes = envelope["prior_context"].as_array().cloned().unwrap_or_default();
    notes.iter().map(|note| note.as_str().expect("a note is a text").to_owned()).collect()
}

fn is_done(run: &Run) -> bool {
    matches!(run.next(), Next::Done)
}
