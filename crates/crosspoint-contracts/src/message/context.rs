//! The context of an error, which must have the fields that the error's code demands (MSG-4.2).
//!
//! Other contracts call it details. Fields that the code demands are added to details that lack them, and are removed
//! again on the way back. The task of an error stands here too, because its payload has no place for it (MSG-19).

use super::error::{CONTEXT_FIELDS, ContextField};
use super::map::error_code;
use crate::content::Json;
use crate::failure::Failure;
use crate::fields::is_uuid;
use crate::job::{Canonical, Home};
use crate::json::{Tape, Type, Value, push_name};
use crate::map::{Codec, In, Out, WriteContext, without};
use crate::report::Findings;

/// The task that an error is about.
const TASK_ID: &str = "task_id";

/// The fields that a code demands.
fn demanded(code: i64) -> &'static [(&'static str, ContextField)] {
    CONTEXT_FIELDS.iter().find(|(row, _)| *row == code).map_or(&[], |(_, fields)| fields)
}

pub(super) fn write(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    let job = out.job();
    let wanted = demanded(error_code(job));
    let details = job.get(Home::Details).map_or("", Json::get);
    let tape = Tape::scan(details.as_bytes()).ok();
    let object = tape.as_ref().and_then(Tape::root).filter(|root| fits(*root, wanted));
    let mut text = String::from("{");
    if let Some(object) = object {
        out.take(Home::Details);
        object.members().for_each(|(name, value)| {
            push_name(&mut text, &name.decode());
            text.push_str(value.source());
        });
    }
    let lacks_task = object.is_none_or(|object| object.get(TASK_ID).is_none());
    if let Some(task_id) = job.get(Home::TaskId).filter(|_| lacks_task) {
        let written = Codec::Uuid.write(task_id.get(), out.context()).into_owned();
        push_name(&mut text, TASK_ID);
        text.push_str(&written);
        match object {
            Some(_) if written == task_id.get() => out.take(Home::TaskId),
            Some(_) => out.enter(TASK_ID, |out| out.stands_in(Json::new(written))),
            // The whole context stands in for nothing, and the task is carried.
            None => {}
        }
    }
    let missing = wanted.iter().filter(|(name, _)| object.is_none_or(|object| object.get(name).is_none()));
    for (name, _) in missing {
        let value = made_up(name, job, out.context());
        push_name(&mut text, name);
        text.push_str(value.get());
        if object.is_some() {
            out.enter(name, |out| out.stands_in(value));
        }
    }
    text.push('}');
    if object.is_none() {
        out.stands_in(Json::new(text.clone()));
    }
    Some(Json::new(text))
}

/// Whether details can be the context: every demanded field that they have is of the right type.
fn fits(details: Value<'_, '_>, wanted: &[(&str, ContextField)]) -> bool {
    let mut findings = Findings::default();
    for (name, field) in wanted {
        if let Some(value) = details.get(name) {
            field.check(value, &mut findings);
        }
    }
    details.kind() == Type::Object && !findings.any_error()
}

/// Returns the value of a demanded field that the details do not have.
fn made_up(name: &str, job: &Canonical<'_>, context: &WriteContext<'_>) -> Json<'static> {
    let held = |home: Home| job.get(home).cloned().map(Json::into_owned);
    if let Some((_, value)) = context.facts.iter().find(|(known, _)| *known == name) {
        return value.clone().into_owned();
    }
    match name {
        "attempted_retries" => held(Home::Retries).unwrap_or_else(|| Json::new("0")),
        "last_attempt" => Json::string(context.now),
        "agent_id" => held(Home::Agent).unwrap_or_else(|| Json::string("unknown")),
        "validation_error" => Json::string(job.failure().unwrap_or(Failure::Invalid).sentence()),
        "token_status" => Json::string("unknown"),
        "limit_name" => Json::string("unknown"),
        "available" | "required" => Json::new("0"),
        "work_type_requested" => held(Home::Work).unwrap_or_else(|| Json::string("")),
        "supported_types" => Json::new("[]"),
        // `last_heartbeat` and `field_name` may be null.
        _ => Json::new("null"),
    }
}

pub(super) fn read<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if found.is_stand_in(value) {
        return;
    }
    if value.kind() != Type::Object {
        return found.keep(value);
    }
    let rest = found.without_stand_ins(value).get().to_owned();
    let Ok(tape) = Tape::scan(rest.as_bytes()) else { return };
    let Some(details) = tape.root() else { return };
    let is_id = |task_id: &Value<'_, '_>| task_id.text().is_some_and(is_uuid);
    let Some(task_id) = details.get(TASK_ID).filter(is_id) else {
        drop(tape);
        return found.job.set(Home::Details, Json::new(rest));
    };
    found.job.set(Home::TaskId, Json::new(task_id.source().to_owned()));
    found.job.set(Home::Details, Json::new(without(details, TASK_ID).into_owned()));
}
