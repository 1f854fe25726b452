//! JSON Schemas (2020-12) of all kinds, made from the types.
//!
//! A schema accepts what reading accepts without an error, looseness included, as far as JSON Schema can say it: that a
//! day exists, that two paths differ or that a chunk is as long as it says, it cannot.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::kind::Kind;
use crate::message::{ErrorReport, Message, WorkRequest, WorkResult, WorkStatus};
use crate::{bridge, run, task, workflow};

/// The schema of one kind.
pub fn of(kind: Kind) -> Value {
    let schema = match kind {
        Kind::BridgeRequest => generate::<bridge::Request<'_>>(),
        Kind::BridgeResponse => generate::<bridge::Response<'_>>(),
        Kind::WorkflowInput => generate::<workflow::Input<'_>>(),
        Kind::WorkflowOutput => generate::<workflow::Output<'_>>(),
        Kind::WorkRequest => generate::<Message<'_, WorkRequest<'_>>>(),
        Kind::WorkStatus => generate::<Message<'_, WorkStatus<'_>>>(),
        Kind::WorkResult => generate::<Message<'_, WorkResult<'_>>>(),
        Kind::MessageError => generate::<Message<'_, ErrorReport<'_>>>(),
        Kind::TaskRequest => generate::<task::Request<'_>>(),
        Kind::TaskResponse => generate::<task::Response<'_>>(),
        Kind::RunRequest => generate::<run::Request<'_>>(),
        Kind::RunResponse => generate::<run::Response<'_>>(),
        Kind::RunStream => stream(generate::<run::Response<'_>>()),
    };
    finish(kind, schema)
}

/// The schema as it is printed and kept in `schemas/`.
pub fn text(kind: Kind) -> String {
    format!("{:#}\n", of(kind))
}

fn generate<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    let mut plain = Plain;
    schemars::transform::Transform::transform(&mut plain, &mut schema);
    schema.to_value()
}

fn finish(kind: Kind, mut schema: Value) -> Value {
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), json!(kind.name()));
        root.insert("$id".to_owned(), json!(format!("urn:crosspoint:schema:{}", kind.name())));
        if let Some(word) = kind.name().strip_prefix("message.") {
            root.insert("allOf".to_owned(), json!([{ "properties": { "type": { "const": word } } }]));
        }
    }
    schema
}

/// A stream as an array of its events; its framing is not JSON.
fn stream(mut response: Value) -> Value {
    if let Some(root) = response.as_object_mut() {
        for member in ["$schema", "title"] {
            root.remove(member);
        }
    }
    let named = |names: &[&str]| json!({ "properties": { "event": { "enum": names } }, "required": ["event"] });
    let terminal = named(&["final", "complete", "done"]);
    let task_type = json!({ "type": "string", "minLength": 1 });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "The events of a run, each with its name and its data; the framing is that of server-sent events.",
        "type": "array",
        "minItems": 1,
        "prefixItems": [named(&["started"])],
        "contains": terminal,
        "minContains": 1,
        "maxContains": 1,
        "items": {},
        "allOf": [{ "items": {
            "type": "object",
            "required": ["event", "data"],
            "properties": { "event": { "type": "string" } },
            "allOf": [
                { "if": terminal, "then": { "properties": { "data": {
                    "allOf": [response, { "required": ["task_type", "status"], "properties": { "task_type": task_type } }]
                } } } }
            ]
        } }]
    })
}

/// Undoes two habits of the generator: an optional member is not therefore nullable (what may be null is in a type
/// of its own), and the widths of Rust's numbers are nobody's concern.
struct Plain;

impl schemars::transform::Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            let rust_width = object.get("format").and_then(Value::as_str).is_some_and(|format| format != "uuid");
            if rust_width {
                object.remove("format");
            }
            if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
                for property in properties.values_mut().filter_map(Value::as_object_mut) {
                    drop_null(property);
                }
            }
        }
        schemars::transform::transform_subschemas(self, schema);
    }
}

/// Takes away the null that `Option` brought along. What is really nullable marks itself.
fn drop_null(property: &mut Map<String, Value>) {
    if property.remove("nullable").is_some() {
        return;
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    let null = json!({ "type": "null" });
    let alternatives = property.get_mut("anyOf").and_then(Value::as_array_mut);
    let Some(alternatives) = alternatives.filter(|all| all.contains(&null)) else { return };
    alternatives.retain(|alternative| *alternative != null);
    if let [Value::Object(only)] = alternatives.as_slice() {
        let mut only = only.clone();
        only.remove("nullable");
        property.remove("anyOf");
        for (key, value) in only {
            property.entry(key).or_insert(value);
        }
    }
}
