//! Reads request and response, clause by clause.

use super::clause::*;
use super::wire::{
    Artifact, Context, ConversationId, Failure, Id, InputRequest, Metadata, Observability, ParentTaskId, Request,
    Response, RetryPolicy, Routing, SpanId, Status, TraceId,
};
use crate::content::Text;
use crate::delegation::CHAIN_MAX;
use crate::fields::{
    ANY, Fields, Word, array, boolean, complain, integer, is_uuid, name, object, opaque, string, timestamp, word,
};
use crate::json::{Type, Value};
use crate::report::{Findings, Place};

/// The standard codes of the task family (TASK-6).
const ERROR_CODES: &[&str] = &[
    "INVALID_INPUT",
    "MISSING_REQUIRED_FIELD",
    "INVALID_FIELD_TYPE",
    "INVALID_FIELD_VALUE",
    "AGENT_NOT_FOUND",
    "CAPABILITY_NOT_FOUND",
    "AGENT_UNAVAILABLE",
    "AGENT_BUSY",
    "MCP_NOT_CONNECTED",
    "MCP_AUTH_FAILED",
    "MCP_RATE_LIMITED",
    "MCP_ERROR",
    "COORDINATION_FAILED",
    "TASK_GRAPH_CYCLE",
    "DELEGATION_FAILED",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "KNOWLEDGE_NOT_FOUND",
    "RATE_LIMITED",
    "UNAUTHENTICATED",
];

pub(crate) fn request<'s>(fields: &mut Fields<'_, 's, '_>) -> Request<'s> {
    Request {
        id: fields.required("id", &TASK_1, request_id),
        task_type: fields.required("type", &TASK_1, name(&TASK_101)),
        payload: fields.required("payload", &TASK_1, opaque(&TASK_1_2)),
        context: fields.optional("context", object(&TASK_103, context)),
        routing: fields.optional("routing", object(&TASK_104, routing)),
        observability: fields.optional("observability", object(&TASK_106, observability)),
        retry_policy: fields.optional_input("retryPolicy", object(&TASK_7, retry_policy)),
        extra: fields.rest(),
    }
}

fn request_id<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<Id<'s>> {
    let text = name(&TASK_101)(value, findings)?;
    if !is_uuid(text) {
        complain(value, &TASK_102, "is not a UUID", findings);
    }
    Some(Id(text))
}

fn context<'s>(fields: &mut Fields<'_, 's, '_>) -> Context<'s> {
    Context {
        conversation_id: fields.optional("conversationId", string(&TASK_103)).map(ConversationId),
        parent_task_id: fields.optional("parentTaskId", string(&TASK_103)).map(ParentTaskId),
        user: fields.optional("user", string(&TASK_103)),
        timestamp: fields.optional("timestamp", timestamp(&TASK_1_4)),
        priority: fields.optional_input("priority", word(&TASK_1_3)),
        extra: fields.rest(),
    }
}

fn routing<'s>(fields: &mut Fields<'_, 's, '_>) -> Routing<'s> {
    let routing = Routing {
        source: fields.optional("source", string(&TASK_104)),
        target: fields.optional("target", string(&TASK_104)),
        delegation_chain: fields.optional("delegationChain", array(&TASK_105, string(&TASK_105))),
        extra: fields.rest(),
    };
    let Some(chain) = &routing.delegation_chain else { return routing };
    if chain.len() > CHAIN_MAX {
        let message = format!("`delegationChain` has {} agents, more than {CHAIN_MAX}", chain.len());
        fields.note_member("delegationChain", &TASK_9_3, message);
    }
    let target = routing.target.map(Text::decode);
    if target.is_some_and(|target| chain.iter().any(|agent| *agent == *target)) {
        fields.note_member(
            "target",
            &TASK_9_2,
            "`target` is in the delegation chain already: the task goes in a circle",
        );
    }
    routing
}

fn observability<'s>(fields: &mut Fields<'_, 's, '_>) -> Observability<'s> {
    Observability {
        trace_id: fields.optional("traceId", hexadecimal(32)).map(TraceId),
        span_id: fields.optional("spanId", hexadecimal(16)).map(SpanId),
        baggage: fields.optional("baggage", opaque(&TASK_106)),
        extra: fields.rest(),
    }
}

fn hexadecimal<'t, 's>(digits: usize) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Text<'s>> {
    move |value, findings| {
        let text = string(&TASK_106)(value, findings)?;
        let decoded = text.decode();
        if decoded.len() != digits || !decoded.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            complain(value, &TASK_8, &format!("is not {digits} hexadecimal digits"), findings);
        }
        Some(text)
    }
}

fn retry_policy<'s>(fields: &mut Fields<'_, 's, '_>) -> RetryPolicy<'s> {
    RetryPolicy {
        max_attempts: fields.optional_input("maxAttempts", integer(&TASK_7, 1..=i64::MAX)),
        backoff_type: fields.optional_input("backoffType", word(&TASK_7)),
        initial_delay: fields.optional_input("initialDelay", integer(&TASK_7, 0..=i64::MAX)),
        extra: fields.rest(),
    }
}

pub(crate) fn response<'s>(fields: &mut Fields<'_, 's, '_>) -> Response<'s> {
    let response = Response {
        id: Id(fields.required("id", &TASK_107, name(&TASK_101))),
        status: fields.required("status", &TASK_107, word(&TASK_108)),
        result: fields.optional("result", opaque(&TASK_109)),
        error: fields.optional("error", object(&TASK_2_3, failure)),
        metadata: fields.optional("metadata", object(&TASK_110, metadata)),
        artifacts: fields
            .optional("artifacts", array(&TASK_111, |item, findings| object(&TASK_111, artifact)(item, findings))),
        input_request: fields.optional("inputRequest", object(&TASK_2_5, input_request)),
        extra: fields.rest(),
    };
    if let Some(status) = fields.peek("status").and_then(Value::text).and_then(Status::of) {
        status_agrees(status, fields);
    }
    response
}

fn failure<'s>(fields: &mut Fields<'_, 's, '_>) -> Failure<'s> {
    if !fields.has("details") {
        fields.missing("details", &TASK_2_4);
    }
    Failure {
        code: fields.required("code", &TASK_2_3, error_code),
        message: fields.required("message", &TASK_2_3, string(&TASK_2_3)),
        details: fields.anything("details"),
        recoverable: fields.required("recoverable", &TASK_2_3, boolean(&TASK_2_3)),
        extra: fields.rest(),
    }
}

fn error_code<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<Text<'s>> {
    let text = string(&TASK_2_3)(value, findings)?;
    if !ERROR_CODES.iter().any(|code| text == **code) {
        complain(value, &TASK_6, "is not a standard code", findings);
    }
    Some(text)
}

fn metadata<'s>(fields: &mut Fields<'_, 's, '_>) -> Metadata<'s> {
    Metadata {
        started_at: fields.optional("startedAt", timestamp(&TASK_1_4)),
        completed_at: fields.optional("completedAt", timestamp(&TASK_1_4)),
        duration_ms: fields.optional("duration_ms", integer(&TASK_110, ANY)),
        agent: fields.optional("agent", string(&TASK_110)),
        retry_count: fields.optional("retryCount", integer(&TASK_110, ANY)),
        extra: fields.rest(),
    }
}

fn artifact<'s>(fields: &mut Fields<'_, 's, '_>) -> Artifact<'s> {
    Artifact {
        name: fields.required("name", &TASK_111, string(&TASK_111)),
        media_type: fields.required("type", &TASK_111, string(&TASK_111)),
        content: fields.required("content", &TASK_111, string(&TASK_111)),
        extra: fields.rest(),
    }
}

fn input_request<'s>(fields: &mut Fields<'_, 's, '_>) -> InputRequest<'s> {
    InputRequest {
        prompt: fields.required("prompt", &TASK_2_5, string(&TASK_2_5)),
        schema: fields.optional("schema", opaque(&TASK_2_5)),
        extra: fields.rest(),
    }
}

/// Checks which blocks go with which status.
fn status_agrees(status: Status, fields: &mut Fields<'_, '_, '_>) {
    for (member, goes_with, clause) in [("result", Status::Completed, &TASK_2), ("error", Status::Failed, &TASK_2_2)] {
        let present = fields.peek(member).filter(|value| !value.is_null());
        match present.filter(|value| status != goes_with || value.kind() == Type::Object) {
            None if status == goes_with => {
                let wrong = if fields.has(member) { "is not an object" } else { "is missing" };
                let message = format!("`{member}` {wrong} although `status` is {}", status.word());
                fields.findings.note(clause, Place::Missing(fields.object().index(), member), message);
            }
            Some(value) if status != goes_with => {
                let message = format!("`{member}` is there although `status` is {}", status.word());
                fields.findings.note(clause, Place::Member(value.index()), message);
            }
            None | Some(_) => {}
        }
    }
    let ended = matches!(status, Status::Completed | Status::Failed);
    match fields.peek("metadata") {
        None if ended => fields.missing("metadata", &TASK_112),
        Some(value) if ended && value.kind() == Type::Object && value.members().next().is_none() => {
            fields.note_member("metadata", &TASK_112, "`metadata` is empty");
        }
        None | Some(_) => {}
    }
    if status == Status::InputRequired && !fields.has("inputRequest") {
        fields.missing("inputRequest", &TASK_2_6);
    }
}
