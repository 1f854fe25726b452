//! The message contract: its operations, and its documents, which are those of the contract.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use std::borrow::Cow;

use crosspoint_contracts::message::{ErrorReport, Message, WorkRequest, WorkResult, WorkStatus};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::open::open;
use super::operation::{Operation, STATE, TRACE};
use super::table::{Facts, MESSAGES, key, seconds, text};
use crate::server::access::Needs;

open! {
    /// `message.work_request`
    WorkRequestMessage: Message<'static, WorkRequest<'static>>;
    /// `message.work_status`
    WorkStatusMessage: Message<'static, WorkStatus<'static>>;
    /// `message.work_result`
    WorkResultMessage: Message<'static, WorkResult<'static>>;
    /// `message.error`
    ErrorMessage: Message<'static, ErrorReport<'static>>;
}

/// Any message that is sent here.
struct AnyMessage;

impl JsonSchema for AnyMessage {
    fn schema_name() -> Cow<'static, str> {
        "AnyMessage".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A message. Its `type` says which.",
            "anyOf": [
                schemas.subschema_for::<WorkRequestMessage>(),
                schemas.subschema_for::<WorkStatusMessage>(),
                schemas.subschema_for::<WorkResultMessage>(),
                schemas.subschema_for::<ErrorMessage>(),
            ],
        })
    }
}

/// How work ended, or how its cancelling did.
struct EndedMessage;

impl JsonSchema for EndedMessage {
    fn schema_name() -> Cow<'static, str> {
        "EndedMessage".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A message that says how work ended.",
            "anyOf": [schemas.subschema_for::<WorkResultMessage>(), schemas.subschema_for::<ErrorMessage>()],
        })
    }
}

/// What an agent says of itself when it registers.
#[derive(JsonSchema)]
struct NewRegistration {
    /// The agent. Polls and heartbeats name it.
    #[schemars(length(min = 1, max = 200))]
    agent_id: String,
    /// Its type: one of the contract's, or one that is configured. Of work it gets what is addressed to this type.
    #[schemars(length(min = 1), extend("examples" = ["infra", "desktop", "code", "research"]))]
    agent_type: String,
    /// The versions of the protocol that it speaks. The lowest that this server speaks, too, is picked.
    #[schemars(length(min = 1, max = 1000), extend("contains" = { "const": "1.0" }))]
    supported_versions: Vec<String>,
    /// The works that it takes.
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 512)))]
    work_types: Vec<String>,
    /// Where messages are pushed to. Without it the agent pulls them.
    base_url: Option<String>,
    /// Most jobs that it has at a time.
    #[schemars(range(min = 1, max = 1000))]
    concurrency: Option<u32>,
}

/// What an agent is told when it has registered.
#[derive(JsonSchema)]
struct RegistrationTaken {
    /// The agent.
    agent_id: String,
    /// The lowest version that both sides speak. All messages use it.
    protocol_version: String,
    /// How often to send a heartbeat.
    heartbeat_seconds: u32,
}

/// The messages for an agent or a caller.
#[derive(JsonSchema)]
struct MessagePage {
    /// Whole messages, the oldest first.
    messages: Vec<AnyMessage>,
}

const KEY: &str = "What makes a repeat the same work, in place of `request_id`.";
const WAIT: &str = "Wait for the outcome up to so many seconds. Only for a work_request.";

/// Returns every operation of this contract.
pub(super) fn operations(facts: &Facts) -> Vec<Operation> {
    let all = vec![take(facts), register(), pull(facts)];
    all.into_iter().map(|operation| operation.needs(Needs::Sender).refuses_as::<ErrorMessage>()).collect()
}

fn take(facts: &Facts) -> Operation {
    Operation::post("/api/agent/message", "take_message", MESSAGES, "Send a message")
        .describe("A work_request becomes a job; sent again with the same `request_id` it is the same job. Agents send work_status, work_result and error about their work, and heartbeats. An error 5901 of a caller cancels its work. What is acknowledged is on disk.")
        .query("wait", WAIT, &seconds(facts))
        .header("Idempotency-Key", KEY, &key())
        .header("traceparent", TRACE, &json!({ "type": "string" }))
        .header("tracestate", STATE, &json!({ "type": "string" }))
        .body::<AnyMessage>("A message.", example())
        .answers_with::<EndedMessage>(200, "How the work ended, or that it is over.", location())
        .answers_with::<WorkStatusMessage>(202, "The work is on disk, and goes on.", location())
        .answers_nothing(204, "What an agent said is on disk.")
        .refuses(&[404, 409, 429])
}

fn register() -> Operation {
    let example = json!({
        "agent_id": "infra-1", "agent_type": "infra", "supported_versions": ["1.0"], "work_types": ["run_playbook"],
    });
    Operation::post("/api/agent/register", "register_agent", MESSAGES, "Register an agent")
        .describe(
            "Safe to repeat. The agent stays known over restarts of both sides; while it is away, its work waits.",
        )
        .body::<NewRegistration>("What the agent is.", example)
        .answers::<RegistrationTaken>(200, "The agent is known.")
        .refuses(&[409, 429])
}

fn pull(facts: &Facts) -> Operation {
    let max = json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 1 });
    Operation::get("/api/agent/messages", "pull_messages", MESSAGES, "Pull messages")
        .describe("For agents that have no address, and for callers without a callback. What is not acknowledged, by `ack` or by a reply, comes again after 30 s.")
        .query_required("agent", "The name of the agent, or of the caller.", &text())
        .query("wait", "Wait for a message up to so many seconds.", &seconds(facts))
        .query("max", "How many messages at most.", &max)
        .query("ack", "Ids of messages that have arrived, separated by commas.", &text())
        .answers::<MessagePage>(200, "The messages; none if the wait is over.")
        .refuses(&[400, 404])
}

fn location() -> Value {
    json!({ "Location": { "description": "The path of the job.", "schema": { "type": "string" } } })
}

fn example() -> Value {
    json!({
        "protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001", "from_agent": "orchestrator",
        "to_agent": "infra", "timestamp": "2026-01-19T04:21:04Z", "trace_id": "550e8400-e29b-41d4-a716-446655440002",
        "request_id": "550e8400-e29b-41d4-a716-446655440003", "type": "work_request",
        "payload": {
            "task_id": "550e8400-e29b-41d4-a716-446655440004", "work_type": "echo", "parameters": { "message": "hello" },
            "hints": { "max_duration_seconds": 300 },
        },
        "x_custom_fields": {},
    })
}
