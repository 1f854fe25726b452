//! The workflow door: its operation, and its envelopes.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use std::borrow::Cow;

use crosspoint_contracts::workflow::Input;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::operation::{Operation, STATE, TRACE};
use super::table::{ENVELOPES, key};
use super::word::Any;

const KEY: &str = "What makes a repeat the same work. Without it every envelope is work of its own.";

pub(super) fn operations() -> Vec<Operation> {
    let location = json!({ "Location": { "description": "The path of the job.", "schema": { "type": "string" } } });
    let example = json!({
        "context": { "feature_id": "005-user-auth", "workflow": "specify", "iteration": 1 },
        "paths": { "spec": "specs/005-user-auth/spec.md" },
        "task": { "action": "echo", "params": {} },
        "prior_context": ["Spec complete"],
    });
    let operation = Operation::post(
        "/agents/{name}/envelope",
        "run_envelope",
        ENVELOPES,
        "Give an envelope to an agent, and wait for its output",
    )
    .describe("`task.action` is one of the agent's works. When it is answered, the work has ended, as `success` says. What it recommends is not followed, and its artifacts are written nowhere.")
    .path("name", "The agent.", &json!({ "type": "string" }))
    .header("Idempotency-Key", KEY, &key())
    .header("traceparent", TRACE, &json!({ "type": "string" }))
    .header("tracestate", STATE, &json!({ "type": "string" }))
    .body::<WorkflowInput>("What is to be done.", example)
    .answers_with::<WorkflowOutput>(200, "What came of it.", location)
    .refuses(&[401, 404, 409, 429, 504])
    .refuses_as::<WorkflowOutput>();
    vec![operation]
}

/// What is to be done. Other members are kept with the document and handed on.
struct WorkflowInput;

impl JsonSchema for WorkflowInput {
    fn schema_name() -> Cow<'static, str> {
        "WorkflowInput".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut schema = <Input<'static> as JsonSchema>::json_schema(schemas);
        // The contract leaves the length of names open; this door limits it.
        if let Some(Value::Object(action)) = schema.pointer_mut("/properties/task/properties/action") {
            action.insert("maxLength".to_owned(), json!(NAME_BYTES_MAX));
        }
        schema
    }
}

/// What came of it, or why it was refused. Agents may add members of their own.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct WorkflowOutput {
    /// Whether it worked.
    success: bool,
    /// What happened, in one sentence.
    summary: String,
    /// Files that the agent would have written.
    artifacts: Vec<Any>,
    /// What the next agent should know.
    notes: Option<Vec<String>>,
    /// `proceed`, `retry` or `escalate`.
    recommendation: String,
}
