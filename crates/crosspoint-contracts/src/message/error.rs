//! Reads an error payload. Its code decides which fields its context must have.

use std::ops::RangeInclusive;

use super::clause::{MSG_4, MSG_4_2, MSG_16, MSG_114, MSG_115, MSG_116};
use super::code;
use super::read::later;
use super::wire::{Dialect, ErrorReport};
use crate::fields::{ANY, Fields, array, complain, integer, opaque, string, timestamp};
use crate::json::{Type, Value};
use crate::report::{Findings, Place};
use crate::timestamp::PATTERN;

/// The type of a context field.
#[derive(Clone, Copy)]
pub(crate) enum ContextField {
    Integer,
    String,
    StringOrNull,
    Timestamp,
    TimestampOrNull,
    Strings,
}

impl ContextField {
    /// Returns the JSON Schema. `nullable` keeps this null when the null of optional members is taken away.
    pub(crate) fn schema(self) -> serde_json::Value {
        match self {
            ContextField::Integer => serde_json::json!({ "type": "integer" }),
            ContextField::String => serde_json::json!({ "type": "string" }),
            ContextField::Timestamp => serde_json::json!({ "type": "string", "pattern": PATTERN }),
            ContextField::StringOrNull => serde_json::json!({ "type": ["string", "null"], "nullable": true }),
            ContextField::TimestampOrNull => {
                serde_json::json!({ "type": ["string", "null"], "pattern": PATTERN, "nullable": true })
            }
            ContextField::Strings => serde_json::json!({ "type": "array", "items": { "type": "string" } }),
        }
    }

    pub(super) fn check(self, value: Value<'_, '_>, findings: &mut Findings) {
        let clause = &MSG_4_2;
        // Only the findings matter; the values stay in the opaque context.
        match self {
            ContextField::Integer => void(integer(clause, ANY)(value, findings)),
            ContextField::StringOrNull | ContextField::TimestampOrNull if value.is_null() => {}
            ContextField::String | ContextField::StringOrNull => void(string(clause)(value, findings)),
            ContextField::Timestamp | ContextField::TimestampOrNull => void(timestamp(clause)(value, findings)),
            ContextField::Strings => void(array(clause, string(clause))(value, findings)),
        }
    }
}

fn void<T>(_: Option<T>) {}

/// The error codes, each with the context fields that it demands.
pub(crate) const CONTEXT_FIELDS: &[(i64, &[(&str, ContextField)])] = &[
    (code::TIMEOUT, &[("attempted_retries", ContextField::Integer), ("last_attempt", ContextField::Timestamp)]),
    (code::UNAVAILABLE, &[("agent_id", ContextField::String), ("last_heartbeat", ContextField::TimestampOrNull)]),
    (code::INVALID_MESSAGE, &[("validation_error", ContextField::String), ("field_name", ContextField::StringOrNull)]),
    (code::AUTHENTICATION_FAILED, &[("agent_id", ContextField::String), ("token_status", ContextField::String)]),
    (
        code::RESOURCE_LIMIT,
        &[
            ("limit_name", ContextField::String),
            ("available", ContextField::Integer),
            ("required", ContextField::Integer),
        ],
    ),
    (code::UNSUPPORTED, &[("work_type_requested", ContextField::String), ("supported_types", ContextField::Strings)]),
];

pub(crate) fn read<'s>(fields: &mut Fields<'_, 's, '_>) -> ErrorReport<'s> {
    let dialect = if !fields.has("error_context") && fields.has("context") { Dialect::Later } else { Dialect::V1 };
    match dialect {
        Dialect::Later => {
            fields.note_member("context", &MSG_16, "`context` is of the later dialect; v1.0 says `error_context`");
        }
        Dialect::V1 if !fields.has("error_context") => fields.missing("error_context", &MSG_4_2),
        Dialect::V1 => {}
    }
    let context = fields.peek("error_context").or_else(|| fields.peek("context"));
    let report = ErrorReport {
        error_code: fields.required("error_code", &MSG_114, |value, findings| error_code(value, dialect, findings)),
        error_message: fields.required("error_message", &MSG_114, string(&MSG_115)),
        error_context: fields.optional("error_context", opaque(&MSG_116)),
        context: later(fields, dialect, "context", opaque(&MSG_116)),
        extra: fields.rest(),
    };
    if let Some(context) = context.filter(|value| value.kind() == Type::Object) {
        context_fields(report.error_code, context, fields.findings);
    }
    report
}

/// Reads a code. The later dialect has codes of its own outside the range, which are kept (MSG-16).
fn error_code(value: Value<'_, '_>, dialect: Dialect, findings: &mut Findings) -> Option<i64> {
    let code = integer(&MSG_4, ANY)(value, findings)?;
    if CODES.contains(&code) {
        return Some(code);
    }
    match dialect {
        Dialect::Later => {
            complain(value, &MSG_16, "is outside the range of v1.0, and reads as the agent's own", findings);
            Some(code)
        }
        Dialect::V1 => integer(&MSG_4, CODES)(value, findings),
    }
}

/// The codes that the contract keeps for errors.
const CODES: RangeInclusive<i64> = 5001..=5999;

fn context_fields(code: i64, context: Value<'_, '_>, findings: &mut Findings) {
    let Some((_, wanted)) = CONTEXT_FIELDS.iter().find(|(row, _)| *row == code) else { return };
    for &(name, kind) in *wanted {
        match context.get(name) {
            Some(value) => kind.check(value, findings),
            None => {
                let message = format!("`{name}` is missing from the context of error {code}");
                findings.note(&MSG_4_2, Place::Missing(context.index(), name), message);
            }
        }
    }
}
