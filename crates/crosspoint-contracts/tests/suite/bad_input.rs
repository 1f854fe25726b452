//! Nothing panics, overflows the stack or allocates without bound, whatever the bytes.

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::json::DEPTH_MAX;
use crosspoint_contracts::report::{FINDINGS_MAX, POINTER_BYTES_MAX};
use crosspoint_contracts::{Contract, Extent, Inner, Kind, Options, Reading, translate};
use proptest::prelude::*;

use crate::corpus;

fn read(bytes: &[u8]) -> Reading<'_> {
    crosspoint_contracts::read(bytes, &Options { inner: Inner::Json, ..Options::default() })
}

/// Reads the bytes as every kind they could be taken for. Returns the clauses found when the kind is detected.
fn clauses(bytes: &[u8]) -> Vec<&'static str> {
    for kind in Kind::ALL {
        let options = Options { kind: Some(kind), inner: Inner::Json, ..Options::default() };
        let reading = crosspoint_contracts::read(bytes, &options);
        assert!(reading.document.is_none() || reading.report.is_valid());
    }
    read(bytes).report.findings.iter().map(|finding| finding.clause.id).collect()
}

const REQUEST: &str = r#"{"request_id": "r", "task_type": "t", "inputs": {"x": VALUE}}"#;

fn with_input(value: &str) -> String {
    REQUEST.replace("VALUE", value)
}

#[test]
fn empty_input() {
    for bytes in ["", " ", "\n\r\t", "\u{feff}"] {
        let found = clauses(bytes.as_bytes());
        assert!(found.contains(&"ALL-101"), "{bytes:?}: {found:?}");
    }
}

#[test]
fn truncated_at_every_byte() {
    for case in corpus::golden() {
        // Every document ends with its last brace; after that only white space can be missing.
        let end = case.bytes.iter().rposition(|byte| *byte == b'}').expect("every document has one");
        for length in 0..=end {
            let report = read(&case.bytes[..length]).report;
            assert!(!report.is_valid(), "{} cut at {length} is valid", case.path.display());
        }
    }
}

#[test]
fn a_million_levels_of_nesting() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for closed in [true, false] {
            let levels = 1_000_000;
            let value = open.repeat(levels) + "1" + &if closed { close.repeat(levels) } else { String::new() };
            assert_eq!(clauses(with_input(&value).as_bytes()), ["ALL-107"]);
            assert_eq!(clauses(value.as_bytes()), ["ALL-107"]);
        }
    }
}

#[test]
fn nesting_up_to_the_limit_is_fine() {
    let inside_document = DEPTH_MAX - 2;
    let nested = |levels: usize| with_input(&("[".repeat(levels) + &"]".repeat(levels)));
    assert_eq!(clauses(nested(inside_document).as_bytes()), Vec::<&str>::new());
    assert_eq!(clauses(nested(inside_document + 1).as_bytes()), ["ALL-107"]);
    let serde_json_reads = |levels| serde_json::from_str::<serde_json::Value>(&nested(levels)).is_ok();
    assert!(serde_json_reads(inside_document) && !serde_json_reads(inside_document + 1));
}

#[test]
fn repeated_members_are_reported_at_any_size_and_spelling() {
    assert_eq!(clauses(with_input(r#"{"a": 1, "a": 1}"#).as_bytes()), ["ALL-103"]);
    assert_eq!(clauses(with_input(r#"{"a": 1, "\u0061": 1}"#).as_bytes()), ["ALL-103"]);
    let many: Vec<String> = (0..5000).map(|index| format!("\"m{}\": 0", index % 4999)).collect();
    assert_eq!(clauses(with_input(&format!("{{{}}}", many.join(", "))).as_bytes()), ["ALL-103"]);
}

#[test]
fn of_two_members_the_first_is_read_and_the_second_reported() {
    assert_eq!(clauses(br#"{"request_id": "r", "task_type": "t", "task_type": 7}"#), ["ALL-103"]);
    assert_eq!(clauses(br#"{"request_id": "r", "task_type": 7, "task_type": "t"}"#), ["RUN-2", "ALL-103"]);
}

#[test]
fn names_with_lone_surrogates_are_not_taken_for_each_other() {
    assert_eq!(clauses(with_input(r#"{"\ud800": 1, "\ud801": 2}"#).as_bytes()), ["ALL-104", "ALL-104"]);
    assert_eq!(clauses(with_input(r#"{"\ud800": 1, "\\ud800": 2}"#).as_bytes()), ["ALL-104"]);
    assert_eq!(clauses(with_input("{\"\u{fffd}\": 1, \"\\ufffd\": 2}").as_bytes()), ["ALL-103"]);
}

/// Twenty thousand comparisons with a long escaped text: minutes if each decoded it.
#[test]
fn a_long_delegation_chain_against_a_long_escaped_target() {
    let chain = vec!["\"a\""; 200_000].join(",");
    let target = "\\n".repeat(400_000);
    let source = format!(
        r#"{{"id": "550e8400-e29b-41d4-a716-446655440000", "type": "t", "payload": {{}}, "routing": {{"target": "{target}", "delegationChain": [{chain}]}}}}"#
    );
    assert_eq!(clauses(source.as_bytes()), ["TASK-9.3"]);
}

#[test]
fn names_that_end_like_a_cut_pointer_are_not_taken_for_one() {
    let source = br#"{"context": {"feature_id": null, "workflow": "w", "iteration": 1}, "paths": {"etc...": [1]}, "task": {"action": "a", "params": {}}}"#;
    let report = read(source).report;
    assert_eq!(report.findings.iter().map(|finding| finding.pointer.as_str()).collect::<Vec<_>>(), ["/paths/etc.../0"]);
}

#[test]
fn a_flaw_in_a_string_that_does_not_end_is_at_its_place() {
    let report = read(br#"{"success": true, "summary": "s", "notes": ["a", "\ud800"#).report;
    let found: Vec<(&str, &str)> =
        report.findings.iter().map(|finding| (finding.clause.id, finding.pointer.as_str())).collect();
    assert_eq!(found, [("ALL-104", "/notes/1"), ("ALL-101", "/notes")]);
}

#[test]
fn no_number_of_warnings_hides_an_error_or_makes_one() {
    let numbers = vec!["1e999"; FINDINGS_MAX + 5].join(",");
    let warned = with_input(&format!("[{numbers}]"));
    let report = read(warned.as_bytes()).report;
    assert!(report.is_valid() && report.unlisted == 5 && report.count(Level::Warning) == FINDINGS_MAX + 5);
    let broken = with_input(&format!(r#"[[{numbers}], {{"a": 1, "a": 2}}]"#));
    let report = read(broken.as_bytes()).report;
    assert!(!report.is_valid() && report.count(Level::Error) == 1);
    assert_eq!(report.findings.last().map(|finding| finding.clause.id), Some("ALL-103"));
}

#[test]
fn pointers_are_bounded() {
    let numbers = vec!["1e999"; 1_000].join(",");
    let source = with_input(&format!(r#"{{"{}": [{numbers}]}}"#, "k".repeat(1_000_000)));
    let report = read(source.as_bytes()).report;
    assert_eq!(report.findings.len(), 1_000);
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.pointer.len() <= POINTER_BYTES_MAX && finding.pointer.ends_with("..."))
    );
}

/// Half a million findings in one event of as many lines: more than a minute if a place were searched line by line.
#[test]
fn an_event_of_many_lines() {
    let lines = "data: 1,\n".repeat(500_000);
    let source = format!("event: final\ndata: {{\"artifacts\": [\n{lines}data: 1]}}\n\n");
    let report = read(source.as_bytes()).report;
    assert!(report.count(Level::Warning) > 500_000);
    let last = report.findings.last().expect("there are findings");
    assert!(last.line > 9_000, "{last:?}");
}

#[test]
fn encodings() {
    assert_eq!(clauses(with_input("\"\u{e4}\"").replace('ä', "\u{80}").as_bytes()), Vec::<&str>::new());
    let mut latin1 = with_input("\"X\"").into_bytes();
    let at = latin1.iter().position(|byte| *byte == b'X').expect("X is there");
    latin1[at] = 0xe4;
    assert_eq!(clauses(&latin1), ["ALL-102"]);
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(clauses(&utf16), ["ALL-102"]);
    assert_eq!(clauses(format!("\u{feff}{}", with_input("1")).as_bytes()), ["ALL-106"]);
}

#[test]
fn surrogates() {
    for lone in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0041""#, r#""\ud83d\ud83d\ude00""#] {
        assert_eq!(clauses(with_input(lone).as_bytes()), ["ALL-104"], "{lone}");
    }
    assert_eq!(clauses(with_input(r#""\ud83d\ude00""#).as_bytes()), Vec::<&str>::new());
}

#[test]
fn numbers() {
    for malformed in ["NaN", "-Infinity", "Infinity", "01", "1.", ".5", "+1", "1e", "0x10", "1_000", "-", "--1", "1.e3"]
    {
        assert_eq!(clauses(with_input(malformed).as_bytes()), ["ALL-101"], "{malformed}");
    }
    for beyond in ["1e400", "-1e400", "18446744073709551616", "-9223372036854775809", &"9".repeat(400)] {
        assert_eq!(clauses(with_input(beyond).as_bytes()), ["ALL-105"], "{beyond}");
    }
    for fine in ["18446744073709551615", "-9223372036854775808", "1e308", "1e-400", "0.1", "-0", "1E+2"] {
        assert_eq!(clauses(with_input(fine).as_bytes()), Vec::<&str>::new(), "{fine}");
    }
}

#[test]
fn typed_numbers_beyond_their_type() {
    let status = |percent: &str| {
        format!(
            r#"{{"protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001", "from_agent": "infra",
            "to_agent": "orchestrator", "timestamp": "2026-01-19T04:21:04Z", "trace_id": "550e8400-e29b-41d4-a716-446655440002",
            "request_id": "550e8400-e29b-41d4-a716-446655440003", "type": "work_status", "payload": {{
            "task_id": "550e8400-e29b-41d4-a716-446655440004", "status": "running", "progress_percent": {percent},
            "step": {{"number": 1, "name": "x"}}}}}}"#
        )
    };
    for fine in ["0", "100", "50.0", "5e1"] {
        assert_eq!(clauses(status(fine).as_bytes()), Vec::<&str>::new(), "{fine}");
    }
    for wrong in ["-1", "101", "50.5", "9223372036854775807"] {
        assert_eq!(clauses(status(wrong).as_bytes()), ["MSG-3.2"], "{wrong}");
    }
    for beyond in ["1e400", "99999999999999999999"] {
        let mut found = clauses(status(beyond).as_bytes());
        found.sort_unstable();
        assert_eq!(found, ["ALL-105", "MSG-3.2"], "{beyond}");
    }
}

#[test]
fn a_50_mb_string() {
    let long = "x".repeat(50 << 20);
    assert_eq!(read(with_input(&format!("\"{long}\"")).as_bytes()).report.findings, []);
    let cut = format!("{{\"request_id\": \"{long}");
    assert_eq!(read(cut.as_bytes()).report.findings[0].clause.id, "ALL-101");
}

#[test]
fn trailing_garbage() {
    for garbage in ["x", "{}", "]", "\0", ", 1"] {
        assert_eq!(clauses(format!("{}{garbage}", with_input("1")).as_bytes()), ["ALL-101"], "{garbage:?}");
    }
}

#[test]
fn other_values_for_objects() {
    assert_eq!(clauses(br#"{"request_id": "r", "task_type": "t", "inputs": null}"#), ["ALL-11"]);
    assert_eq!(clauses(b"null"), ["ALL-108"]);
    for value in ["[]", "\"text\"", "1", "true"] {
        assert_eq!(clauses(value.as_bytes()), ["ALL-108"], "{value}");
        let inputs = format!(r#"{{"request_id": "r", "task_type": "t", "inputs": {value}}}"#);
        assert_eq!(clauses(inputs.as_bytes()), ["RUN-2.2"], "{value}");
    }
}

#[test]
fn line_ends_make_no_difference() {
    for case in corpus::golden().into_iter().chain(corpus::broken()) {
        let Ok(text) = String::from_utf8(case.bytes.clone()) else { continue };
        let unix = text.replace("\r\n", "\n");
        let found = |source: String| {
            let report = read(source.as_bytes()).report;
            let place = |finding: crosspoint_contracts::Finding| (finding.clause.id, finding.line, finding.column);
            report.findings.into_iter().map(place).collect::<Vec<_>>()
        };
        let expected = found(unix.clone());
        for end in ["\r\n", "\r"] {
            assert_eq!(found(unix.replace('\n', end)), expected, "{} with {end:?}", case.path.display());
        }
    }
}

#[test]
fn wrong_case_in_words_says_how_to_spell_them() {
    for (id, spelled) in [("BRIDGE-3", "success"), ("MSG-101", "work_request"), ("TASK-1.3", "high"), ("RUN-3", "ok")] {
        let case = corpus::broken().into_iter().find(|case| case.stem() == id).expect("the case is there");
        let finding = case.read().report.findings.remove(0);
        assert!(finding.hint.contains(&format!("\"{spelled}\"")), "{id}: {}", finding.hint);
    }
}

#[test]
fn almost_dates() {
    let response = |date: &str| {
        format!(
            r#"{{"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "status": "success", "response": "{{}}",
            "error_message": null, "error_type": null, "created_at": "{date}", "duration_seconds": 1, "metadata": {{}}}}"#
        )
    };
    for fine in [
        "2025-11-24T14:22:45.123456+00:00",
        "2025-11-24T14:22:45Z",
        "2024-02-29 00:00:00-05:30",
        "20251124T142245Z",
        "2025-11-24T14:22:45.1234567890123Z",
        "2016-12-31T23:59:60Z",
        "2025-11-24T14Z",
    ] {
        assert_eq!(clauses(response(fine).as_bytes()), Vec::<&str>::new(), "{fine}");
    }
    for wrong in [
        "",
        "2025-11-24",
        "14:22:45Z",
        "2025-02-29T00:00:00Z",
        "2025-13-01T00:00:00Z",
        "2025-11-24T24:01:00Z",
        "2025-11-24T14:60:00Z",
        "2025-11-24T14:22:45+25:00",
        "2025-11-24T14:22:45+00:00:00",
        "2025-1124T14:2245Z",
        "2025-11-24T142245Z",
        "24/11/2025 14:22",
        "2025-11-24T14:22:45Z[Europe/Paris]",
        "2025-11-24T14:22:45 UTC",
        "1764000000",
    ] {
        assert_eq!(clauses(response(wrong).as_bytes()), ["BRIDGE-103"], "{wrong}");
    }
    assert_eq!(clauses(response("2025-11-24T14:22:45").as_bytes()), ["BRIDGE-6.2"]);
}

#[test]
fn findings_are_bounded() {
    let artifacts = vec!["1"; FINDINGS_MAX + 5].join(",");
    let source =
        format!(r#"{{"success": true, "summary": "x", "recommendation": "proceed", "artifacts": [{artifacts}]}}"#);
    let report = read(source.as_bytes()).report;
    assert_eq!((report.findings.len(), report.unlisted), (FINDINGS_MAX, 5));
    assert!(!report.is_valid());
    assert_eq!(report.findings[9_999].pointer, "/artifacts/9999");
}

/// A golden document with a few bytes changed, removed, doubled or replaced by something nasty.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let cases: Vec<Vec<u8>> = corpus::golden().into_iter().map(|case| case.bytes).collect();
    let nasty = prop_oneof![
        Just(b"\xff".to_vec()),
        Just(b"\\ud800".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"null".to_vec()),
        Just(b"{}".to_vec()),
        Just(b"[".to_vec()),
        Just(b"-1e999".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 1..5),
    ];
    let edit = (any::<prop::sample::Index>(), 0_usize..12, nasty);
    (proptest::sample::select(cases), proptest::collection::vec(edit, 1..5)).prop_map(|(mut bytes, edits)| {
        for (place, removed, inserted) in edits {
            let start = place.index(bytes.len() + 1);
            let end = bytes.len().min(start + removed);
            bytes.splice(start..end, inserted);
        }
        bytes
    })
}

/// Checks what must hold of any report on any bytes.
fn check(bytes: &[u8]) {
    let reading = read(bytes);
    assert!(reading.document.is_none() || (reading.report.is_valid() && reading.report.kind.is_some()));
    for finding in &reading.report.findings {
        assert!(finding.span.0 <= bytes.len() && finding.line >= 1 && finding.column >= 1);
    }
    // Both parsers agree on what is JSON, except for what this one refuses on purpose.
    let is_json = serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
    let refused =
        reading.report.findings.iter().any(|finding| ["ALL-101", "ALL-102", "ALL-107"].contains(&finding.clause.id));
    let stream = reading.report.kind == Some(Kind::RunStream);
    assert!(stream || !(is_json && refused), "serde_json reads it");
    let lenient = ["ALL-104", "ALL-105", "ALL-106"];
    let accepted_more = reading.report.findings.iter().any(|finding| lenient.contains(&finding.clause.id));
    assert!(stream || is_json || refused || accepted_more, "serde_json does not read it");
    translated(bytes);
}

/// Every document that can be read is written in every contract, or refused with a reason; what is written is valid.
fn translated(bytes: &[u8]) {
    for contract in Contract::ALL {
        let translation = translate(bytes, &Options::default(), contract, &crate::translation::fresh());
        for written in translation.written.iter().flatten() {
            let options = Options { kind: Some(written.kind), extent: Extent::Part, ..Options::default() };
            let report = crosspoint_contracts::read(written.text().as_bytes(), &options).report;
            assert!(report.is_valid(), "{:?}\n{}", report.findings, written.text());
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        check(&bytes);
        clauses(&bytes);
    }

    #[test]
    fn arbitrary_text_of_json_characters(text in r#"[\[\]{}",:\\/0-9eE.+tfn u'\n-]{0,64}"#) {
        check(text.as_bytes());
    }

    #[test]
    fn mutated_golden_documents(bytes in mutated()) {
        check(&bytes);
        clauses(&bytes);
    }
}

/// The fuzz target. Here it runs for a second; CONTRIBUTING.md says how to run it for longer.
#[test]
fn fuzz() {
    bolero::check!().for_each(check);
}
