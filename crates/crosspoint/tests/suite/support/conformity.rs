//! Every answer that any test gets is checked against the description of the API, by an independent validator.
//!
//! Bodies are written by hand, and the types that describe them are never constructed, so only this check keeps the two
//! together. The description allows members that it does not name, because more may come. This check does not allow
//! them, so that none comes without being described.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::support::program::root;
use crate::support::server::Answer;

/// The stored description. Another test compares it with that of a server.
pub(crate) const KEPT: &str = "docs/openapi.json";

/// Checks an answer against its description.
pub(crate) fn check(method: &str, target: &str, answer: &Answer) {
    if method == "HEAD" {
        return;
    }
    let path = target.split('?').next().unwrap_or_default();
    let about = || format!("{method} {path} answered {answer:?}\nand {KEPT} says otherwise: ");
    let Some(operation) = operation(method, path) else {
        // A path without a description does not exist. A caller without permission is not even told that.
        assert!([403, 404, 405].contains(&answer.status), "{}it is not described", about());
        return conforms(&refusal_at(path), &answer.json(), &about);
    };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{}not with this status", about());
    if response.get("content").is_none() {
        assert!(answer.body.is_empty(), "{}it has no body", about());
        return;
    }
    let kind = answer.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
    let content = &response["content"][kind];
    assert!(content.is_object(), "{}not as {kind:?}", about());
    match kind {
        "application/json" => conforms(&content["schema"], &answer.json(), &about),
        "text/event-stream" => events(&content["schema"], &answer.text(), &about),
        // What was printed, which may be anything.
        "application/octet-stream" => {}
        _ => assert!(std::str::from_utf8(&answer.body).is_ok(), "{}it is text", about()),
    }
}

pub(crate) fn kept() -> &'static Value {
    static KEPT_VALUE: OnceLock<Value> = OnceLock::new();
    KEPT_VALUE.get_or_init(|| {
        let text = fs::read(root().join(KEPT)).unwrap_or_else(|error| panic!("{KEPT}: {error}"));
        serde_json::from_slice(&text).expect("it is JSON")
    })
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let paths = kept()["paths"].as_object().expect("there are paths");
    let (_, operations) = paths.iter().find(|(template, _)| fits(template, path))?;
    operations.get(method.to_ascii_lowercase())
}

fn fits(template: &str, path: &str) -> bool {
    let (wanted, given): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    let fit =
        |(wanted, given): (&&str, &&str)| if wanted.starts_with('{') { !given.is_empty() } else { wanted == given };
    wanted.len() == given.len() && wanted.iter().zip(&given).all(fit)
}

fn conforms(schema: &Value, instance: &Value, about: &dyn Fn() -> String) {
    let errors: Vec<String> =
        validator(schema).iter_errors(instance).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}{errors:#?}", about());
}

/// The schema of refusals for undescribed requests at this path: the one described at its door, or else at that path.
fn refusal_at(path: &str) -> Value {
    let paths = kept()["paths"].as_object().expect("there are paths");
    let is_under = |door: &&str| path.strip_prefix(door).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_door = |template: &str| template.starts_with("/agents/{") && fits(template, path);
    if let Some((_, operations)) = paths.iter().find(|(template, _)| is_door(template)) {
        return operations["post"]["responses"]["500"]["content"]["application/json"]["schema"].clone();
    }
    let door = ["/tasks", "/agents/run", "/api/agent", "/api/v1/bridge"].into_iter().find(is_under);
    let is_like = |template: &str| door.map_or_else(|| fits(template, path), |door| template.starts_with(door));
    let there = paths.iter().find(|(template, _)| is_like(template)).map(|(_, operations)| operations);
    let described = there.and_then(|operations| operations.as_object()?.values().next());
    let shape = described.map(|operation| &operation["responses"]["500"]["content"]["application/json"]["schema"]);
    shape.cloned().unwrap_or_else(|| json!({ "$ref": "#/components/schemas/Refusal" }))
}

/// Checks a stream: each event is of a described kind, and its data matches that description.
fn events(schema: &Value, stream: &str, about: &dyn Fn() -> String) {
    let place = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#')).expect("the schema has a name");
    let kinds = kept().pointer(place).and_then(|schema| schema["oneOf"].as_array()).expect("there are events");
    for event in stream.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':')) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
        let name = field("event:");
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
        let kind = kinds.iter().find(|kind| kind["properties"]["event"]["const"].as_str() == name);
        let kind = kind.unwrap_or_else(|| panic!("{}no event {name:?}", about()));
        let numbered = kind["properties"]["id"].is_object();
        assert_eq!(field("id:").is_some_and(|id| id.parse::<u32>().is_ok()), numbered, "{}its id is a number", about());
        let data: Value = serde_json::from_str(&data).expect("the data of an event is JSON");
        conforms(&kind["properties"]["data"]["contentSchema"], &data, about);
    }
}

/// A validator for a schema of the description. Each is made once.
fn validator(schema: &Value) -> Arc<Validator> {
    static MADE: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || {
        let mut whole = schema.clone();
        let mut schemas = kept()["components"]["schemas"].clone();
        tighten(&mut schemas);
        whole["components"] = json!({ "schemas": schemas });
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
        Arc::new(options.should_validate_formats(true).build(&whole).expect("it is a schema"))
    };
    made.entry(schema.to_string()).or_insert_with(make).clone()
}

/// Forbids unnamed members wherever the schema says nothing about them.
fn tighten(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("properties").is_some_and(Value::is_object) && is_object(object) {
                object.entry("additionalProperties").or_insert(json!(false));
            }
            object.values_mut().for_each(tighten);
        }
        Value::Array(items) => items.iter_mut().for_each(tighten),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

#[test]
fn an_answer_that_is_not_as_described_is_noticed() {
    let answer = |status, body: Value| Answer {
        status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.to_string().into_bytes(),
    };
    check("GET", "/health?x", &answer(200, json!({ "status": "ok", "version": "0" })));
    let wrong = [
        ("GET", answer(200, json!({ "status": "ok" }))),
        ("GET", answer(200, json!({ "status": 1, "version": "0" }))),
        ("GET", answer(200, json!({ "status": "ok", "version": "0", "more": 1 }))),
        ("GET", answer(201, json!({ "status": "ok", "version": "0" }))),
        ("POST", answer(200, json!({ "status": "ok", "version": "0" }))),
        ("GET", answer(408, json!({ "error": "late" }))),
    ];
    for (method, answer) in wrong {
        let noticed = std::panic::catch_unwind(|| check(method, "/health", &answer));
        assert!(noticed.is_err(), "{answer:?}");
    }
    let nothing = |body: &str| Answer { status: 204, headers: Vec::new(), body: body.as_bytes().to_vec() };
    check("POST", "/api/agent/message", &nothing(""));
    let noticed = std::panic::catch_unwind(|| check("POST", "/api/agent/message", &nothing("{}")));
    assert!(noticed.is_err(), "an answer without content has none");
}
