//! Telling kinds apart.

use crosspoint_contracts::kind::Undetected;
use crosspoint_contracts::{Kind, Options, Reading};

fn read(source: &str) -> Reading<'_> {
    crosspoint_contracts::read(source.as_bytes(), &Options::default())
}

#[test]
fn a_few_members_are_enough() {
    let cases = [
        (r#"{"status": "success", "response": "{}"}"#, Kind::BridgeResponse),
        (r#"{"agent_name": "a", "prompt": "p"}"#, Kind::BridgeRequest),
        (r#"{"type": "work_status", "payload": {}}"#, Kind::WorkStatus),
        (r#"{"protocol_version": "1.0", "payload": {"exit_code": 0}}"#, Kind::WorkResult),
        (r#"{"id": "1", "type": "x", "payload": {}}"#, Kind::TaskRequest),
        (r#"{"id": "1", "status": "pending"}"#, Kind::TaskResponse),
        (r#"{"task_type": "x", "request_id": "1"}"#, Kind::RunRequest),
        (r#"{"request_id": "1", "status": "ok"}"#, Kind::RunResponse),
        (r#"{"task": {}, "context": {}}"#, Kind::WorkflowInput),
        (r#"{"summary": "x"}"#, Kind::WorkflowOutput),
        ("event: started\ndata: {}\n\n", Kind::RunStream),
        (": hello\n\n", Kind::RunStream),
    ];
    for (source, kind) in cases {
        assert_eq!(read(source).report.kind, Some(kind), "{source}");
    }
}

#[test]
fn a_truncated_document_is_told_by_what_is_left_of_it() {
    let report = read(r#"{"request_id": "1", "version": "1.0", "agent_name": "a", "prom"#).report;
    assert_eq!(report.kind, Some(Kind::BridgeRequest));
    assert_eq!(report.findings[0].clause.id, "ALL-101");
}

#[test]
fn ambiguous_says_what_was_tried_and_found() {
    let reading = read(r#"{"artifacts": [], "error": {}}"#);
    let Some(Undetected::Ambiguous(candidates)) = reading.undetected else { panic!("{:?}", reading.undetected) };
    let tried: Vec<(Kind, Vec<&str>)> =
        candidates.into_iter().map(|candidate| (candidate.kind, candidate.found)).collect();
    let both = vec!["error", "artifacts"];
    assert_eq!(tried, [(Kind::TaskResponse, both), (Kind::RunResponse, vec!["artifacts", "error"])]);
    assert!(reading.document.is_none() && reading.report.kind.is_none());
}

#[test]
fn unknown_is_unknown() {
    assert_eq!(read("{}").undetected, Some(Undetected::Unknown));
    assert_eq!(read(r#"{"name": "package", "dependencies": {}}"#).undetected, Some(Undetected::Unknown));
}

#[test]
fn names_of_files_that_the_contracts_give_say_the_kind() {
    for (name, kind) in [
        (".agent-response.json", Some(Kind::BridgeResponse)),
        (".agent-response-phase6.json", Some(Kind::BridgeResponse)),
        (".agent-response.json.stale-2", Some(Kind::BridgeResponse)),
        (".agent-request.json", Some(Kind::BridgeRequest)),
        (".agent-request-phase2.json", Some(Kind::BridgeRequest)),
        (".agent-response.json.bak", None),
        ("run.sse", Some(Kind::RunStream)),
        ("agent-response.json", None),
        ("spec.json", None),
    ] {
        assert_eq!(Kind::of_file_name(name), kind, "{name}");
    }
}

#[test]
fn a_member_that_stands_a_million_times_tells_no_more_than_once() {
    let many = "\"ok\":0,".repeat(1_000_000);
    let source = format!("{{{many}\"id\": \"1\", \"type\": \"x\", \"payload\": {{}}}}");
    assert_eq!(read(&source).report.kind, Some(Kind::TaskRequest));
}

#[test]
fn a_kind_that_is_given_is_not_detected() {
    let source = r#"{"id": "1", "type": "x", "payload": {}}"#;
    let reading =
        crosspoint_contracts::read(source.as_bytes(), &Options { kind: Some(Kind::RunRequest), ..Options::default() });
    assert_eq!(reading.report.kind, Some(Kind::RunRequest));
    assert!(reading.report.findings.iter().all(|finding| finding.clause.id == "RUN-2"));
}
