//! Reading what the server wants.

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::{Levels, Tape, Value};

/// What the server wants.
pub(super) struct Instructions {
    pub(super) jobs: Vec<Given>,
    pub(super) stop: Vec<(String, u32)>,
    pub(super) answers: Vec<Answer>,
}

/// A job to do.
pub(super) struct Given {
    pub(super) id: String,
    pub(super) attempt: u32,
    pub(super) work: String,
    pub(super) request_id: String,
    pub(super) output_offset: u64,
    pub(super) traceparent: String,
    pub(super) tracestate: String,
    pub(super) input: Body,
}

/// What a person has answered.
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) attempt: u32,
    pub(super) number: u32,
    pub(super) input: Body,
}

impl Instructions {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.stop.is_empty() && self.answers.is_empty()
    }
}

/// Reads the answer to a call for work; `None` says that it is not one of a Crosspoint server.
pub(super) fn read(answer: &Bytes) -> Option<Instructions> {
    // Inputs and answers are as deep as callers may write them, and here they are nested in further levels.
    let tape = Tape::scan_within(answer, Levels::Wrapped).ok()?;
    let root = tape.root()?;
    Some(Instructions {
        jobs: root.get("jobs")?.items().map(|job| given(answer, job)).collect::<Option<Vec<Given>>>()?,
        stop: root.get("stop")?.items().map(attempt).collect::<Option<Vec<(String, u32)>>>()?,
        answers: root.get("answers")?.items().map(|item| answered(answer, item)).collect::<Option<Vec<Answer>>>()?,
    })
}

fn given(answer: &Bytes, job: Value<'_, '_>) -> Option<Given> {
    let (id, attempt) = attempt(job)?;
    let offset = job.get("output_offset").and_then(Value::integer).unwrap_or(0);
    Some(Given {
        id,
        attempt,
        work: text(job, "work")?,
        request_id: text(job, "request_id")?,
        output_offset: u64::try_from(offset).ok()?,
        // Servers of an earlier version name none.
        traceparent: text(job, "traceparent").unwrap_or_default(),
        tracestate: text(job, "tracestate").unwrap_or_default(),
        input: body(answer, job, "input")?,
    })
}

fn answered(answer: &Bytes, item: Value<'_, '_>) -> Option<Answer> {
    let (id, attempt) = attempt(item)?;
    let number = u32::try_from(item.get("n")?.integer()?).ok()?;
    Some(Answer { id, attempt, number, input: body(answer, item, "input")? })
}

fn attempt(item: Value<'_, '_>) -> Option<(String, u32)> {
    Some((text(item, "id")?, u32::try_from(item.get("attempt")?.integer()?).ok()?))
}

fn text(item: Value<'_, '_>, name: &str) -> Option<String> {
    Some(item.get(name)?.text()?.decode().into_owned())
}

fn body(answer: &Bytes, item: Value<'_, '_>, name: &str) -> Option<Body> {
    let (start, end) = item.get(name)?.span();
    Some(Body::trusted(answer.slice(start..end)))
}
