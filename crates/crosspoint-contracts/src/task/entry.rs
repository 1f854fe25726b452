//! The entry by which shared code finds the task contract.

use super::{Request, Response, clause, exchange, map, read};
use crate::document::Document;
use crate::kind::{self, Form, Kind, Marks};
use crate::list::Entry;
use crate::schema::generate;

pub(crate) static CONTRACT: Entry =
    Entry { kinds: &[REQUEST, RESPONSE], clauses: clause::TABLE, map: &map::MAP, exchange: &exchange::EXCHANGE };

const REQUEST: kind::Entry = kind::Entry {
    kind: Kind::TaskRequest,
    form: Form::Object {
        marks: Marks::of(&["id", "type", "payload", "context", "routing", "observability", "retryPolicy"]),
        read: |fields, _| Document::TaskRequest(read::request(fields)),
    },
    schema: generate::<Request<'_>>,
    file_name: None,
};

const RESPONSE: kind::Entry = kind::Entry {
    kind: Kind::TaskResponse,
    form: Form::Object {
        marks: Marks::of(&["id", "status", "result", "error", "metadata", "artifacts", "inputRequest"])
            .word("status", &["pending", "in_progress", "completed", "failed", "cancelled", "input_required"]),
        read: |fields, _| Document::TaskResponse(read::response(fields)),
    },
    schema: generate::<Response<'_>>,
    file_name: None,
};
