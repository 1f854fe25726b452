//! The events of a job's stream, and the `data` of each.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use std::borrow::Cow;

use crosspoint_contracts::content::Nullable;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::operation::{Make, make};
use super::shape::{Outcome, Question, Said, Violation};
use super::word::{Any, FailureName, When};

/// One event of a job's stream. `id` is its number within the job. A caller that reconnects sends the last one as
/// `Last-Event-ID`.
pub(super) struct JobEvent;

impl JsonSchema for JobEvent {
    fn schema_name() -> Cow<'static, str> {
        "JobEvent".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<Value> = all().into_iter().map(|(name, make)| event(name, &make(schemas))).collect();
        json_schema!({
            "description": "One event of a job's stream: its fields, of which `data` is JSON.",
            "oneOf": kinds,
        })
    }
}

pub(super) fn event(name: &str, data: &Schema) -> Value {
    json!({
        "type": "object",
        "properties": {
            "event": { "const": name },
            "id": { "type": "string", "pattern": "^[0-9]+$", "description": "The event's number within the job." },
            "data": { "type": "string", "contentMediaType": "application/json", "contentSchema": data },
        },
        "required": ["event", "id", "data"],
    })
}

/// Every event by its name.
fn all() -> Vec<(&'static str, Make)> {
    vec![
        ("accepted", make::<Accepted>),
        ("started", make::<Started>),
        ("progress", make::<Progressed>),
        ("output", make::<Printed>),
        ("question", make::<Asked>),
        ("answer", make::<Answered>),
        ("step", make::<Stepped>),
        ("retrying", make::<Retrying>),
        ("interrupted", make::<Interrupted>),
        ("completed", make::<Ended>),
        ("failed", make::<Ended>),
        ("cancelled", make::<Ended>),
    ]
}

/// The job is on disk.
#[derive(JsonSchema)]
struct Accepted {
    at: When,
}

/// An agent was given it.
#[derive(JsonSchema)]
struct Started {
    at: When,
    /// Which attempt that is, from 1.
    attempt: u32,
    agent: String,
}

/// It goes on.
#[derive(JsonSchema)]
struct Progressed {
    at: When,
    /// 0 to 100.
    percent: Nullable<f64>,
    /// What is being done, in the agent's words.
    step: Nullable<String>,
    /// What else the agent said, as a document of its own contract.
    said: Option<Said>,
}

/// The agent printed something.
#[derive(JsonSchema)]
struct Printed {
    at: When,
    attempt: u32,
    /// Where in the attempt's output it begins, in bytes.
    offset: u64,
    /// As text; bytes that are none are replaced.
    text: String,
    /// The bytes themselves, where the text is not all of them.
    base64: Option<String>,
}

/// A person is asked.
#[derive(JsonSchema)]
struct Asked {
    at: When,
    question: Question,
}

/// A person answered.
#[derive(JsonSchema)]
struct Answered {
    at: When,
    answer: Any,
}

/// A step of the work is done. Of a run of a workflow: what a stage said, and what was decided.
#[derive(JsonSchema)]
struct Stepped {
    at: When,
    done: Any,
}

/// An attempt failed, and there will be another.
#[derive(JsonSchema)]
struct Retrying {
    at: When,
    attempt: u32,
    failure: FailureName,
    /// When the next is due.
    until: When,
}

/// An attempt was cut short by the server's own end, and there will be another.
#[derive(JsonSchema)]
struct Interrupted {
    at: When,
    attempt: u32,
}

/// The job ended; this is the last event.
#[derive(JsonSchema)]
struct Ended {
    at: When,
    outcome: Outcome,
    /// Rules that were broken about the job.
    violations: Option<Vec<Violation>>,
}
