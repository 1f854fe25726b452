//! The bridge door: its operations, and its documents.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use std::borrow::Cow;

use crosspoint_contracts::bridge::{Request, Response, Status};
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::operation::{Operation, STATE};
use super::shape::Job;
use super::table::{BRIDGE, Facts, key, seconds};
use super::word::RepeatName;

const KEY: &str = "What makes a repeat the same request, in place of `request_id`.";
const WAIT: &str = "Wait for the response up to so many seconds.";
const WORK: &str = "The work that is meant, whatever the request calls the agent.";

pub(super) fn operations(facts: &Facts) -> Vec<Operation> {
    vec![show(), ask(facts)].into_iter().map(Operation::refuses_as::<BridgeRefusal>).collect()
}

fn show() -> Operation {
    Operation::get("/api/v1/bridge", "show_bridge", BRIDGE, "Say which store requests are kept in")
        .describe(
            "A driver of requesters remembers it with each request, and leaves alone what belongs to another server.",
        )
        .answers::<Bridge>(200, "The store.")
}

/// Where requests are kept.
#[derive(JsonSchema)]
struct Bridge {
    /// The same over restarts, and another for every store: 16 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{16}$"))]
    store: String,
}

fn ask(facts: &Facts) -> Operation {
    let example = json!({
        "request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "phase": 6, "phase_name": "agent_generation",
        "agent_name": "echo", "prompt": "hello", "timeout_seconds": 120, "created_at": "2025-11-24T14:22:45+00:00", "context": {},
    });
    let location = json!({ "Location": { "description": "The path of the job.", "schema": { "type": "string" } } });
    let name = json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX });
    Operation::post("/api/v1/bridge", "ask_agent", BRIDGE, "Have a request answered by an agent")
        .describe("What `crosspoint bridge` does with a request that it finds. When it is answered, the job is on disk; the same request again joins it. `agent_name` is that of a work, else that of an agent. Work that failed is answered with 200, too.")
        .query("wait", WAIT, &seconds(facts))
        .query("work", WORK, &name)
        .header("Idempotency-Key", KEY, &key())
        .header("traceparent", "The trace that it belongs to, as W3C Trace Context spells it.", &json!({ "type": "string" }))
        .header("tracestate", STATE, &json!({ "type": "string" }))
        .body::<BridgeRequest>("A bridge.request.", example)
        .answers_with::<BridgeResponse>(200, "The response, which belongs into the other file.", location.clone())
        .answers_with::<Job>(202, "There is none yet: the job as it is, with its question where a person is asked.", location)
        .refuses(&[409, 429])
}

/// What a program asks of an agent. Other members are kept with the document and handed on.
struct BridgeRequest;

impl JsonSchema for BridgeRequest {
    fn schema_name() -> Cow<'static, str> {
        "BridgeRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut schema = <Request<'static> as JsonSchema>::json_schema(schemas);
        // The contract leaves the length of names open; this door limits it.
        for name in ["request_id", "agent_name"] {
            if let Some(member) = schema.pointer_mut(&format!("/properties/{name}")) {
                let limits = json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX });
                *member = json!({ "allOf": [member.clone(), limits] });
            }
        }
        schema
    }
}

/// What an agent answered: nine members and no other (BRIDGE-1).
struct BridgeResponse;

impl JsonSchema for BridgeResponse {
    fn schema_name() -> Cow<'static, str> {
        "BridgeResponse".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        <Response<'static> as JsonSchema>::json_schema(schemas)
    }
}

/// Why a request was refused.
struct BridgeRefusal;

impl JsonSchema for BridgeRefusal {
    fn schema_name() -> Cow<'static, str> {
        "BridgeRefusal".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let details = json!({
            "description": "Also `hint`, and where they are known `clause`, `at` and up to 50 `findings`.",
            "type": "object",
            "properties": { "repeat": schemas.subschema_for::<RepeatName>() },
            "required": ["repeat"],
            "additionalProperties": true,
        });
        let carried = |member: Value| json!({ "properties": member, "additionalProperties": true });
        let metadata = carried(json!({ "x_crosspoint": carried(json!({ "details": details })) }));
        json_schema!({
            "description": "Why a request was refused, as a response that is an error. Where no `request_id` could be read, one is generated, and \
                `metadata.x_crosspoint.warnings` says so.",
            "allOf": [schemas.subschema_for::<BridgeResponse>()],
            "properties": {
                "status": { "enum": [Status::Error.word(), Status::Timeout.word()] },
                "metadata": metadata,
            },
            "required": ["status", "metadata"],
        })
    }
}
