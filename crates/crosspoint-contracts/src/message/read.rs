//! Reads the envelope and its payloads, clause by clause.

use super::chunk::{Chunk, WHOLE_BYTES_MAX};
use super::clause::*;
use super::version::SPOKEN;
use super::wire::{
    AgentId, AgentType, Dialect, Heartbeat, Hints, Message, MessageId, MessageType, Progress, RequestId, ResourcesUsed,
    ResultStatus, Step, TaskId, TraceId, WorkRequest, WorkResult, WorkStatus,
};
use crate::clause::Clause;
use crate::content::Text;
use crate::document::Options;
use crate::fields::{
    ANY, Fields, Word, amount, complain, exactly, integer, name, not_a_word, nullable, object, opaque, string,
    timestamp, uuid, word,
};
use crate::json::Value;
use crate::report::{Findings, Place};
use crate::timestamp::Timestamp;

/// The only version that is spoken.
const VERSION: &str = {
    let [only] = SPOKEN;
    only
};

/// Hints for members that other contracts have with another meaning.
const REQUEST_ID_HINT: &str = "Add \"request_id\": a UUID that is the same for all messages about this request.";
const TYPE_HINT: &str = "Add \"type\": \"work_request\", \"work_status\", \"work_result\" or \"error\".";

/// The agent types that every deployment has.
pub const AGENT_TYPES: &[&str] = &["orchestrator", "infra", "desktop", "code", "research"];

/// Users send the payload alone: its members are then there, in the wrong place.
const PAYLOAD_HINT: &str = "Add \"payload\": {...}, and put what this type of message says inside.";

/// Reads the envelope around a payload of the given type.
pub(crate) fn message<'t, 's, Payload: Default>(
    fields: &mut Fields<'t, 's, '_>,
    message_type: MessageType,
    options: &Options<'_>,
    payload: impl FnOnce(&mut Fields<'t, 's, '_>) -> Payload,
) -> Message<'s, Payload> {
    type_agrees(fields, message_type);
    Message {
        protocol_version: fields.required("protocol_version", &MSG_1, exactly(&MSG_10_2, VERSION)),
        message_id: MessageId(fields.required("message_id", &MSG_1, uuid(&MSG_1_3))),
        from_agent: fields.required("from_agent", &MSG_1, agent_type(options, &MSG_1_4)),
        to_agent: fields.required("to_agent", &MSG_1, agent_type(options, &MSG_1_4)),
        timestamp: fields.required("timestamp", &MSG_1, utc_timestamp),
        trace_id: TraceId(fields.required("trace_id", &MSG_1, uuid(&MSG_1_3))),
        request_id: RequestId(fields.required_or("request_id", &MSG_1, REQUEST_ID_HINT, uuid(&MSG_1_3))),
        message_type: fields.required_or("type", &MSG_1, TYPE_HINT, word(&MSG_101)),
        payload: fields.required_or("payload", &MSG_1, PAYLOAD_HINT, object(&MSG_102, payload)),
        x_custom_fields: fields.optional("x_custom_fields", opaque(&MSG_1_2)),
        priority: fields.tolerated("priority", priority),
        extra: fields.rest(),
    }
}

/// Reads a member of the later dialect, which is always reported.
fn priority(value: Value<'_, '_>, findings: &mut Findings) -> Option<i64> {
    let priority = integer(&MSG_16, 1..=5)(value, findings)?;
    complain(value, &MSG_16, "is of the later dialect, not of v1.0", findings);
    Some(priority)
}

/// Notes a type that differs from the type as which the document is read.
fn type_agrees(fields: &mut Fields<'_, '_, '_>, wanted: MessageType) {
    let Some(value) = fields.peek("type") else { return };
    let Some(found) = value.text().and_then(MessageType::of) else { return };
    if found != wanted {
        let message = format!("`type` is {}, and this is read as {}", found.word(), wanted.word());
        fields.findings.note(&MSG_101, Place::Value(value.index()), message);
    }
}

pub(super) fn agent_type<'t, 's>(
    options: &Options<'_>,
    clause: &'static Clause,
) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<AgentType<'s>> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        let known = AGENT_TYPES.iter().chain(options.agent_types).any(|known| text == **known);
        if !known {
            // The operator may have named some of the contract's own.
            let added = options.agent_types.iter().filter(|added| !AGENT_TYPES.contains(added));
            let types: Vec<&str> = AGENT_TYPES.iter().chain(added).copied().collect();
            not_a_word(value, text, &types, clause, findings);
        }
        known.then_some(AgentType(text))
    }
}

/// Reads a timestamp. Without an offset it is read as UTC, with a warning.
fn utc_timestamp<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<Timestamp<'s>> {
    let timestamp = timestamp(&MSG_2)(value, findings)?;
    if !timestamp.has_offset() {
        complain(value, &MSG_2_2, "has no offset and is read as UTC", findings);
    }
    Some(timestamp)
}

pub(crate) fn work_request<'s>(fields: &mut Fields<'_, 's, '_>) -> WorkRequest<'s> {
    WorkRequest {
        task_id: TaskId(fields.required("task_id", &MSG_103, uuid(&MSG_1_3))),
        work_type: fields.required("work_type", &MSG_103, name(&MSG_104)),
        parameters: fields.optional_input("parameters", opaque(&MSG_3)),
        hints: fields.optional_input("hints", object(&MSG_3, hints)),
        extra: fields.rest(),
    }
}

fn hints<'s>(fields: &mut Fields<'_, 's, '_>) -> Hints<'s> {
    Hints {
        max_duration_seconds: fields.optional_input("max_duration_seconds", amount(&MSG_105)),
        max_memory_mb: fields.optional_input("max_memory_mb", amount(&MSG_105)),
        extra: fields.rest(),
    }
}

/// Members that only a heartbeat has.
const HEARTBEAT_MARKS: &[&str] = &["agent_type", "current_task_id", "resources"];

/// Members that only progress has.
pub(super) const PROGRESS_MARKS: &[&str] = &["task_id", "progress_percent", "step"];

/// Whether a status is a heartbeat rather than progress, judged by its members.
pub(crate) fn is_heartbeat(has: impl Fn(&str) -> bool) -> bool {
    let marks = HEARTBEAT_MARKS.iter().filter(|mark| has(mark)).count();
    marks > PROGRESS_MARKS.iter().filter(|mark| has(mark)).count()
}

pub(crate) fn work_status<'s>(fields: &mut Fields<'_, 's, '_>, options: &Options<'_>) -> WorkStatus<'s> {
    if is_heartbeat(|name| fields.has(name)) {
        WorkStatus::Heartbeat(heartbeat(fields, options))
    } else {
        WorkStatus::Progress(progress(fields))
    }
}

fn heartbeat<'s>(fields: &mut Fields<'_, 's, '_>, options: &Options<'_>) -> Heartbeat<'s> {
    Heartbeat {
        agent_id: AgentId(fields.required("agent_id", &MSG_12, name(&MSG_12))),
        agent_type: fields.required("agent_type", &MSG_12, agent_type(options, &MSG_1_4)),
        status: fields.required("status", &MSG_12, word(&MSG_107)),
        current_task_id: fields.required(
            "current_task_id",
            &MSG_12,
            nullable(|value, findings| uuid(&MSG_1_3)(value, findings).map(TaskId)),
        ),
        resources: fields.required("resources", &MSG_12, opaque(&MSG_12)),
        timestamp: fields.required("timestamp", &MSG_12, utc_timestamp),
        extra: fields.rest(),
    }
}

fn progress<'s>(fields: &mut Fields<'_, 's, '_>) -> Progress<'s> {
    Progress {
        task_id: TaskId(fields.required("task_id", &MSG_106, uuid(&MSG_1_3))),
        status: fields.required("status", &MSG_106, word(&MSG_107)),
        progress_percent: fields.required("progress_percent", &MSG_106, integer(&MSG_3_2, 0..=100)),
        step: fields.required("step", &MSG_106, object(&MSG_108, step)),
        extra: fields.rest(),
    }
}

fn step<'s>(fields: &mut Fields<'_, 's, '_>) -> Step<'s> {
    let step = Step {
        number: fields.required("number", &MSG_108, integer(&MSG_108, ANY)),
        name: fields.required("name", &MSG_108, string(&MSG_108)),
        output: fields.optional("output", string(&MSG_3_4)),
        output_chunk: fields.optional("output_chunk", chunk),
        extra: fields.rest(),
    };
    let bytes = step.output.map_or(0, Text::decoded_bytes);
    match step.output_chunk {
        // An output that is no string was reported already, and its length means nothing.
        Some(_) if step.output.is_none() && fields.has("output") => {}
        Some(chunk) if chunk.bytes() != bytes as u64 => {
            let message = format!("`output` is {bytes} bytes long, and the chunk says {}", chunk.bytes());
            fields.note_member("output_chunk", &MSG_9_3, message);
        }
        // An unsplit output can still be read, so refusing it would only lose work.
        None if !fields.has("output_chunk") && bytes > WHOLE_BYTES_MAX => {
            fields.note_member("output", &MSG_9, format!("`output` is {bytes} bytes long and not split"));
        }
        Some(_) | None => {}
    }
    step
}

fn chunk(value: Value<'_, '_>, findings: &mut Findings) -> Option<Chunk> {
    let text = string(&MSG_9_2)(value, findings)?;
    let chunk = Chunk::parse(text);
    if chunk.is_none() {
        complain(value, &MSG_9_2, "does not read `bytes START-END of TOTAL` with START <= END <= TOTAL", findings);
    }
    chunk
}

/// Returns the dialect of a result, judged by its members.
fn result_dialect(fields: &Fields<'_, '_, '_>) -> Dialect {
    let status = fields.peek("status").and_then(Value::text).and_then(ResultStatus::of);
    let later_status = matches!(status, Some(ResultStatus::Completed | ResultStatus::Cancelled));
    if later_status || fields.has("duration_ms") || fields.has("error_message") { Dialect::Later } else { Dialect::V1 }
}

pub(crate) fn work_result<'s>(fields: &mut Fields<'_, 's, '_>) -> WorkResult<'s> {
    let dialect = result_dialect(fields);
    if dialect == Dialect::Later {
        fields.note(&MSG_16, "this result is written in a later dialect, not in v1.0");
    }
    let result = WorkResult {
        task_id: TaskId(fields.required("task_id", &MSG_109, uuid(&MSG_1_3))),
        status: fields.required("status", &MSG_109, result_status),
        exit_code: required_in_v1(fields, dialect, "exit_code", &MSG_109, integer(&MSG_111, 0..=i64::MAX)),
        output: required_in_v1(fields, dialect, "output", &MSG_109, string(&MSG_112)),
        resources_used: match dialect {
            Dialect::V1 => {
                required_in_v1(fields, dialect, "resources_used", &MSG_3_5, object(&MSG_3_5, resources_used))
            }
            Dialect::Later => fields.optional("resources_used", object(&MSG_3_5, any_resources)),
        },
        duration_ms: fields.tolerated("duration_ms", amount(&MSG_16)),
        agent_id: later(fields, dialect, "agent_id", name(&MSG_16)).map(AgentId),
        error_message: fields.tolerated("error_message", nullable(string(&MSG_16))),
        dialect,
        extra: fields.rest(),
    };
    exit_code_agrees(fields, result.exit_code);
    let bytes = result.output.map_or(0, Text::decoded_bytes);
    if bytes > WHOLE_BYTES_MAX {
        fields.note_member("output", &MSG_9_6, format!("`output` is {bytes} bytes long"));
    }
    result
}

fn result_status(value: Value<'_, '_>, findings: &mut Findings) -> Option<ResultStatus> {
    let text = string(&MSG_110)(value, findings)?;
    let status = ResultStatus::of(text);
    if status.is_none() {
        // The words of the later dialect are read, but the message must not offer them.
        not_a_word(value, text, &["success", "failed"], &MSG_110, findings);
    }
    status
}

/// Reads a member that v1.0 demands and the later dialect may leave out.
fn required_in_v1<'t, 's: 't, T>(
    fields: &mut Fields<'t, 's, '_>,
    dialect: Dialect,
    name: &'static str,
    missing: &'static Clause,
    read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
) -> Option<T> {
    match dialect {
        Dialect::V1 => fields.required(name, missing, |value, findings| read(value, findings).map(Some)),
        Dialect::Later => fields.optional(name, read),
    }
}

/// Reads a member that only the later dialect has. In v1.0 it is an unknown member.
pub(super) fn later<'t, 's: 't, T>(
    fields: &mut Fields<'t, 's, '_>,
    dialect: Dialect,
    name: &'static str,
    read: impl FnOnce(Value<'t, 's>, &mut Findings) -> Option<T>,
) -> Option<T> {
    match dialect {
        Dialect::Later => fields.optional_or_null(name, read),
        Dialect::V1 => None,
    }
}

fn exit_code_agrees(fields: &mut Fields<'_, '_, '_>, exit_code: Option<i64>) {
    let status = fields.peek("status").and_then(Value::text).and_then(ResultStatus::of);
    let (clause, complaint) = match (status, exit_code) {
        (Some(ResultStatus::Success), Some(1..)) => (&MSG_3_3, "`exit_code` is over 0 although `status` is success"),
        (Some(ResultStatus::Failed), Some(0)) => (&MSG_3_6, "`exit_code` is 0 although `status` is failed"),
        _ => return,
    };
    fields.note_member("exit_code", clause, complaint);
}

/// The later dialect says of resources whatever it likes.
fn any_resources<'s>(fields: &mut Fields<'_, 's, '_>) -> ResourcesUsed<'s> {
    ResourcesUsed { extra: fields.rest(), ..ResourcesUsed::default() }
}

fn resources_used<'s>(fields: &mut Fields<'_, 's, '_>) -> ResourcesUsed<'s> {
    ResourcesUsed {
        duration_seconds: fields.required("duration_seconds", &MSG_3_5, integer(&MSG_113, ANY)),
        gpu_vram_mb: fields.optional("gpu_vram_mb", integer(&MSG_113, ANY)),
        cpu_time_ms: fields.optional("cpu_time_ms", integer(&MSG_113, ANY)),
        extra: fields.rest(),
    }
}
