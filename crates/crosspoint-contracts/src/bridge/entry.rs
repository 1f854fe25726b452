//! The entry by which shared code finds the bridge contract.

use super::{Request, Response, clause, exchange, map, read};
use crate::document::Document;
use crate::kind::{self, Form, Kind, Marks};
use crate::list::Entry;
use crate::schema::generate;

pub(crate) static CONTRACT: Entry =
    Entry { kinds: &[REQUEST, RESPONSE], clauses: clause::TABLE, map: &map::MAP, exchange: &exchange::EXCHANGE };

const REQUEST: kind::Entry = kind::Entry {
    kind: Kind::BridgeRequest,
    form: Form::Object {
        marks: Marks::of(&[
            "request_id",
            "version",
            "phase",
            "phase_name",
            "agent_name",
            "prompt",
            "timeout_seconds",
            "created_at",
            "context",
            "model",
        ]),
        read: |fields, _| Document::BridgeRequest(read::request(fields)),
    },
    schema: generate::<Request<'_>>,
    file_name: Some(|name| name.starts_with(".agent-request") && name.ends_with(".json")),
};

const RESPONSE: kind::Entry = kind::Entry {
    kind: Kind::BridgeResponse,
    form: Form::Object {
        marks: Marks::of(&[
            "request_id",
            "version",
            "status",
            "response",
            "error_message",
            "error_type",
            "created_at",
            "duration_seconds",
            "metadata",
        ])
        .mistakes(&["result"])
        .word("status", &["success", "error", "timeout"]),
        read: |fields, options| Document::BridgeResponse(read::response(fields, options)),
    },
    schema: generate::<Response<'_>>,
    // A driver renames a response that it finds stale.
    file_name: Some(|name| {
        name.starts_with(".agent-response") && (name.ends_with(".json") || name.contains(".json.stale-"))
    }),
};
