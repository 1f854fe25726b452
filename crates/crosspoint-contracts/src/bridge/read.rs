//! Reads the two files, clause by clause.

use super::clause::*;
use super::wire::{Request, RequestId, Response, Status};
use crate::content::{Nullable, Text};
use crate::document::{Inner, Options};
use crate::fields::{
    self, Fields, amount, complain, exactly, integer, is_uuid, nullable, opaque, string, timestamp_with_offset, word,
};
use crate::json::{FlawKind, Tape, Type, Value};
use crate::report::{Findings, Place};

const PROMPT_HINT: &str = "Add \"prompt\": \"...\", what the agent is told.";

/// The only version that is spoken.
const VERSION: &str = "1.0";

pub(crate) fn request<'s>(fields: &mut Fields<'_, 's, '_>) -> Request<'s> {
    Request {
        request_id: fields.required("request_id", &BRIDGE_105, request_id),
        version: fields.required("version", &BRIDGE_105, exactly(&BRIDGE_6_3, VERSION)),
        agent_name: fields.required("agent_name", &BRIDGE_105, string(&BRIDGE_108)),
        prompt: fields.required_or("prompt", &BRIDGE_105, PROMPT_HINT, string(&BRIDGE_109)),
        phase: fields.optional("phase", integer(&BRIDGE_106, 1..=9)),
        phase_name: fields.optional("phase_name", string(&BRIDGE_107)),
        timeout_seconds: fields.optional_input("timeout_seconds", amount(&BRIDGE_110)),
        created_at: fields.optional("created_at", timestamp_with_offset(&BRIDGE_103, &BRIDGE_6_2)),
        context: fields.optional_input("context", opaque(&BRIDGE_111)),
        model: fields.nullable("model", string(&BRIDGE_112)),
        extra: fields.rest(),
    }
}

pub(crate) fn response<'s>(fields: &mut Fields<'_, 's, '_>, options: &Options<'_>) -> Response<'s> {
    // Leaving out some of the nine fields is a common mistake, so each has a hint that says what to add.
    let response = Response {
        request_id: fields.required_or(
            "request_id",
            &BRIDGE_1,
            "Copy \"request_id\" from the request file.",
            request_id,
        ),
        version: fields.required_or("version", &BRIDGE_1, "Add \"version\": \"1.0\".", exactly(&BRIDGE_6_3, VERSION)),
        status: fields.required_or(
            "status",
            &BRIDGE_1,
            "Add \"status\": \"success\", \"error\" or \"timeout\".",
            word(&BRIDGE_3),
        ),
        response: output(fields, options.inner),
        error_message: fields.required_or(
            "error_message",
            &BRIDGE_1,
            "Add \"error_message\": null; where `status` is not success, say what went wrong.",
            nullable(string(&BRIDGE_102)),
        ),
        error_type: fields.required_or(
            "error_type",
            &BRIDGE_1,
            "Add \"error_type\": null; where `status` is not success, name the sort of error.",
            nullable(string(&BRIDGE_102)),
        ),
        created_at: fields.required_or(
            "created_at",
            &BRIDGE_1,
            "Add \"created_at\": \"2025-11-24T14:22:45+00:00\", the time of writing with an offset.",
            timestamp_with_offset(&BRIDGE_103, &BRIDGE_6_2),
        ),
        duration_seconds: fields.required_or(
            "duration_seconds",
            &BRIDGE_1,
            "Add \"duration_seconds\": 1.0, without quotes.",
            duration,
        ),
        metadata: fields.required_or("metadata", &BRIDGE_1, "Add \"metadata\": {}.", opaque(&BRIDGE_104)),
        extra: fields.rest(),
    };
    let unknown: Vec<Value<'_, '_>> = fields.unread().map(|(_, value)| value).collect();
    for value in unknown {
        let message = "existing readers refuse a response with this field";
        fields.findings.note(&BRIDGE_1_3, Place::Member(value.index()), message);
    }
    status_agrees(fields);
    response
}

fn request_id<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<RequestId<'s>> {
    let text = string(&BRIDGE_101)(value, findings)?;
    if !is_uuid(text) {
        complain(value, &BRIDGE_4_5, "is not a UUID", findings);
    }
    Some(RequestId(text))
}

/// Reads `response`, and reports the three common mistakes there by what they are.
fn output<'s>(fields: &mut Fields<'_, 's, '_>, inner: Inner) -> Nullable<Text<'s>> {
    // A null response beside a `result` is the same mistake as a missing one.
    let empty = fields.peek("response").is_none_or(Value::is_null);
    let misnamed = if empty { fields.take_spelled("result") } else { None };
    let value = match fields.take("response").filter(|_| misnamed.is_none()) {
        Some(value) => value,
        None => match misnamed {
            Some(misnamed) => {
                let message = "the output stands under `result`; the field is named `response`";
                fields.findings.note(&BRIDGE_2, Place::Member(misnamed.index()), message);
                misnamed
            }
            None => {
                let hint = "Add \"response\" with the agent's output as a string; null where `status` is not success.";
                return fields.required_or("response", &BRIDGE_1, hint, |_, _| None);
            }
        },
    };
    if value.is_null() {
        return Nullable(None);
    }
    let Some(text) = value.text() else {
        let message = format!("the output is {}, not a string: it was not JSON-encoded", value.kind().described());
        fields.findings.note(&BRIDGE_1_2, Place::Value(value.index()), message);
        return Nullable(None);
    };
    if inner == Inner::Json {
        inner_json(value, text, fields.findings);
    }
    Nullable(Some(text))
}

/// Checks the text inside the response, which is a document of its own, and reports where in the file it goes wrong.
fn inner_json(value: Value<'_, '_>, text: Text<'_>, findings: &mut Findings) {
    let decoded = text.decode();
    let (tape, error) = match Tape::scan(decoded.as_bytes()) {
        Ok(tape) => (tape, None),
        Err(broken) => (broken.so_far, Some(broken.error)),
    };
    let flaws = tape.flaws().iter().filter_map(|flaw| Some((flaw.offset as usize, inner_flaw(flaw.kind)?)));
    let syntax = error.map(|error| (error.offset, (error.kind.message(), error.kind.hint())));
    let mut wrong: Vec<(usize, (&str, &str))> = flaws.chain(syntax).collect();
    wrong.sort_unstable();
    // The offsets ascend from here on, so the text is walked once, however many findings there are.
    let mut places = text.places();
    for (offset, (complaint, hint)) in wrong {
        let place = Place::Inside(value.index(), value.span().0 + 1 + places.raw_offset(offset));
        let message = format!("in the JSON inside `response`: {complaint}");
        findings.note_with_hint(&BRIDGE_5_2, place, message, hint);
    }
}

/// Returns what is wrong with JSON that can be read, and how to mend it. Readers may round numbers as they like.
fn inner_flaw(kind: FlawKind) -> Option<(&'static str, &'static str)> {
    match kind {
        FlawKind::ByteOrderMark => Some(("it begins with a byte order mark", "Remove it; readers refuse it.")),
        FlawKind::RepeatedMember => Some((
            "this name stands earlier in the same object",
            "Remove one of the two; readers disagree on which counts.",
        )),
        FlawKind::LoneSurrogate => {
            Some(("this escape is half of a surrogate pair", "Write both halves, or the character itself."))
        }
        FlawKind::NumberRange => None,
    }
}

fn duration(value: Value<'_, '_>, findings: &mut Findings) -> Option<f64> {
    let quoted_number = value.text().is_some_and(|text| text.decode().trim().parse::<f64>().is_ok());
    if quoted_number {
        complain(value, &BRIDGE_6, "is a string, not a number: the quotes are the mistake", findings);
        return None;
    }
    amount(&BRIDGE_6)(value, findings)
}

/// Checks what success and failure each demand of the three other fields. Values of the wrong type were reported
/// already.
fn status_agrees(fields: &mut Fields<'_, '_, '_>) {
    let Some(status) = fields.peek("status").and_then(Value::text).and_then(<Status as fields::Word>::of) else {
        return;
    };
    let success = status == Status::Success;
    let clause = if success { &BRIDGE_3_2 } else { &BRIDGE_3_3 };
    let mut check = |name: &str, wants_text: bool| {
        let misnamed = if name == "response" { fields.peek("result") } else { None };
        let Some(value) = fields.peek(name).or(misnamed) else { return };
        let complaint = match (value.kind(), wants_text) {
            (Type::Null, true) => "is null",
            (Type::String, true) if !success && value.text().is_some_and(Text::is_empty) => "is empty",
            (Type::String, false) => "is not null",
            _ => return,
        };
        let message = format!("`{name}` {complaint} although `status` is {}", status.word());
        fields.findings.note(clause, Place::Value(value.index()), message);
    };
    check("response", success);
    check("error_message", !success);
    check("error_type", !success);
}
