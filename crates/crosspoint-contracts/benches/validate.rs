//! The cost of validation compared with mere parsing, as ratios of one run.
//!
//! `cargo bench` prints a table. Each figure is the median of rounds in which the two sides alternate, so that a busy
//! machine slows both alike. No test depends on these figures.

mod compare;

use std::hint::black_box;

use compare::{compare, print, row};
use crosspoint_contracts::{Inner, Kind, Options};
use serde::Deserialize;

/// The response of bridge.md as a borrowing struct, as a careful Rust program would declare it.
#[derive(Deserialize)]
#[allow(dead_code, reason = "parsed, not looked at")]
struct BorrowedResponse<'s> {
    request_id: &'s str,
    version: &'s str,
    status: &'s str,
    // Borrows if there are no escapes. serde borrows a `Cow` only if it is the field itself.
    #[serde(borrow)]
    response: std::borrow::Cow<'s, str>,
    error_message: Option<&'s str>,
    error_type: Option<&'s str>,
    created_at: &'s str,
    duration_seconds: f64,
    #[serde(borrow)]
    metadata: &'s serde_json::value::RawValue,
}

fn main() {
    if let Some(path) = std::env::args().nth(1).filter(|argument| argument.ends_with(".json")) {
        return print_peak_of_validating(&path);
    }
    print("| what | validating | parsing | ratio | target |");
    print("|---|---|---|---|---|");
    work_request();
    large_response("plain", "some inner text, ");
    large_response("escaped", r#"{\"k\": \"some inner text\"}, "#);
    peak_memory();
}

fn work_request() {
    let bytes = include_bytes!("../../../testdata/message/work_request-printed.json");
    let validate = |options: &Options<'_>| {
        let reading = crosspoint_contracts::read(black_box(bytes), options);
        assert!(black_box(reading).document.is_some());
    };
    let parse = || {
        black_box(serde_json::from_slice::<serde_json::Value>(black_box(bytes)).expect("it is JSON"));
    };
    const CALLS: u32 = 2_000;
    let given = Options { kind: Some(Kind::WorkRequest), ..Options::default() };
    let (ours, theirs) = compare(CALLS, || validate(&Options::default()), parse);
    row("work_request, kind detected, against Value", ours, theirs, "at most 1.5");
    let (ours, theirs) = compare(CALLS, || validate(&given), parse);
    row("work_request, kind given, against Value", ours, theirs, "at most 1.5");
}

fn large_document(inner: &str) -> String {
    const BYTES: usize = 50_000_000;
    let text = inner.repeat(BYTES / inner.len());
    format!(
        r#"{{"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "status": "success", "response": "{text}",
"error_message": null, "error_type": null, "created_at": "2025-11-24T14:22:45+00:00", "duration_seconds": 1.0, "metadata": {{}}}}"#
    )
}

fn large_response(name: &str, inner: &str) {
    let document = large_document(inner);
    let bytes = document.as_bytes();
    let validate = || {
        let reading =
            crosspoint_contracts::read(black_box(bytes), &Options { inner: Inner::Any, ..Options::default() });
        assert!(black_box(reading).document.is_some());
    };
    let parse = || {
        black_box(serde_json::from_slice::<BorrowedResponse<'_>>(black_box(bytes)).expect("it is a response"));
    };
    let (ours, theirs) = compare(1, validate, parse);
    row(&format!("50 MB response, {name} text, against a borrowing struct"), ours, theirs, "at most 1.5");
}

/// Runs this program again on a large file and prints how much memory that took.
fn peak_memory() {
    let path = std::env::temp_dir().join(format!("crosspoint-bench-{}.json", std::process::id()));
    let document = large_document(r#"{\"k\": \"some inner text\"}, "#);
    std::fs::write(&path, &document).expect("the temporary directory can be written");
    let program = std::env::current_exe().expect("the program knows its place");
    let output = std::process::Command::new(program).arg(&path).output();
    std::fs::remove_file(&path).expect("the file can be removed");
    let peak = String::from_utf8(output.expect("the program starts").stdout).expect("it prints a number");
    let Ok(peak_bytes) = peak.trim().parse::<f64>() else { return };
    let ratio = peak_bytes / document.len() as f64;
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let file = megabytes(document.len() as f64);
    print(&format!(
        "| 50 MB response, peak memory against the file | {} | {file} | {ratio:.2} | under 2 |",
        megabytes(peak_bytes)
    ));
}

fn print_peak_of_validating(path: &str) {
    let bytes = std::fs::read(path).expect("the file can be read");
    assert!(crosspoint_contracts::read(&bytes, &Options::default()).report.is_valid());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    if let Some(kilobytes) = peak.and_then(|peak| peak.trim().parse::<u64>().ok()) {
        print(&(kilobytes * 1024).to_string());
    }
}
