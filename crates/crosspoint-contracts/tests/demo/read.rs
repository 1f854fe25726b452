//! Reading question and answer, clause by clause.

use super::clause::*;
use super::wire::{Answer, Ask, Id};
use crate::fields::{Fields, boolean, name, opaque};

pub(crate) fn ask<'s>(fields: &mut Fields<'_, 's, '_>) -> Ask<'s> {
    Ask {
        id: Id(fields.required("id", &DEMO_101, name(&DEMO_101))),
        work: fields.required("work", &DEMO_102, name(&DEMO_102)),
        input: fields.optional("input", opaque(&DEMO_103)),
        extra: fields.rest(),
    }
}

pub(crate) fn answer<'s>(fields: &mut Fields<'_, 's, '_>) -> Answer<'s> {
    Answer {
        id: Id(fields.required("id", &DEMO_101, name(&DEMO_101))),
        ok: fields.required("ok", &DEMO_104, boolean(&DEMO_104)),
        output: fields.required("output", &DEMO_103, opaque(&DEMO_103)),
        extra: fields.rest(),
    }
}
