//! The entry by which shared code finds the message contract.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::read::{self, message};
use super::{ErrorReport, Message, MessageType, WorkRequest, WorkResult, WorkStatus, clause, error, exchange, map};
use crate::document::Document;
use crate::kind::{self, Form, Kind, Marks};
use crate::list::Entry;
use crate::schema::generate;

pub(crate) static CONTRACT: Entry = Entry {
    kinds: &[WORK_REQUEST, WORK_STATUS, WORK_RESULT, ERROR],
    clauses: clause::TABLE,
    map: &map::MAP,
    exchange: &exchange::EXCHANGE,
};

/// The type and the members of the payload tell the four kinds apart.
const fn marks(message_type: &'static [&'static str], payload: &'static [&'static str]) -> Marks {
    Marks::of(ENVELOPE).unweighed(LATER).word("type", message_type).inside("payload", payload)
}

const ENVELOPE: &[&str] = &[
    "protocol_version",
    "message_id",
    "from_agent",
    "to_agent",
    "timestamp",
    "trace_id",
    "request_id",
    "type",
    "payload",
    "x_custom_fields",
    "priority",
];

/// Members of the later dialect.
const LATER: &[&str] = &["priority"];

/// Returns the schema of the envelope around a payload, with the one word that its type must be.
fn schema<Payload: JsonSchema>(message_type: MessageType) -> Value {
    let mut schema = generate::<Message<'_, Payload>>();
    schema["allOf"] = json!([{ "properties": { "type": { "const": message_type.word() } } }]);
    schema
}

const WORK_REQUEST: kind::Entry = kind::Entry {
    kind: Kind::WorkRequest,
    form: Form::Object {
        marks: marks(&["work_request"], &["work_type", "parameters", "hints"]),
        read: |fields, options| {
            Document::WorkRequest(message(fields, MessageType::WorkRequest, options, read::work_request))
        },
    },
    schema: || schema::<WorkRequest<'_>>(MessageType::WorkRequest),
    file_name: None,
};

const WORK_STATUS: kind::Entry = kind::Entry {
    kind: Kind::WorkStatus,
    form: Form::Object {
        marks: marks(&["work_status"], &["progress_percent", "step", "agent_type", "current_task_id", "resources"]),
        read: |fields, options| {
            Document::WorkStatus(message(fields, MessageType::WorkStatus, options, |payload| {
                read::work_status(payload, options)
            }))
        },
    },
    schema: || schema::<WorkStatus<'_>>(MessageType::WorkStatus),
    file_name: None,
};

const WORK_RESULT: kind::Entry = kind::Entry {
    kind: Kind::WorkResult,
    form: Form::Object {
        marks: marks(&["work_result"], &["exit_code", "output", "resources_used"]),
        read: |fields, options| {
            Document::WorkResult(message(fields, MessageType::WorkResult, options, read::work_result))
        },
    },
    schema: || schema::<WorkResult<'_>>(MessageType::WorkResult),
    file_name: None,
};

const ERROR: kind::Entry = kind::Entry {
    kind: Kind::MessageError,
    form: Form::Object {
        marks: marks(&["error"], &["error_code", "error_message", "error_context"]),
        read: |fields, options| Document::MessageError(message(fields, MessageType::Error, options, error::read)),
    },
    schema: || schema::<ErrorReport<'_>>(MessageType::Error),
    file_name: None,
};
