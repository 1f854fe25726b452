//! What the demo contract is to the rest of the crate.

use super::{Answer, Ask, clause, exchange, map, read};
use crate::document::Document;
use crate::kind::{self, Form, Kind, Marks};
use crate::list::Entry;
use crate::schema::generate;

pub(crate) static CONTRACT: Entry =
    Entry { kinds: &[ASK, ANSWER], clauses: clause::TABLE, map: &map::MAP, exchange: &exchange::EXCHANGE };

/// Others were told by these names before, and are still.
const SHARED: &[&str] = &["id"];

const ASK: kind::Entry = kind::Entry {
    kind: Kind::DemoAsk,
    form: Form::Object {
        marks: Marks::of(&["id", "work", "input"]).unweighed(SHARED),
        read: |fields, _| Document::DemoAsk(read::ask(fields)),
    },
    schema: generate::<Ask<'_>>,
    file_name: None,
};

const ANSWER: kind::Entry = kind::Entry {
    kind: Kind::DemoAnswer,
    form: Form::Object {
        marks: Marks::of(&["id", "ok", "output"]).unweighed(SHARED),
        read: |fields, _| Document::DemoAnswer(read::answer(fields)),
    },
    schema: generate::<Answer<'_>>,
    file_name: None,
};
