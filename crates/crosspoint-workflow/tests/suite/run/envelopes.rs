//! Input envelopes as agents get them.

use std::sync::Arc;

use crosspoint_contracts::{Kind, Options};
use crosspoint_workflow::run::Feature;

use super::*;

/// Complains about an envelope that the contract's reader finds anything wrong with.
pub(super) fn check(envelope: &str) {
    let reading = crosspoint_contracts::read(
        envelope.as_bytes(),
        &Options { kind: Some(Kind::WorkflowInput), ..Options::default() },
    );
    assert!(reading.report.findings.is_empty(), "{:?}", reading.report.findings);
    assert!(reading.document.is_some());
}

#[test]
fn an_envelope_is_spelled_like_this() {
    let mut run = Run::begin(Arc::new(read(SPECIFY)), Feature::new("005-user-auth").ok());
    check(&running(&run).envelope());
    said(&mut run, proceed().notes(&["Spec \"complete\"", "3 edge cases identified"]));
    said(&mut run, escalate("Which?"));
    answered(&mut run, "[\"a\"]");
    check(&running(&run).envelope());
    insta::assert_snapshot!(running(&run).envelope());
}

#[test]
fn a_detected_envelope_is_an_input_of_the_workflow_contract() {
    let envelope = running(&specify()).envelope();
    let reading = crosspoint_contracts::read(envelope.as_bytes(), &Options::default());
    assert_eq!(reading.report.kind, Some(Kind::WorkflowInput));
}

#[test]
fn wf_6_2_an_envelope_names_no_stage_and_no_agent() {
    let mut run = begin(&SPECIFY.replace("\"write\"", "\"st4ge\"").replace("spec-writer", "ag3nt"));
    said(&mut run, retry());
    let envelope = running(&run).envelope();
    assert!(!envelope.contains("st4ge") && !envelope.contains("ag3nt"));
}
