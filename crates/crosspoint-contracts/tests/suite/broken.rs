//! For every clause that one document can break, a document breaks that clause and no other.

use std::collections::BTreeMap;

use crosspoint_contracts::clause::{self, Clause, Scope};

use crate::corpus;

fn clauses() -> BTreeMap<&'static str, &'static Clause> {
    clause::every().map(|clause| (clause.id, clause)).collect()
}

#[test]
fn a_broken_document_breaks_its_clause_and_no_unrelated_one() {
    let clauses = clauses();
    for case in corpus::broken() {
        let id = case.clause();
        let clause = clauses.get(id.as_str()).unwrap_or_else(|| panic!("{}: no such clause", case.path.display()));
        let report = case.read().report;
        let found: Vec<&str> = report.findings.iter().map(|finding| finding.clause.id).collect();
        assert!(found.contains(&clause.id), "{} broke {found:?}", case.path.display());
        for other in found {
            let related =
                other == clause.id || clause.implies.contains(&other) || clauses[other].implies.contains(&clause.id);
            assert!(related, "{} also broke {other}", case.path.display());
        }
    }
}

#[test]
fn every_clause_of_scope_document_has_a_document_that_breaks_it() {
    let broken: Vec<String> = corpus::broken().iter().map(corpus::Case::clause).collect();
    let without: Vec<&str> = clause::every()
        .filter(|clause| clause.scope == Scope::Document && !broken.iter().any(|id| id == clause.id))
        .map(|clause| clause.id)
        .collect();
    assert_eq!(without, Vec::<&str>::new());
}

#[test]
fn clauses_of_other_scopes_cannot_be_broken_by_a_document() {
    let clauses = clauses();
    for case in corpus::broken() {
        assert_eq!(clauses[case.clause().as_str()].scope, Scope::Document, "{}", case.path.display());
    }
}

#[test]
fn every_finding_says_where_and_how_to_mend_it() {
    for case in corpus::broken() {
        let report = case.read().report;
        let lines = case.bytes.split(|byte| *byte == b'\n').count();
        for finding in &report.findings {
            let told = format!("{}: {finding:?}", case.path.display());
            assert!(!finding.message.is_empty() && !finding.hint.is_empty(), "{told}");
            assert!((1..=lines).contains(&finding.line) && finding.column >= 1, "{told}");
            assert!(finding.span.0 <= case.bytes.len() && finding.span.0 <= finding.span.1, "{told}");
            assert!(finding.pointer.is_empty() || finding.pointer.starts_with('/'), "{told}");
        }
    }
}

#[test]
fn all_violations_are_found_in_one_pass() {
    let source = br#"{
  "request_id": 7,
  "version": "2.0",
  "status": "Success",
  "result": {"sections": []},
  "error_message": 3,
  "created_at": "yesterday",
  "duration_seconds": "1.0"
}"#;
    let report = crosspoint_contracts::read(source, &crosspoint_contracts::Options::default()).report;
    let found: Vec<(&str, &str, usize, usize)> = report
        .findings
        .iter()
        .map(|finding| (finding.clause.id, finding.pointer.as_str(), finding.line, finding.column))
        .collect();
    assert_eq!(
        found,
        [
            ("BRIDGE-1", "/error_type", 1, 1),
            ("BRIDGE-1", "/metadata", 1, 1),
            ("BRIDGE-101", "/request_id", 2, 17),
            ("BRIDGE-6.3", "/version", 3, 14),
            ("BRIDGE-3", "/status", 4, 13),
            ("BRIDGE-2", "/result", 5, 3),
            ("BRIDGE-1.2", "/result", 5, 13),
            ("BRIDGE-102", "/error_message", 6, 20),
            ("BRIDGE-103", "/created_at", 7, 17),
            ("BRIDGE-6", "/duration_seconds", 8, 23),
        ]
    );
}

#[test]
fn places_are_exact_in_nested_and_non_ascii_documents() {
    let source = "{\"id\": \"550e8400-e29b-41d4-a716-446655440000\", \"type\": \"x\",\r\n \"payload\": {\"größe\": [1, {\"a/b~c\": 2, \"a/b~c\": 3}]}}";
    let report = crosspoint_contracts::read(source.as_bytes(), &crosspoint_contracts::Options::default()).report;
    let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!(finding.pointer, "/payload/größe/1/a~1b~0c");
    assert_eq!((finding.line, finding.column), (2, 40));
}
