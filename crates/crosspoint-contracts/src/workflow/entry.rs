//! The entry by which shared code finds the workflow contract.

use super::{Input, Output, clause, exchange, map, read};
use crate::document::Document;
use crate::kind::{self, Form, Kind, Marks};
use crate::list::Entry;
use crate::schema::generate;

pub(crate) static CONTRACT: Entry =
    Entry { kinds: &[INPUT, OUTPUT], clauses: clause::TABLE, map: &map::MAP, exchange: &exchange::EXCHANGE };

const INPUT: kind::Entry = kind::Entry {
    kind: Kind::WorkflowInput,
    form: Form::Object {
        marks: Marks::of(&["context", "paths", "task", "prior_context"]),
        read: |fields, _| Document::WorkflowInput(read::input(fields)),
    },
    schema: generate::<Input<'_>>,
    file_name: None,
};

const OUTPUT: kind::Entry = kind::Entry {
    kind: Kind::WorkflowOutput,
    form: Form::Object {
        marks: Marks::of(&["success", "summary", "artifacts", "notes", "recommendation"])
            .word("recommendation", &["proceed", "retry", "escalate"]),
        read: |fields, _| Document::WorkflowOutput(read::output(fields)),
    },
    schema: generate::<Output<'_>>,
    file_name: None,
};
