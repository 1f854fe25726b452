//! The schemas under `schemas/`, judged by an independent validator.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crosspoint_contracts::clause::{self, Level};
use crosspoint_contracts::sse::{Limits, Reader};
use crosspoint_contracts::{Kind, schema};
use serde_json::{Value, json};

use crate::changes;
use crate::corpus::{self, Case};

fn schemas_directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

#[test]
fn the_files_are_fresh() {
    for kind in Kind::ALL {
        let path = schemas_directory().join(format!("{}.json", kind.name()));
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == schema::text(kind), "{} is stale: run scripts/generate", path.display());
    }
    let files = fs::read_dir(schemas_directory()).expect("the directory can be listed").count();
    assert_eq!(files, Kind::ALL.len());
}

fn validators() -> BTreeMap<Kind, jsonschema::Validator> {
    let compile = |kind: Kind| {
        let path = schemas_directory().join(format!("{}.json", kind.name()));
        let schema: Value = serde_json::from_slice(&fs::read(path).expect("the schema is there")).expect("it is JSON");
        jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|error| panic!("{kind}: {error}"));
        jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{kind}: {error}"))
    };
    Kind::ALL.into_iter().map(|kind| (kind, compile(kind))).collect()
}

/// The document as JSON: a stream as the array of its events.
fn instance(case: &Case, kind: Kind) -> Option<Value> {
    if kind != Kind::RunStream {
        let bytes = case.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&case.bytes);
        return serde_json::from_slice(bytes).ok();
    }
    let mut events = Vec::new();
    let mut reader = Reader::new(Limits::default());
    reader.push(&case.bytes, &mut events).and_then(|()| reader.finish(&mut events)).expect("within limits");
    let mut values = Vec::new();
    for event in events {
        let mut value = json!({});
        if let Some(data) = event.data {
            value["data"] = serde_json::from_slice(&data).ok()?;
        }
        let inside = ["event", "type"].iter().find_map(|name| value["data"][name].as_str().map(str::to_owned));
        if let Some(name) = event.name.or(inside) {
            value["event"] = json!(name);
        }
        values.push(value);
    }
    Some(Value::Array(values))
}

#[test]
fn an_independent_validator_accepts_every_golden_document() {
    let validators = validators();
    for case in corpus::golden() {
        let kind = case.kind();
        let instance = instance(&case, kind).expect("golden documents are JSON");
        let errors: Vec<String> = validators[&kind].iter_errors(&instance).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{}", case.path.display());
    }
}

/// Warnings about documents that a schema refuses: schemas say what to write, and readers bear more (ALL-11).
const TOLERATED: &[&str] = &["ALL-11", "ALL-105", "MSG-3.6", "MSG-4.2", "RUN-3.12"];

#[test]
fn an_independent_validator_refuses_what_a_schema_can_express() {
    let validators = validators();
    let beyond = corpus::beyond_schemas();
    let levels: BTreeMap<&str, Level> = clause::every().map(|clause| (clause.id, clause.level)).collect();
    for case in corpus::broken() {
        let id = case.clause();
        let excused = beyond.iter().any(|(excused, _)| *excused == id || *excused == case.stem());
        let kind = case.read().report.kind.unwrap_or(Kind::BridgeRequest);
        let accepted = instance(&case, kind).is_some_and(|instance| validators[&kind].is_valid(&instance));
        match levels[id.as_str()] {
            Level::Warning if TOLERATED.contains(&id.as_str()) => {}
            Level::Warning => assert!(accepted, "{} is only loose, and its schema refuses it", case.path.display()),
            Level::Error if excused => {}
            Level::Error => assert!(!accepted, "{} is accepted by its schema", case.path.display()),
        }
    }
}

/// An exception that is no longer needed would hide a schema that got worse.
#[test]
fn excuses_are_still_needed() {
    let validators = validators();
    for (id, reason) in corpus::beyond_schemas() {
        let concerns = |case: &Case| case.clause() == id || case.stem() == id;
        let accepted = corpus::broken().iter().filter(|case| concerns(case)).any(|case| {
            let kind = case.read().report.kind.unwrap_or(Kind::BridgeRequest);
            instance(case, kind).is_none_or(|instance| validators[&kind].is_valid(&instance))
        });
        assert!(accepted, "{id} ({reason}) is refused by its schema now");
    }
}

/// Reader and schema describe the same thing: they agree on every golden document with one value replaced.
#[test]
fn reader_and_schema_agree_on_documents_with_one_value_exchanged() {
    let validators = validators();
    let excuses = corpus::beyond_schemas();
    let beyond = |id: &str| excuses.iter().any(|(excused, _)| *excused == id);
    let mut compared = 0;
    for case in corpus::golden().into_iter().filter(|case| case.kind() != Kind::RunStream) {
        let kind = case.kind();
        let document: Value = serde_json::from_slice(&case.bytes).expect("golden documents are JSON");
        for (_, changed) in changes::all(&document) {
            let text = changed.to_string();
            let options = crosspoint_contracts::Options { kind: Some(kind), ..Default::default() };
            let report = crosspoint_contracts::read(text.as_bytes(), &options).report;
            let errors: Vec<&str> = (report.findings.iter())
                .filter(|finding| finding.clause.level == Level::Error || TOLERATED.contains(&finding.clause.id))
                .filter(|finding| finding.clause.id != "ALL-105")
                .map(|finding| finding.clause.id)
                .collect();
            let accepted = validators[&kind].is_valid(&changed);
            // The later dialect of the message contract has codes of its own, and may have no context (MSG-16).
            let is_own_code = |finding: &crosspoint_contracts::Finding| {
                finding.clause.id == "MSG-16"
                    && ["/payload/error_code", "/payload/context"].contains(&&*finding.pointer)
            };
            let excused = (!errors.is_empty() && errors.iter().all(|id| beyond(id)))
                || (errors.is_empty() && report.findings.iter().any(is_own_code));
            assert!(accepted == errors.is_empty() || excused, "{kind}: reader {errors:?}, schema {accepted}: {text}");
            compared += 1;
        }
    }
    assert!(compared > 10_000, "only {compared} documents were compared");
}
