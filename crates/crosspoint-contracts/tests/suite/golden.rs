//! The golden corpus: documents without errors, one file a case.

use std::collections::BTreeSet;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::{Document, Kind};

use crate::corpus;

#[test]
fn valid_documents_have_no_errors() {
    for case in corpus::golden() {
        let reading = case.read();
        assert!(reading.report.is_valid(), "{}: {:#?}", case.path.display(), reading.report.findings);
        assert!(reading.document.is_some(), "{} was not handed out", case.path.display());
    }
}

#[test]
fn kinds_are_detected_without_help() {
    for case in corpus::golden() {
        assert_eq!(case.read().report.kind, Some(case.kind()), "{}", case.path.display());
    }
}

#[test]
fn every_kind_is_in_the_corpus() {
    let seen: BTreeSet<Kind> = corpus::golden().iter().map(corpus::Case::kind).collect();
    assert_eq!(seen, BTreeSet::from(Kind::ALL));
}

#[test]
fn tolerated_looseness_is_warned_of() {
    for case in corpus::golden() {
        let warnings = case.read().report.count(Level::Warning);
        let loose = case.stem().contains("loose");
        assert_eq!(warnings > 0, loose, "{} has {warnings} warnings", case.path.display());
    }
}

#[test]
fn unknown_members_are_kept_and_are_no_error() {
    let source = br#"{"request_id": "r", "task_type": "t", "tenant": {"id": 7}, "stage": "s"}"#;
    let reading = crosspoint_contracts::read(source, &crosspoint_contracts::Options::default());
    assert_eq!(reading.report.findings, []);
    let Some(Document::RunRequest(request)) = reading.document else { panic!("not a run request") };
    let kept: Vec<(String, &str)> =
        request.extra.iter().map(|extra| (extra.name.decode().into_owned(), extra.value.get())).collect();
    assert_eq!(kept, [("tenant".to_owned(), r#"{"id": 7}"#), ("stage".to_owned(), r#""s""#)]);
}

#[test]
fn opaque_payloads_are_the_bytes_that_came() {
    let inputs = r#"{ "b":1.50,"a" : [ "\u00e9", 1e3 ] }"#;
    let source = format!(r#"{{"request_id": "r\u00e9", "task_type": "t", "inputs": {inputs}}}"#);
    let reading = crosspoint_contracts::read(source.as_bytes(), &crosspoint_contracts::Options::default());
    let Some(Document::RunRequest(request)) = reading.document else { panic!("not a run request") };
    assert_eq!(request.inputs.expect("inputs were given").get(), inputs);
    assert_eq!(request.request_id.get(), "ré");
}

/// Content may be a patient's record: whatever is wrong with it, no message, hint or debug output repeats it.
#[test]
fn messages_never_quote_content() {
    const SECRET: &str = "Mustermann";
    for case in corpus::golden().into_iter().chain(corpus::broken()) {
        let Ok(text) = String::from_utf8(case.bytes.clone()) else { continue };
        for secret in secrets(&text, SECRET) {
            let options = crosspoint_contracts::Options { file_kind: None, ..Default::default() };
            let reading = crosspoint_contracts::read(secret.as_bytes(), &options);
            for finding in &reading.report.findings {
                let said = format!("{} {}", finding.message, finding.hint);
                assert!(!said.contains(SECRET), "{}: {said}", case.path.display());
            }
            let Some(document) = &reading.document else { continue };
            let debug = format!("{document:?}");
            // Ids are for logs and may be shown.
            let is_id = debug.contains(&format!("_id: {SECRET}")) || debug.contains(&format!(" id: {SECRET}"));
            assert!(is_id || !debug.contains(SECRET), "{}: {debug}", case.path.display());
        }
    }
}

/// The text with each of its string values in turn replaced by the secret.
fn secrets(text: &str, secret: &str) -> Vec<String> {
    let mut replaced = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(": \"").map(|found| at + found + 3) {
        let Some(length) = text[start..].find('"') else { break };
        replaced.push(format!("{}{secret}{}", &text[..start], &text[start + length..]));
        at = start + length;
    }
    replaced
}
