//! The documents that canaries are planted in: every golden and every broken document of the contracts, and those of
//! our own API, which are written here.

use std::fs;

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::program::root;

/// The names of all kinds of the contracts that have documents.
pub(crate) fn kinds() -> Vec<&'static str> {
    let has_documents = |kind: &Kind| root().join("testdata").join(kind.contract().name()).is_dir();
    Kind::ALL.into_iter().filter(has_documents).map(Kind::name).collect()
}

/// All golden documents of a kind, by the names of their files.
pub(crate) fn golden(kind: &str) -> Vec<(String, Value)> {
    let (contract, name) = kind.split_once('.').expect("a kind has a contract");
    if contract == "native" {
        return native(name).into_iter().map(|document| (kind.to_owned(), document)).collect();
    }
    let files = files(&format!("testdata/{contract}"));
    let files = files.into_iter().filter(|(file, _)| file.split('-').next() == Some(name));
    let documents: Vec<_> = files.filter_map(|(file, text)| Some((file, document(&text)?))).collect();
    assert!(!documents.is_empty(), "there is no {kind}");
    documents
}

/// The golden document of a kind that has all of its members.
pub(crate) fn full(kind: &str) -> Value {
    let mut documents = golden(kind);
    let full = documents.iter().position(|(file, _)| file.contains("-full.")).unwrap_or(0);
    documents.swap_remove(full).1
}

/// All broken documents of a contract: the names of their files, and their texts.
pub(crate) fn broken(contract: &str) -> Vec<(String, String)> {
    let files: Vec<_> = files(&format!("testdata/broken/{contract}"));
    assert!(files.len() > 20, "there are no broken documents of {contract}");
    files
}

fn files(directory: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join(directory)).expect("it is there");
    let mut files: Vec<(String, String)> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json" || end == "sse"))
        .map(|path| {
            let text = fs::read(&path).expect("it can be read");
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name, String::from_utf8_lossy(&text).into_owned())
        })
        .collect();
    files.sort();
    files
}

/// A text as a document: the object that it is, or the list of events of a stream.
pub(crate) fn document(text: &str) -> Option<Value> {
    if let Ok(document) = serde_json::from_str(text) {
        return Some(document);
    }
    let events = text.split("\n\n").filter(|block| block.lines().any(|line| line.starts_with("event:")));
    let events: Option<Vec<Value>> = events.map(event).collect();
    events.filter(|events| !events.is_empty()).map(Value::Array)
}

fn event(block: &str) -> Option<Value> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
    };
    let data: Value = serde_json::from_str(&field("data:")).ok()?;
    Some(json!({"event": field("event:"), "data": data}))
}

/// A list of events as a stream.
pub(crate) fn stream(events: &Value) -> String {
    let line = |event: &Value| {
        let name = event["event"].as_str().map_or_else(|| event["event"].to_string(), str::to_owned);
        format!("event: {name}\ndata: {}\n\n", event["data"])
    };
    events.as_array().map_or_else(|| events.to_string(), |events| events.iter().map(line).collect())
}

/// Documents of our own API.
fn native(name: &str) -> Vec<Value> {
    let artifact = json!({"name": "notes.md", "type": "text/markdown", "content": "# Notes"});
    let report = |said: Value| {
        let mut report = json!({"id": "01a1e2d0-641e-7000-8000-0005a7fde28e", "attempt": 1});
        report.as_object_mut().expect("an object").extend(said.as_object().cloned().unwrap_or_default());
        report
    };
    match name {
        "job" => vec![json!({
            "work": "echo", "request_id": "r-1", "priority": "high", "limits": {"seconds": 60, "attempts": 1},
            "input": {"text": "hello", "number": 7, "list": ["a", {"b": "c"}], "message": "why", "prompt": "Which?"},
        })],
        "answer" => vec![json!({"input": {"text": "yes", "number": 7}}), json!({"input": "yes"})],
        "registration" => vec![json!({
            "agent_id": "digger", "agent_type": "code", "supported_versions": ["1.0"], "work_types": ["dig"],
            "resources": {"gpu_vram_mb": 512}, "description": "digs",
        })],
        "join" => vec![json!({
            "session": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "work": ["pulled"], "concurrency": 4, "note": "hello",
        })],
        "report" => vec![
            report(json!({"progress": {"percent": 40, "step": "Digging"}})),
            report(json!({"n": 1, "ask": {"prompt": "Where?", "schema": {"title": "Place"}}})),
            report(json!({"violation": "It did not say where."})),
            report(json!({"result": {"outputs": {"text": "done", "number": 7}, "artifacts": [artifact]}})),
            report(json!({"failure": {"code": "agent_failed", "message": "no", "details": {"text": "why"}}})),
        ],
        "token" => vec![json!({"name": "planned", "for": "caller", "expires_seconds": 3_600})],
        other => panic!("there is no native.{other}"),
    }
}
