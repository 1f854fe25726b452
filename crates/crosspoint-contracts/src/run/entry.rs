//! The entry by which shared code finds the run contract.

use super::{Request, Response, clause, exchange, jobs, map, read, schema, stream};
use crate::document::Document;
use crate::kind::{self, Form, Framed, Kind, Marks};
use crate::list::Entry;
use crate::schema::generate;

pub(crate) static CONTRACT: Entry = Entry {
    kinds: &[REQUEST, RESPONSE, STREAM],
    clauses: clause::TABLE,
    map: &map::MAP,
    exchange: &exchange::EXCHANGE,
};

const REQUEST: kind::Entry = kind::Entry {
    kind: Kind::RunRequest,
    form: Form::Object {
        marks: Marks::of(&[
            "request_id",
            "task_type",
            "workflow_id",
            "stage_id",
            "user_id",
            "mode",
            "risk_tier",
            "domain_id",
            "inputs",
            "budgets",
        ]),
        read: |fields, _| Document::RunRequest(read::request(fields)),
    },
    schema: generate::<Request<'_>>,
    file_name: None,
};

const RESPONSE: kind::Entry = kind::Entry {
    kind: Kind::RunResponse,
    form: Form::Object {
        marks: Marks::of(&[
            "request_id",
            "status",
            "ok",
            "success",
            "outputs",
            "data",
            "artifacts",
            "provenance",
            "usage",
            "warnings",
            "grounding",
            "error",
        ])
        .word("status", &["ok", "success", "error"]),
        read: |fields, _| Document::RunResponse(read::response(fields)),
    },
    schema: generate::<Response<'_>>,
    file_name: None,
};

const STREAM: kind::Entry = kind::Entry {
    kind: Kind::RunStream,
    form: Form::Framed(Framed {
        looks_like: stream::looks_like,
        read: |bytes, extent| {
            let (report, stream) = stream::read(bytes, extent);
            (report, stream.map(Document::RunStream))
        },
        jobs: jobs::of_stream,
        piece: jobs::of_progress,
        frame: jobs::frame,
    }),
    schema: schema::stream,
    file_name: Some(|name| name.ends_with(".sse")),
};
