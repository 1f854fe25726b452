//! The run door: its operations, and its documents.
//!
//! The contract accepts more than is described here, and agents may add members of their own. Described are the members
//! that this door always writes, because authors of clients need to know those.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use std::borrow::Cow;

use crosspoint_contracts::run::Request;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::operation::{Make, Operation, STATE, make};
use super::table::{RUNS, key};
use super::word::{Any, RunStatusName};

const KEY: &str = "What makes a repeat the same run, in place of `request_id`, `task_type` and `stage_id`.";

pub(super) fn operations() -> Vec<Operation> {
    let location = json!({ "Location": { "description": "The path of the job.", "schema": { "type": "string" } } });
    let door = |path, id, summary| {
        let example = json!({ "request_id": "r-1", "task_type": "echo", "inputs": { "message": "hello" } });
        Operation::post(path, id, RUNS, summary)
            .header("Idempotency-Key", KEY, &key())
            .header(
                "traceparent",
                "The trace that it belongs to, as W3C Trace Context spells it.",
                &json!({ "type": "string" }),
            )
            .header("tracestate", STATE, &json!({ "type": "string" }))
            .body::<RunRequest>("What is to be run.", example)
            .refuses(&[409, 429])
            .refuses_as::<RunResponse>()
    };
    vec![
        door("/agents/run/sync", "run_sync", "Run, and wait for what comes of it")
            .describe("When it is answered, the run has ended, as `status` says; one that failed is answered with 200, too, where an agent took it. The same request again is the same run.")
            .answers_with::<RunResponse>(200, "What came of it.", location.clone())
            .refuses(&[401, 504]),
        door("/agents/run/stream", "run_stream", "Run, and follow it as server-sent events")
            .describe("`started`, `progress` as it comes, and exactly one `final`, after which the connection is closed. The same request again joins the run: `started`, the latest progress, and on.")
            .answers_events_with::<RunEvent>("How it goes, and what came of it; the schema is that of one event.", location),
    ]
}

/// What is to be run. Other members are kept with the document and handed on.
struct RunRequest;

impl JsonSchema for RunRequest {
    fn schema_name() -> Cow<'static, str> {
        "RunRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut schema = <Request<'static> as JsonSchema>::json_schema(schemas);
        // The contract leaves the length of names open; this door limits it.
        for name in ["request_id", "task_type", "stage_id"] {
            if let Some(Value::Object(member)) = schema.pointer_mut(&format!("/properties/{name}")) {
                member.insert("maxLength".to_owned(), json!(NAME_BYTES_MAX));
            }
        }
        schema
    }
}

/// What came of a run, or why there is none. Agents may add members of their own.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct RunResponse {
    /// The request's, byte for byte; where none could be read one is generated, and `warnings` says so.
    request_id: String,
    /// The request's, where it could be read.
    task_type: Option<String>,
    status: RunStatusName,
    /// Whether it worked.
    ok: bool,
    /// What came of it; empty where it failed.
    outputs: Map<String, Value>,
    /// Names of what was produced.
    artifacts: Vec<String>,
    /// Where it came from.
    provenance: Map<String, Value>,
    /// What it used.
    usage: Map<String, Value>,
    /// What the caller should know.
    warnings: Vec<Any>,
    /// What it rests on.
    grounding: Option<Map<String, Value>>,
    /// Why it failed.
    error: Option<RunError>,
}

/// Why a run failed or was refused.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct RunError {
    /// One of the twelve failures as this contract spells it, or the agent's own.
    code: String,
    /// For people.
    message: String,
    /// `repeat` says whether sending the same again is safe; of a refusal also `clause`, `at`, `hint` and up to 50
    /// `findings`.
    details: Option<Any>,
}

/// One event of a run's stream.
struct RunEvent;

impl JsonSchema for RunEvent {
    fn schema_name() -> Cow<'static, str> {
        "RunEvent".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let all: [(&str, Make); 3] = [("started", make::<RunStarted>), ("progress", make::<Any>), ("final", ending)];
        let kinds: Vec<Value> = all.into_iter().map(|(name, make)| event(name, &make(schemas))).collect();
        json_schema!({
            "description": "One event of a run's stream: its fields, of which `data` is JSON.",
            "oneOf": kinds,
        })
    }
}

/// The last event of a run's stream. It always belongs to a request whose names are known.
fn ending(schemas: &mut SchemaGenerator) -> Schema {
    json_schema!({ "allOf": [make::<RunResponse>(schemas)], "required": ["task_type"] })
}

fn event(name: &str, data: &Schema) -> Value {
    json!({
        "type": "object",
        "properties": {
            "event": { "const": name },
            "data": { "type": "string", "contentMediaType": "application/json", "contentSchema": data },
        },
        "required": ["event", "data"],
    })
}

/// The run is on disk. It comes a second time if the agent says more about its start, with members of its own.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
struct RunStarted {
    request_id: String,
    task_type: String,
}
