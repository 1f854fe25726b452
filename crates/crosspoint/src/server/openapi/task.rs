//! The task door: its operations, and its documents, which are those of the contract.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use std::borrow::Cow;

use crosspoint_contracts::task::{self, Status};
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::open::open;
use super::operation::{Operation, STATE};
use super::shape::Reply;
use super::table::{Facts, TASKS, key, seconds};
use super::word::RepeatName;

open! {
    /// `task.request`
    TaskRequest: task::Request<'static>;
    /// `task.response`
    TaskResponse: task::Response<'static>;
}

/// Why a request about a task was refused.
struct TaskRefusal;

impl JsonSchema for TaskRefusal {
    fn schema_name() -> Cow<'static, str> {
        "TaskRefusal".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let details = json!({
            "description": "Also `hint`, and where they are known `clause`, `field`, `at` and up to 50 `findings`.",
            "type": "object",
            "properties": { "repeat": schemas.subschema_for::<RepeatName>() },
            "required": ["repeat"],
            "additionalProperties": true,
        });
        json_schema!({
            "description": "Why a request about a task was refused, as a task that failed.",
            "allOf": [schemas.subschema_for::<TaskResponse>()],
            "properties": {
                "status": { "const": Status::Failed.word() },
                "error": { "properties": { "details": details }, "required": ["details"] },
            },
            "required": ["status", "error"],
        })
    }
}

/// One event of a task's stream.
struct TaskEvent;

impl JsonSchema for TaskEvent {
    fn schema_name() -> Cow<'static, str> {
        "TaskEvent".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let data = schemas.subschema_for::<TaskResponse>();
        let kinds = Status::ALL.map(|status| super::event::event(status.word(), &data));
        json_schema!({
            "description": "One event of a task's stream: its fields, of which `data` is the task, and `event` its status.",
            "oneOf": kinds,
        })
    }
}

const KEY: &str = "What makes a repeat the same task, in place of `id`.";
const PREFER: &str = "`wait=S` waits as the query does, as far as that is allowed; the query wins.";

/// Returns every operation of this door.
pub(super) fn operations(facts: &Facts) -> Vec<Operation> {
    let mut all = vec![submit(facts)];
    all.extend(one(facts));
    all.into_iter().map(Operation::refuses_as::<TaskRefusal>).collect()
}

fn submit(facts: &Facts) -> Operation {
    let example = json!({
        "id": "550e8400-e29b-41d4-a716-446655440000", "type": "echo", "payload": { "message": "hello" },
        "context": { "priority": "high" },
    });
    let mut headers = applied();
    headers["Location"] = json!({ "description": "The path of the task.", "schema": { "type": "string" } });
    Operation::post("/tasks", "submit_task", TASKS, "Submit a task")
        .describe("When it is answered, the task is on disk. Sent again with the same `id` or `Idempotency-Key`, it is the same task.")
        .query("wait", WAIT, &seconds(facts))
        .header("Prefer", PREFER, &json!({ "type": "string", "example": "wait=10" }))
        .header("Idempotency-Key", KEY, &key())
        .header("traceparent", "Where in a trace the task belongs; wins over `observability`.", &json!({ "type": "string" }))
        .header("tracestate", STATE, &json!({ "type": "string" }))
        .body::<TaskRequest>("A task.request.", example)
        .answers_with::<TaskResponse>(200, "The task has ended.", headers.clone())
        .answers_with::<TaskResponse>(202, "The task as it stands: it goes on, or asks for input.", headers)
        .refuses(&[409, 429])
}

fn one(facts: &Facts) -> Vec<Operation> {
    let of_task = |operation: Operation| operation.path("id", "The task's id, percent-encoded.", &id()).refuses(&[404]);
    let waiting = |operation: Operation| {
        let header = json!({ "type": "string", "example": "wait=10" });
        operation.query("wait", WAIT, &seconds(facts)).header("Prefer", PREFER, &header)
    };
    let number = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    vec![
        waiting(of_task(Operation::get("/tasks/{id}", "show_task", TASKS, "Show a task")))
            .answers_with::<TaskResponse>(200, "The task as it stands, or as it is after the wait.", applied())
            .refuses(&[400]),
        waiting(of_task(Operation::post("/tasks/{id}/input", "answer_task", TASKS, "Answer what a task asks")))
            .body::<Reply>("The answer.", json!({ "input": "yes" }))
            .answers_with::<TaskResponse>(200, "The task has ended.", applied())
            .answers_with::<TaskResponse>(202, "The task as it stands: it goes on, or asks for more.", applied())
            .refuses(&[409]),
        of_task(Operation::post("/tasks/{id}/cancel", "cancel_task", TASKS, "Stop a task"))
            .answers::<TaskResponse>(200, "The task, which is cancelled.")
            .refuses(&[409]),
        of_task(Operation::get("/tasks/{id}/events", "follow_task", TASKS, "Follow a task as server-sent events"))
            .describe(
                "The task as it stands, and each time that it has changed; the last event is the task that has ended.",
            )
            .query("after", "The `id` of the last event that you have.", &number)
            .query(
                "follow",
                "`false` ends the stream with the task as it stands.",
                &json!({ "type": "boolean", "default": true }),
            )
            .header("Last-Event-ID", "The same as `after`, and wins over it.", &number)
            .answers_events::<TaskEvent>("The task, as it changes; the schema is that of one event.")
            .refuses(&[400]),
    ]
}

const WAIT: &str = "Wait up to so many seconds until the task has ended or asks for input.";

fn applied() -> Value {
    let description = "The wait that was granted, where `Prefer` asked for it.";
    json!({ "Preference-Applied": { "description": description, "schema": { "type": "string" } } })
}

fn id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX })
}
