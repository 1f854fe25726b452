//! Reads request, response and terminal event, clause by clause.

use super::clause::*;
use super::wire::{
    AgentError, DomainId, Grounding, Progress, Request, RequestId, Response, StageId, Started, Status, Terminal,
    UserId, WorkflowId,
};
use crate::clause::Clause;
use crate::content::{Raw, RawObject, Text};
use crate::fields::{Fields, Word, amount, any, array, boolean, complain, name, object, opaque, string};
use crate::json::{Type, Value};
use crate::report::Findings;

pub(crate) fn request<'s>(fields: &mut Fields<'_, 's, '_>) -> Request<'s> {
    Request {
        request_id: RequestId(fields.required("request_id", &RUN_2, name(&RUN_2))),
        task_type: fields.required("task_type", &RUN_2, name(&RUN_2)),
        workflow_id: fields.optional("workflow_id", string(&RUN_101)).map(WorkflowId),
        stage_id: fields.optional("stage_id", string(&RUN_101)).map(StageId),
        user_id: fields.optional("user_id", string(&RUN_101)).map(UserId),
        mode: fields.optional("mode", string(&RUN_101)),
        risk_tier: fields.optional("risk_tier", string(&RUN_101)),
        domain_id: fields.optional("domain_id", string(&RUN_101)).map(DomainId),
        inputs: fields.optional_input("inputs", opaque(&RUN_2_2)),
        budgets: fields.optional_input("budgets", budgets),
        extra: fields.rest(),
    }
}

/// The names under which callers limit the time of a run, and the first that is there counts (RUN-2).
pub(super) const TIME_LIMITS: &[&str] = &["max_seconds", "timeout_seconds", "timeout_ms", "max_time_ms"];

/// Reads limits. They are an open object, and those that we keep must be amounts: a limit is never guessed (ALL-11).
fn budgets<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<RawObject<'s>> {
    let all = opaque(&RUN_2_2)(value, findings)?;
    let mut fields = Fields::new(value, findings);
    for name in TIME_LIMITS.iter().chain(&["max_memory_mb"]) {
        let _ = fields.optional_input(name, amount(&RUN_2_2));
    }
    Some(all)
}

/// The names under which agents say how far a run is, in percent (RUN-6).
pub(super) const PERCENT_NAMES: &[&str] = &["percent", "progress", "pct"];

/// The clauses that a missing part of a result breaks. They differ between the answer to a sync run and a terminal
/// event.
struct Demands {
    request_id: &'static Clause,
    outputs: &'static Clause,
    /// Whether it is a terminal event, in which further styles are accepted.
    is_event: bool,
}

pub(crate) fn response<'s>(fields: &mut Fields<'_, 's, '_>) -> Response<'s> {
    let recommended = ["artifacts", "provenance", "usage", "warnings"];
    let missing: Vec<String> =
        recommended.iter().filter(|member| !fields.has(member)).map(|member| format!("`{member}`")).collect();
    let response = result(fields, &Demands { request_id: &RUN_102, outputs: &RUN_3_2, is_event: false });
    if !missing.is_empty() {
        let place = crate::report::Place::Value(fields.object().index());
        fields.findings.note(&RUN_104, place, format!("recommended, but missing: {}", missing.join(", ")));
    }
    response
}

pub(crate) fn started<'s>(fields: &mut Fields<'_, 's, '_>) -> Started<'s> {
    Started {
        request_id: echoed(fields, "request_id", &RUN_110).map(RequestId),
        task_type: echoed(fields, "task_type", &RUN_111),
        extra: fields.rest(),
    }
}

/// Reads a member that should be there.
fn echoed<'s>(fields: &mut Fields<'_, 's, '_>, member: &'static str, clause: &'static Clause) -> Option<Text<'s>> {
    if !fields.has(member) {
        fields.missing(member, clause);
    }
    fields.tolerated(member, name(clause))
}

pub(crate) fn progress<'s>(value: Value<'_, 's>) -> Progress<'s> {
    Progress {
        percent: PERCENT_NAMES.iter().find_map(|name| value.get(name).and_then(Value::float)),
        step: value.get("step").and_then(Value::text),
        data: Raw::new(value.source()),
    }
}

pub(crate) fn terminal<'s>(fields: &mut Fields<'_, 's, '_>) -> Terminal<'s> {
    if fields.peek("status").is_none_or(|status| status.text().is_none()) {
        fields.missing("status", &RUN_108);
    }
    Terminal {
        task_type: fields.required("task_type", &RUN_107, name(&RUN_107)),
        response: result(fields, &Demands { request_id: &RUN_106, outputs: &RUN_109, is_event: true }),
    }
}

fn result<'s>(fields: &mut Fields<'_, 's, '_>, demands: &Demands) -> Response<'s> {
    let (outputs, data) = outputs(fields, demands);
    let mut response = Response {
        request_id: RequestId(fields.required("request_id", demands.request_id, name(demands.request_id))),
        status: fields.optional("status", status),
        ok: fields.optional("ok", boolean(&RUN_103)),
        success: fields.optional("success", boolean(&RUN_103)),
        outputs,
        data,
        artifacts: fields.optional("artifacts", array(&RUN_3_3, string(&RUN_3_3))),
        provenance: fields.optional("provenance", opaque(&RUN_3_3)),
        usage: fields.optional("usage", opaque(&RUN_3_3)),
        warnings: fields.optional("warnings", array(&RUN_3_3, any)),
        // The document's own template writes null for these two.
        grounding: fields.optional_or_null("grounding", object(&RUN_4, grounding)),
        error: fields.optional_or_null("error", error),
        extra: Vec::new(),
    };
    response.extra = fields.rest();
    marks_agree(fields, &response, demands);
    response
}

/// Reads `outputs`, or `data` in its place.
fn outputs<'s>(fields: &mut Fields<'_, 's, '_>, demands: &Demands) -> (Option<RawObject<'s>>, Option<RawObject<'s>>) {
    let is_object = |name: &str| fields.peek(name).is_some_and(|value| value.kind() == Type::Object);
    if is_object("outputs") || !is_object("data") {
        let outputs = fields
            .required("outputs", demands.outputs, |value, findings| opaque(demands.outputs)(value, findings).map(Some));
        return (outputs, None);
    }
    // What stands under the right name is not used.
    let _ = fields.optional("outputs", opaque(demands.outputs));
    if !demands.is_event {
        let message = "`data` stands in place of `outputs`";
        fields.note_member_with_hint("data", &RUN_3_7, message, "Rename `data` to `outputs`.");
    }
    let data =
        fields.required("data", demands.outputs, |value, findings| opaque(demands.outputs)(value, findings).map(Some));
    (None, data)
}

fn status(value: Value<'_, '_>, findings: &mut Findings) -> Option<Status> {
    let text = string(&RUN_3)(value, findings)?;
    let status = Status::of(text);
    match status {
        // `degraded` is read, but documents should not use it, so the message must not offer it.
        None => crate::fields::not_a_word(value, text, &["ok", "success", "error"], &RUN_3, findings),
        Some(Status::Degraded) => complain(value, &RUN_3_7, "is degraded, which is read as a success", findings),
        Some(Status::Ok | Status::Success | Status::Error) => {}
    }
    status
}

/// Reads why a run failed: an object, or a text that is its message.
fn error<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<AgentError<'s>> {
    let Some(message) = value.text() else { return object(&RUN_3_5, agent_error)(value, findings) };
    complain(value, &RUN_3_12, "is a text, which reads as its message", findings);
    Some(AgentError { message, ..AgentError::default() })
}

/// Checks that the three marks agree. Marks of the wrong type were reported already.
fn marks_agree(fields: &mut Fields<'_, '_, '_>, response: &Response<'_>, demands: &Demands) {
    let succeeded = response.succeeded();
    if !demands.is_event && response.status.is_none() && response.ok.is_none() && response.success.is_some() {
        let hint = format!("Write \"status\": \"{}\".", if succeeded { "ok" } else { "error" });
        fields.note_member_with_hint("success", &RUN_3_7, "`success` stands in place of `status`", hint);
    }
    for (mark, value) in [("ok", response.ok), ("success", response.success)] {
        if value.is_some_and(|value| value != succeeded) {
            fields.note_member(mark, &RUN_3_8, format!("`{mark}` is {} and another mark says otherwise", !succeeded));
        }
    }
    let marked = response.status.is_some() || response.ok.is_some() || response.success.is_some();
    if !marked {
        // A terminal event must have a status, and a word that is none of the list was reported already.
        if !demands.is_event && fields.peek("status").is_none_or(|status| status.text().is_none()) {
            fields.missing("status", &RUN_103);
        }
        return;
    }
    if succeeded && response.error.is_some() {
        fields.note_member("error", &RUN_3_8, "`error` is there although the run succeeded");
    }
    if !succeeded && fields.peek("error").is_none_or(Value::is_null) {
        fields.missing("error", &RUN_3_9);
    }
}

fn grounding<'s>(fields: &mut Fields<'_, 's, '_>) -> Grounding<'s> {
    Grounding {
        chunks: fields.optional("chunks", array(&RUN_4, opaque(&RUN_4))),
        citations: fields.optional("citations", array(&RUN_4, string(&RUN_4))),
        retrieval_trace: fields.optional("retrieval_trace", opaque(&RUN_4)),
        sources: fields.anything("sources"),
        span_refs: fields.anything("span_refs"),
        extra: fields.rest(),
    }
}

fn agent_error<'s>(fields: &mut Fields<'_, 's, '_>) -> AgentError<'s> {
    AgentError {
        code: fields.required("code", &RUN_3_5, string(&RUN_3_5)),
        message: fields.required("message", &RUN_3_5, string(&RUN_3_5)),
        details: fields.anything("details"),
        extra: fields.rest(),
    }
}
