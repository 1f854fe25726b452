//! What the envelope and its four payloads hold.

use schemars::{JsonSchema, Schema};
use serde_json::json;

use super::chunk::Chunk;
use crate::content::{Extra, Nullable, Raw, RawObject, Text, id};
use crate::fields::words;
use crate::timestamp::Timestamp;

/// The hyphenated form of RFC 9562.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        id!($(#[$doc])* $name {
            "type": "string",
            "format": "uuid",
            "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
        });
    };
}

uuid_id!(
    /// One message; a retry has a new one.
    MessageId
);
uuid_id!(
    /// One piece of work from end to end.
    TraceId
);
uuid_id!(
    /// What makes a repeat the same request.
    RequestId
);
uuid_id!(
    /// One task.
    TaskId
);
id!(
    /// The type of an agent: orchestrator, infra, desktop, code, research, or one the operator added.
    AgentType { "type": "string", "examples": ["orchestrator", "infra", "desktop", "code", "research"] }
);

id!(
    /// One agent.
    AgentId { "type": "string", "minLength": 1 }
);

words!(
    /// What a message is about.
    MessageType {
        /// Do this.
        WorkRequest = "work_request",
        /// This is how far it is.
        WorkStatus = "work_status",
        /// It is done.
        WorkResult = "work_result",
        /// Something prevents the normal flow.
        Error = "error",
    }
);

/// The envelope, around the payload of one of the four types.
#[derive(Debug, JsonSchema)]
pub struct Message<'s, Payload> {
    /// The protocol's version; only "1.0" is spoken.
    #[schemars(extend("const" = "1.0"))]
    pub protocol_version: Text<'s>,
    /// This message.
    pub message_id: MessageId<'s>,
    /// Type of the sender.
    pub from_agent: AgentType<'s>,
    /// Type of the recipient.
    pub to_agent: AgentType<'s>,
    /// When it was sent.
    pub timestamp: Timestamp<'s>,
    /// The work it belongs to, from end to end.
    pub trace_id: TraceId<'s>,
    /// The request it belongs to; a retry has the same.
    pub request_id: RequestId<'s>,
    /// What the payload is.
    #[schemars(rename = "type")]
    pub message_type: MessageType,
    /// The content.
    pub payload: Payload,
    /// Extensions; an open object.
    pub x_custom_fields: Option<RawObject<'s>>,
    /// Of the later dialect: 1 to 5, 5 the most urgent.
    #[schemars(with = "Option<Raw>")]
    pub priority: Option<i64>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Which writing a payload is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As the document has it.
    #[default]
    V1,
    /// As some deployed agents send it (MSG-16).
    Later,
}

/// What an agent is to do.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct WorkRequest<'s> {
    /// The task.
    pub task_id: TaskId<'s>,
    /// The kind of work.
    #[schemars(length(min = 1))]
    pub work_type: Text<'s>,
    /// What the work needs; {} where it is left out.
    pub parameters: Option<RawObject<'s>>,
    /// What scheduling should know.
    pub hints: Option<Hints<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// Limits the caller expects the work to keep.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Hints<'s> {
    /// How long it may take.
    #[schemars(range(min = 0))]
    pub max_duration_seconds: Option<f64>,
    /// How much memory it may use.
    #[schemars(range(min = 0))]
    pub max_memory_mb: Option<f64>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// How work or an agent is doing.
#[derive(Debug, JsonSchema)]
#[schemars(inline, untagged)]
pub enum WorkStatus<'s> {
    /// Progress of a task.
    Progress(Progress<'s>),
    /// A sign of life of an agent.
    Heartbeat(Heartbeat<'s>),
}

impl Default for WorkStatus<'_> {
    fn default() -> Self {
        WorkStatus::Progress(Progress::default())
    }
}

words!(
    /// How a task is doing.
    WorkState {
        /// It is being worked on.
        Running = "running",
        /// One step is done, others follow.
        StepCompleted = "step_completed",
        /// It waits; the clock stands still.
        Paused = "paused",
    }
);

/// Progress of a task.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Progress<'s> {
    /// The task.
    pub task_id: TaskId<'s>,
    /// How it is doing.
    pub status: WorkState,
    /// 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub progress_percent: i64,
    /// The step it is in.
    pub step: Step<'s>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// One step of a task.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Step<'s> {
    /// Its number.
    pub number: i64,
    /// What people call it.
    pub name: Text<'s>,
    /// What it printed; "" where it is left out.
    pub output: Option<Text<'s>>,
    /// Which part of a long output this is.
    pub output_chunk: Option<Chunk>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// Whether an agent is there.
    Presence {
        /// It takes work.
        Online = "online",
        /// It is leaving.
        Offline = "offline",
        /// It is there but takes no more.
        Busy = "busy",
    }
);

/// A sign of life of an agent.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct Heartbeat<'s> {
    /// The agent.
    pub agent_id: AgentId<'s>,
    /// Its type.
    pub agent_type: AgentType<'s>,
    /// Whether it takes work.
    pub status: Presence,
    /// What it is working on.
    pub current_task_id: Nullable<TaskId<'s>>,
    /// What it has left; an open object.
    pub resources: RawObject<'s>,
    /// When it said so.
    pub timestamp: Timestamp<'s>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

words!(
    /// How a task ended. The last two are of the later dialect.
    ResultStatus {
        /// It worked.
        Success = "success",
        /// It did not.
        Failed = "failed",
        /// Later dialect: it worked.
        Completed = "completed",
        /// Later dialect: it was stopped.
        Cancelled = "cancelled",
    }
);

/// How a task ended.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline, transform = result_rules)]
pub struct WorkResult<'s> {
    /// The task.
    pub task_id: TaskId<'s>,
    /// How it ended.
    pub status: ResultStatus,
    /// 0 on success, positive on failure; the later dialect may leave it out.
    #[schemars(range(min = 0))]
    pub exit_code: Option<i64>,
    /// What the task printed.
    pub output: Option<Text<'s>>,
    /// What the task used.
    pub resources_used: Option<ResourcesUsed<'s>>,
    /// Later dialect: how long it took.
    #[schemars(with = "Option<Raw>")]
    pub duration_ms: Option<f64>,
    /// Later dialect: who did it.
    #[schemars(with = "Option<Raw>")]
    pub agent_id: Option<AgentId<'s>>,
    /// Later dialect: what went wrong.
    #[schemars(with = "Option<Raw>")]
    pub error_message: Option<Nullable<Text<'s>>>,
    /// Which writing this is.
    #[schemars(skip)]
    pub dialect: Dialect,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// What a task used.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline)]
pub struct ResourcesUsed<'s> {
    /// How long it took.
    pub duration_seconds: i64,
    /// Graphics memory; 0 where it is left out.
    pub gpu_vram_mb: Option<i64>,
    /// Processor time; 0 where it is left out.
    pub cpu_time_ms: Option<i64>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// MSG-3.3, and what v1.0 demands unless the later dialect is written.
fn result_rules(schema: &mut Schema) {
    let status = |word: &str| json!({ "properties": { "status": { "const": word } }, "required": ["status"] });
    let exit_code = |bounds: serde_json::Value| json!({ "properties": { "exit_code": bounds } });
    let later = json!({ "anyOf": [
        { "properties": { "status": { "enum": ["completed", "cancelled"] } }, "required": ["status"] },
        { "required": ["duration_ms"] },
        { "required": ["error_message"] }
    ] });
    schema.insert(
        "allOf".to_owned(),
        json!([
            { "if": status("success"), "then": exit_code(json!({ "maximum": 0 })) },
            { "if": status("failed"), "then": exit_code(json!({ "minimum": 1 })) },
            { "if": later, "else": { "required": ["exit_code", "output", "resources_used"] } }
        ]),
    );
}

/// Something that prevents the normal flow.
#[derive(Debug, Default, JsonSchema)]
#[schemars(inline, transform = error_rules)]
pub struct ErrorReport<'s> {
    /// 5001 to 5999.
    #[schemars(range(min = 5001, max = 5999))]
    pub error_code: i64,
    /// What went wrong, in words.
    pub error_message: Text<'s>,
    /// What helps to understand it; its members depend on the code.
    pub error_context: Option<RawObject<'s>>,
    /// Later dialect: the same under another name.
    #[schemars(with = "Option<Raw>")]
    pub context: Option<RawObject<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// MSG-4.2: the context fields of the six codes.
fn error_rules(schema: &mut Schema) {
    let context_of = |context: serde_json::Value| {
        json!({ "anyOf": [
            { "required": ["error_context"], "properties": { "error_context": context } },
            { "required": ["context"], "not": { "required": ["error_context"] }, "properties": { "context": context } }
        ] })
    };
    let mut rules = vec![context_of(json!({ "type": "object" }))];
    for &(code, fields) in super::error::CONTEXT_FIELDS {
        let names: Vec<&str> = fields.iter().map(|&(name, _)| name).collect();
        let properties: serde_json::Map<String, serde_json::Value> =
            fields.iter().map(|&(name, kind)| (name.to_owned(), kind.schema())).collect();
        rules.push(json!({
            "if": { "properties": { "error_code": { "const": code } }, "required": ["error_code"] },
            "then": context_of(json!({ "required": names, "properties": properties }))
        }));
    }
    schema.insert("allOf".to_owned(), json!(rules));
}
