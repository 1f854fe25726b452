//! Reading the document of a new job, and the small bodies of other requests.
//!
//! The document is kept as it came and its input is a range of it, so only names are copied. Members that are not known
//! are kept with it and mean nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::json::{Type, Value};
use crosspoint_contracts::request::{ATTEMPTS_MAX, Door, Key, Limits, NewJob, Priority, Schedule};
use crosspoint_engine::policy::OUTPUT_BYTES_MAX;
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::headers::{self, idempotency_key};
use crosspoint_http::json_body::{self, object, scan};

const EXAMPLE: &str = r#"send {"work": "echo", "input": {"message": "hello"}}"#;

/// Reads a request for a new job.
pub(super) fn new_job(document: &Bytes, headers: &HeaderMap, caller: Caller) -> Result<NewJob, Refusal> {
    #[cfg(feature = "leaks")]
    crate::leak::document(document);
    let tape = scan(document)?;
    let root = object(&tape, EXAMPLE)?;
    let mut wanted = Wanted::default();
    // All mistakes are reported at once, so that the caller need not try several times.
    let mut mistakes = Vec::new();
    for (name, value) in root.members() {
        wanted.read(&name.decode(), value, &mut mistakes);
    }
    if wanted.work.is_none() && root.get("work").is_none() {
        mistakes.push(Refusal::invalid("`work` is missing", EXAMPLE).at("/work"));
    }
    let header = noted(idempotency_key(headers), &mut mistakes).flatten();
    let Some(work) = wanted.work.filter(|_| mistakes.is_empty()) else { return Err(Refusal::all(mistakes)) };
    let key = match header {
        Some(key) => Key::Other(key),
        None if wanted.request_id.is_some() => Key::RequestId,
        None => Key::None,
    };
    Ok(NewJob {
        door: Door::Native,
        caller: caller.into(),
        request_id: wanted.request_id,
        key,
        work,
        agent: wanted.agent,
        addressed: None,
        priority: wanted.priority,
        limits: wanted.limits,
        document: Block(document.clone()),
        input: wanted.input,
        trace: headers::trace(headers).map(|trace| trace.stored().into()),
        echo: None,
        notify: None,
    })
}

/// Reads `{"input": any, "question_id"?}`. Returns the input, and the id of the question that it answers.
pub(super) fn answer(document: &Bytes) -> Result<(Body, Option<Box<str>>), Refusal> {
    let tape = scan(document)?;
    let hint = r#"send {"input": "your answer"}"#;
    let body = object(&tape, hint)?;
    let (start, end) =
        body.get("input").ok_or_else(|| Refusal::invalid("`input` is missing", hint).at("/input"))?.span();
    let question = body.get("question_id").filter(|id| !id.is_null());
    let question = question.map(|id| text("/question_id", id)).transpose()?;
    Ok((Body::trusted(document.slice(start..end)), question))
}

/// Reads `{"drained": true|false}`. An empty body means true.
pub(super) fn drained(document: &Bytes) -> Result<bool, Refusal> {
    if document.is_empty() {
        return Ok(true);
    }
    let tape = scan(document)?;
    let hint = r#"send {"drained": true} or {"drained": false}"#;
    let drained = object(&tape, hint)?.get("drained").and_then(Value::boolean);
    drained.ok_or_else(|| Refusal::invalid("`drained` must be true or false", hint).at("/drained"))
}

/// Reads `{"state": "open"|"closed"}`, and returns whether the breaker is to be open.
pub(super) fn breaker_open(document: &Bytes) -> Result<bool, Refusal> {
    let tape = scan(document)?;
    let hint = r#"send {"state": "open"} or {"state": "closed"}"#;
    match object(&tape, hint)?.get("state").and_then(Value::text) {
        Some(state) if state == *"open" => Ok(true),
        Some(state) if state == *"closed" => Ok(false),
        Some(_) | None => Err(Refusal::invalid("`state` must be open or closed", hint).at("/state")),
    }
}

#[derive(Default)]
struct Wanted {
    work: Option<Arc<str>>,
    request_id: Option<Box<str>>,
    agent: Option<Arc<str>>,
    priority: Priority,
    limits: Limits,
    input: Range<usize>,
}

impl Wanted {
    fn read(&mut self, name: &str, value: Value<'_, '_>, mistakes: &mut Vec<Refusal>) {
        match name {
            "input" => {
                let (start, end) = value.span();
                self.input = start..end;
            }
            "work" => self.work = noted(text("/work", value), mistakes).map(Into::into),
            // Clients that write all members of a type write null for those that they do not set.
            "request_id" | "agent" | "priority" | "limits" if value.is_null() => {}
            "request_id" => self.request_id = noted(text("/request_id", value), mistakes),
            "agent" => self.agent = noted(text("/agent", value), mistakes).map(Into::into),
            "priority" => self.priority = noted(priority(value), mistakes).unwrap_or_default(),
            "limits" => self.limits = limits(value, mistakes),
            _ => {}
        }
    }
}

/// Returns the value that was read, or adds its mistake to the list.
fn noted<T>(read: Result<T, Refusal>, mistakes: &mut Vec<Refusal>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(mistake) => {
            mistakes.push(mistake);
            None
        }
    }
}

/// Reads a name: a text that is neither empty nor long.
pub(super) fn text(pointer: &'static str, value: Value<'_, '_>) -> Result<Box<str>, Refusal> {
    let text = value.text().ok_or_else(|| wrong(pointer, value, "a string"))?.decode();
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        let message = format!("`{}` must have 1 to {NAME_BYTES_MAX} bytes", &pointer[1..]);
        return Err(Refusal::invalid(message, "give it a name of its own, or leave it out").at(pointer));
    }
    Ok(text.into())
}

fn priority(value: Value<'_, '_>) -> Result<Priority, Refusal> {
    let named = value.text().and_then(|name| Priority::from_name(&name.decode()));
    named.ok_or_else(|| wrong("/priority", value, &format!("one of {}", Priority::ALL.map(Priority::name).join(", "))))
}

fn limits(value: Value<'_, '_>, mistakes: &mut Vec<Refusal>) -> Limits {
    let mut limits = Limits::default();
    if value.kind() != Type::Object {
        noted::<()>(Err(wrong("/limits", value, "an object")), mistakes);
    }
    for (name, value) in value.members().filter(|(_, value)| !value.is_null()) {
        match &*name.decode() {
            "seconds" => limits.total = noted(seconds(value), mistakes),
            "output_bytes" => limits.output_bytes = noted(output_bytes(value), mistakes),
            "attempts" => limits.retry = noted(attempts(value), mistakes),
            _ => {}
        }
    }
    limits
}

fn seconds(value: Value<'_, '_>) -> Result<Duration, Refusal> {
    let seconds = value.float().filter(|seconds| *seconds > 0.0);
    let total = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    total.ok_or_else(|| wrong("/limits/seconds", value, "a number above 0"))
}

fn output_bytes(value: Value<'_, '_>) -> Result<u64, Refusal> {
    let bytes = value.integer().and_then(|bytes| u64::try_from(bytes).ok());
    let within = bytes.filter(|bytes| *bytes <= OUTPUT_BYTES_MAX);
    within.ok_or_else(|| wrong("/limits/output_bytes", value, &format!("a whole number from 0 to {OUTPUT_BYTES_MAX}")))
}

fn attempts(value: Value<'_, '_>) -> Result<Schedule, Refusal> {
    let attempts = value.integer().and_then(|attempts| u32::try_from(attempts).ok());
    let within = attempts.filter(|attempts| (1..=ATTEMPTS_MAX).contains(attempts));
    let wrong = || wrong("/limits/attempts", value, &format!("a whole number from 1 to {ATTEMPTS_MAX}"));
    Ok(Schedule { attempts_max: within.ok_or_else(wrong)?, ..Schedule::DEFAULT })
}

fn wrong(pointer: &'static str, value: Value<'_, '_>, must_be: &str) -> Refusal {
    json_body::wrong(pointer, value, must_be, EXAMPLE)
}
