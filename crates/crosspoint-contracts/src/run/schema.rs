//! The schema of a stream.

use serde_json::{Value, json};

use super::wire::Response;
use crate::schema;

/// Returns the schema of a stream as an array of its events. Its framing is not JSON.
pub(super) fn stream() -> Value {
    let mut response = schema::generate::<Response<'_>>();
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
