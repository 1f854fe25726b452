//! The golden corpus: documents without errors, one file per case.

use std::collections::BTreeSet;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::RawObject;
use crosspoint_contracts::json::{Tape, Type};
use crosspoint_contracts::run::EventData;
use crosspoint_contracts::{Contract, Document, Kind, Options};

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

/// Each kind as small and as large as it gets, with unknown members, and in other scripts.
#[test]
fn every_kind_has_the_cases_that_matter() {
    let cases: BTreeSet<String> =
        corpus::golden().iter().map(|case| format!("{}.{}", case.contract(), case.stem())).collect();
    for kind in Kind::ALL {
        for case in ["minimal", "full", "unknown", "non_ascii"] {
            assert!(cases.contains(&format!("{kind}-{case}")), "no {kind}-{case}");
        }
    }
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
    let reading = crosspoint_contracts::read(source, &Options::default());
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
    let reading = crosspoint_contracts::read(source.as_bytes(), &Options::default());
    let Some(Document::RunRequest(request)) = reading.document else { panic!("not a run request") };
    assert_eq!(request.inputs.expect("inputs were given").get(), inputs);
    assert_eq!(request.request_id.get(), "ré");
}

/// Ids that trace work. They are meant for logs and may be shown.
const SHOWN_IDS: &[&str] = &["request_id", "id", "trace_id", "span_id", "parent_task_id", "agent_id"];

/// Content may be a patient's record: no message, hint or debug output repeats it, however broken it is.
#[test]
fn messages_never_quote_content() {
    const SECRET: &str = "Mustermann";
    for case in corpus::golden().into_iter().chain(corpus::broken()) {
        let Ok(text) = String::from_utf8(case.bytes.clone()) else { continue };
        for secret in secrets(&text, SECRET) {
            let reading = crosspoint_contracts::read(secret.as_bytes(), &Options::default());
            for finding in &reading.report.findings {
                let said = format!("{} {}", finding.message, finding.hint);
                assert!(!said.contains(SECRET), "{}: {said}", case.path.display());
            }
            let (_, jobs) = crosspoint_contracts::read_jobs(secret.as_bytes(), &Options::default());
            assert!(!format!("{jobs:?}").contains(SECRET), "{}: {jobs:?}", case.path.display());
            for contract in Contract::ALL {
                let fresh = crate::translation::fresh();
                let translation =
                    crosspoint_contracts::translate(secret.as_bytes(), &Options::default(), contract, &fresh);
                let debug = format!("{:?}", translation.written);
                assert!(!debug.contains(SECRET), "{}: {debug}", case.path.display());
            }
            let Some(document) = &reading.document else { continue };
            let debug = format!("{document:?}");
            let shown = |id: &&str| {
                [format!(" {id}: {SECRET}"), format!(" {id}: Some({SECRET})")].iter().any(|id| debug.contains(id))
            };
            assert!(SHOWN_IDS.iter().any(shown) || !debug.contains(SECRET), "{}: {debug}", case.path.display());
        }
    }
}

/// The text with each of its string values in turn replaced by the secret, at every depth.
fn secrets(text: &str, secret: &str) -> Vec<String> {
    let replaced = |start: usize, end: usize| format!("{}\"{secret}\"{}", &text[..start], &text[end..]);
    let Ok(tape) = Tape::scan(text.as_bytes()) else { return stream_secrets(text, secret) };
    let strings = (0..tape.len()).filter_map(|at| tape.node(at)).filter(|value| value.kind() == Type::String);
    strings.map(|value| replaced(value.span().0, value.span().1)).collect()
}

/// In a stream, and in text that is not JSON, values are what stands between quotes after a colon.
fn stream_secrets(text: &str, secret: &str) -> Vec<String> {
    let mut replaced = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(": \"").map(|found| at + found + 3) {
        let Some(length) = text[start..].find('"') else { break };
        replaced.push(format!("{}{secret}{}", &text[..start], &text[start + length..]));
        at = start + length;
    }
    replaced
}

#[test]
fn success_with_retry_or_escalate_is_legal() {
    for recommendation in ["retry", "escalate"] {
        let source =
            format!(r#"{{"success": true, "summary": "x", "artifacts": [], "recommendation": "{recommendation}"}}"#);
        assert_eq!(crosspoint_contracts::read(source.as_bytes(), &Options::default()).report.findings, []);
    }
}

#[test]
fn tolerated_members_that_cannot_be_read_are_kept() {
    let case = corpus::broken().into_iter().find(|case| case.stem() == "MSG-16-priority").expect("the case is there");
    let Some(Document::WorkRequest(message)) = case.read().document else { panic!("not a work_request") };
    assert_eq!(message.priority, None);
    assert!(message.extra.iter().any(|extra| extra.name == *"priority" && extra.value.get() == "\"high\""));
}

#[test]
fn a_misspelled_member_of_a_valid_document_is_kept() {
    let source = br#"{"id": "1", "status": "failed", "metadata": {"agent": "a"},
        "error": {"code": "TIMEOUT", "message": "m", "recoverable": true, "Details": {"a": 1}}}"#;
    let Some(Document::TaskResponse(response)) = crosspoint_contracts::read(source, &Options::default()).document
    else {
        panic!("not a task response")
    };
    let error = response.error.expect("it failed");
    assert!(error.extra.iter().any(|extra| extra.name == *"Details" && extra.value.get() == r#"{"a": 1}"#));
}

#[test]
fn events_of_a_stream_are_typed() {
    let case = corpus::golden().into_iter().find(|case| case.stem() == "stream-full").expect("the case is there");
    let Some(Document::RunStream(stream)) = case.read().document else { panic!("not a stream") };
    let said: Vec<EventData<'_>> = stream.events.iter().map(|event| event.read().expect("it has no errors")).collect();
    let [
        EventData::Started(started),
        EventData::Progress(first),
        EventData::Progress(_),
        EventData::Terminal(terminal),
    ] = said.as_slice()
    else {
        panic!("{said:?}")
    };
    assert_eq!(started.request_id.expect("it is there").get(), "req-2026-001");
    assert_eq!(
        (first.percent, first.step.map(|step| step.decode().into_owned())),
        (Some(40.0), Some("searching".to_owned()))
    );
    assert_eq!(
        (terminal.response.succeeded(), terminal.response.outputs.map(RawObject::get)),
        (true, Some(r#"{"papers": 2}"#))
    );
}
