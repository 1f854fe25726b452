//! What request and response hold.

use schemars::{JsonSchema, Schema};
use serde_json::json;

use crate::content::{Extra, Raw, RawObject, Text, id};
use crate::fields::words;
use crate::timestamp::Timestamp;

id!(
    /// One task, preferably a UUID.
    Id { "type": "string", "minLength": 1 }
);

id!(
    /// Links tasks of one conversation.
    hidden ConversationId { "type": "string" }
);
id!(
    /// A trace of OpenTelemetry: 32 hexadecimal digits.
    TraceId { "type": "string" }
);
id!(
    /// A span of OpenTelemetry: 16 hexadecimal digits.
    SpanId { "type": "string" }
);
id!(
    /// The task another one is a part of.
    ParentTaskId { "type": "string" }
);

/// What an agent is to do.
#[derive(Debug, JsonSchema)]
#[schemars(title = "task.request")]
pub struct Request<'s> {
    /// The task.
    pub id: Id<'s>,
    /// The capability that is wanted.
    #[schemars(rename = "type", length(min = 1))]
    pub task_type: Text<'s>,
    /// What the task needs; an open object.
    pub payload: RawObject<'s>,
    /// What the task belongs to.
    pub context: Option<Context<'s>>,
    /// Whose task it is, and whose it was.
    pub routing: Option<Routing<'s>>,
    /// Tracing.
    pub observability: Option<Observability<'s>>,
    /// How often and how soon it may be tried again.
    #[schemars(rename = "retryPolicy")]
    pub retry_policy: Option<RetryPolicy<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// How urgent a task is.
    Priority {
        /// Whenever there is nothing else.
        Low = "low",
        /// In its turn.
        Normal = "normal",
        /// Before normal ones.
        High = "high",
        /// Before all others.
        Urgent = "urgent",
    }
);

/// What a task belongs to.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
pub struct Context<'s> {
    /// Links tasks of one conversation.
    pub conversation_id: Option<ConversationId<'s>>,
    /// The task this one is a part of.
    pub parent_task_id: Option<ParentTaskId<'s>>,
    /// The person behind it.
    pub user: Option<Text<'s>>,
    /// When it was made.
    pub timestamp: Option<Timestamp<'s>>,
    /// How urgent it is; normal where it is left out.
    pub priority: Option<Priority>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Whose task it is, and whose it was.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
pub struct Routing<'s> {
    /// Who made it.
    pub source: Option<Text<'s>>,
    /// Who is to do it.
    pub target: Option<Text<'s>>,
    /// Who had it before the target, at most 16.
    #[schemars(length(max = 16))]
    pub delegation_chain: Option<Vec<Text<'s>>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Tracing.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
pub struct Observability<'s> {
    /// 32 hexadecimal digits.
    pub trace_id: Option<TraceId<'s>>,
    /// 16 hexadecimal digits.
    pub span_id: Option<SpanId<'s>>,
    /// What travels along; an open object.
    pub baggage: Option<RawObject<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// How the time between attempts grows.
    Backoff {
        /// It doubles.
        Exponential = "exponential",
        /// It grows by the same amount.
        Linear = "linear",
        /// It stays.
        Fixed = "fixed",
    }
);

/// How often and how soon a task may be tried again.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline, rename_all = "camelCase")]
pub struct RetryPolicy<'s> {
    /// Attempts in all.
    #[schemars(range(min = 1))]
    pub max_attempts: Option<i64>,
    /// How the time between them grows.
    pub backoff_type: Option<Backoff>,
    /// Before the second attempt, in milliseconds.
    #[schemars(range(min = 0))]
    pub initial_delay: Option<i64>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// How a task is doing.
    Status {
        /// Received, not started.
        Pending = "pending",
        /// Being worked on.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Not done.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
        /// Waiting for an answer.
        InputRequired = "input_required",
    }
);

/// How a task is doing or did.
#[derive(Debug, JsonSchema)]
#[schemars(title = "task.response", transform = presence_rules)]
pub struct Response<'s> {
    /// The task.
    pub id: Id<'s>,
    /// How it is doing.
    pub status: Status,
    /// What came of it; only when completed.
    pub result: Option<RawObject<'s>>,
    /// Why it failed; only when failed.
    pub error: Option<Failure<'s>>,
    /// Times and names, for debugging.
    pub metadata: Option<Metadata<'s>>,
    /// Files and structured outputs.
    pub artifacts: Option<Vec<Artifact<'s>>>,
    /// What is asked, when input is required.
    #[schemars(rename = "inputRequest")]
    pub input_request: Option<InputRequest<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// TASK-2 and TASK-2.2: `result` exactly when completed, `error` exactly when failed.
fn presence_rules(schema: &mut Schema) {
    let exactly_when = |status: &str, member: &str| {
        json!({
            "if": { "properties": { "status": { "const": status } }, "required": ["status"] },
            "then": { "required": [member] },
            "else": { "not": { "required": [member] } }
        })
    };
    schema.insert("allOf".to_owned(), json!([exactly_when("completed", "result"), exactly_when("failed", "error")]));
}

/// Why a task failed.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Failure<'s> {
    /// A standard code, or the agent's own.
    pub code: Text<'s>,
    /// In words.
    pub message: Text<'s>,
    /// What helps to debug it.
    pub details: Option<Raw<'s>>,
    /// Whether the caller can do something about it.
    pub recoverable: bool,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Times and names, for debugging.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Metadata<'s> {
    /// When processing began.
    #[schemars(rename = "startedAt")]
    pub started_at: Option<Timestamp<'s>>,
    /// When processing ended.
    #[schemars(rename = "completedAt")]
    pub completed_at: Option<Timestamp<'s>>,
    /// How long it took.
    pub duration_ms: Option<i64>,
    /// Who did it.
    pub agent: Option<Text<'s>>,
    /// How often it was tried again.
    #[schemars(rename = "retryCount")]
    pub retry_count: Option<i64>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// A named piece of output.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Artifact<'s> {
    /// Usually a file's name.
    pub name: Text<'s>,
    /// Its media type.
    #[schemars(rename = "type")]
    pub media_type: Text<'s>,
    /// All of it.
    pub content: Text<'s>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// What a task asks.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct InputRequest<'s> {
    /// The question.
    pub prompt: Text<'s>,
    /// What an answer looks like, as JSON Schema.
    pub schema: Option<RawObject<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}
