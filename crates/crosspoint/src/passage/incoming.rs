//! What a caller wants: a request of a contract, read into a new job.
//!
//! The document is kept as it came and its input is a range of it. What the engine acts upon is taken from the homes of
//! the canonical job, so that it does not matter in which contract, or in what was carried, it stood.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crosspoint_contracts::content::RawObject;

use crosspoint_contracts::clause::Level;

use crosspoint_contracts::document::Document;
use crosspoint_contracts::job::{Home, Job as Canonical};
use crosspoint_contracts::json::{Syntax, Tape, Value};
use crosspoint_contracts::{Finding, Kind, Options, Report, read_jobs};
use crosspoint_engine::content::Block;
use crosspoint_engine::job::{Door, Key, Limits, Priority};
use crosspoint_engine::policy::{ATTEMPTS_MAX, Backoff, DELAY_MAX, Schedule};
use crosspoint_engine::runtime::NewJob;

use super::trace::Trace;

/// So many mistakes are told at one go: a document may have ten thousand, and somebody pays for the answer.
const MISTAKES_MAX: usize = 50;

/// BRIDGE-110: how long a requester waits that does not say it.
const BRIDGE_TIME_DEFAULT: Duration = Duration::from_secs(120);

/// So many warnings are told at one go.
const WARNINGS_MAX: usize = 20;

/// What came beside the document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers {
    /// `Idempotency-Key`
    pub(crate) key: Option<Box<str>>,
    /// `traceparent`
    pub(crate) trace: Option<Trace>,
}

/// A request that can become a job.
pub(crate) struct Incoming {
    /// The job.
    pub(crate) new: NewJob,
    /// The stage of a workflow that it is part of.
    pub(crate) stage: Option<String>,
    /// Whether it was a document of another contract before: what that has and this has not is carried in it.
    pub(crate) is_translated: bool,
    /// What is wrong with the document, and was taken all the same.
    loose: Vec<Finding>,
    /// Whether the header and the document name two traces (TASK-8.2).
    traces_differ: bool,
}

impl Incoming {
    /// What was loose about the request, each rule with its id.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let found = self.loose.iter().take(WARNINGS_MAX);
        let found = found.map(|finding| format!("{}: {}", finding.clause.id, finding.message));
        let traces = "TASK-8.2: the traceparent header and the document name two traces; the header counts";
        found.chain(self.traces_differ.then(|| traces.to_owned())).collect()
    }
}

/// Reads a request of a contract. An error says what is wrong with it, and nothing of what is merely loose.
pub(crate) fn read(kind: Kind, document: &Bytes, headers: Headers) -> Result<Incoming, Box<Report>> {
    let options = Options { kind: Some(kind), ..Options::default() };
    let (reading, jobs) = read_jobs(document, &options);
    let (Some(read), Some(job)) = (&reading.document, jobs.into_iter().next()) else {
        return Err(Box::new(mistakes(reading.report)));
    };
    // What is carried may name an id that somebody further up knows it by; whoever sent this knows it by the one that it wrote.
    let (door, request_id, input) = if let Document::RunRequest(request) = read {
        (Door::Run, request.request_id.get(), request.inputs.map(RawObject::get))
    } else if let Document::TaskRequest(request) = read {
        (Door::Task, request.id.get(), Some(request.payload.get()))
    } else if let Document::BridgeRequest(request) = read {
        // Prompt and context are two members: no range of the document is the input.
        (Door::Bridge, request.request_id.get(), None)
    } else {
        // Only these have a door of this kind.
        return Err(Box::new(reading.report));
    };
    let request_id = request_id.into_owned();
    let key = match headers.key {
        Some(key) => Key::Other(key),
        None if door == Door::Run => Key::Other(run_key(&job, &request_id)),
        None => Key::RequestId,
    };
    let own = own_trace(&job);
    let traces_differ = matches!((&headers.trace, &own), (Some(header), Some(own)) if !header.is_place_of(own));
    let new = NewJob {
        door,
        // Without tokens everyone is the same caller.
        caller: Arc::default(),
        request_id: Some(request_id.into()),
        key,
        work: text(&job, Home::Work).unwrap_or_default().into(),
        agent: text(&job, Home::Target).map(Into::into),
        priority: text(&job, Home::Priority).and_then(|name| Priority::from_name(&name)).unwrap_or_default(),
        limits: limits(&job, door),
        parent: None,
        document: Block(document.clone()),
        input: input.map_or(0..0, |input| place(document, input)),
        trace: headers.trace.or(own).map(|trace| trace.header().into()),
    };
    let stage = text(&job, Home::Stage);
    let is_translated = job.origin.contract() != kind.contract();
    Ok(Incoming { new, stage, is_translated, loose: reading.report.findings, traces_differ })
}

/// The trace that the document itself names. One without a span is followed too, under a parent that stands for its caller.
fn own_trace(job: &Canonical<'_>) -> Option<Trace> {
    let id = |home| text(job, home).map(|id| id.to_ascii_lowercase());
    let (trace, span) = (id(Home::Trace)?, id(Home::Span));
    let own = span.and_then(|span| Trace::of(&trace, &span));
    own.or_else(|| Trace::of(&trace, trace.get(..16)?)).or_else(|| Trace::of(&trace, trace.get(16..)?))
}

/// The mistakes of a report, as they are told to whoever has sent a body. Those past the limit are counted.
fn mistakes(mut report: Report) -> Report {
    let count = report.count(Level::Error);
    report.findings.retain(|finding| finding.clause.level == Level::Error);
    report.findings.truncate(MISTAKES_MAX);
    report.unlisted_errors = count - report.findings.len();
    report.unlisted = report.unlisted_errors;
    for finding in &mut report.findings {
        if let Some(hint) = hint_for_a_body(finding) {
            finding.hint = hint.into();
        }
    }
    report
}

/// Hints that speak of files help nobody who has sent a body.
fn hint_for_a_body(finding: &Finding) -> Option<&'static str> {
    const CUT: [Syntax; 4] = [Syntax::Empty, Syntax::EndsInString, Syntax::EndsInObject, Syntax::EndsInArray];
    let is = |syntax: Syntax| finding.hint == syntax.hint();
    match finding.clause.id {
        "ALL-101" if CUT.into_iter().any(is) => Some("The body looks cut off: send the whole document."),
        "ALL-101" if is(Syntax::Trailing) => {
            Some("One request holds one document: remove the rest, or send it by itself.")
        }
        "ALL-102" => Some("Send the document as UTF-8."),
        _ => None,
    }
}

/// Says of how many mistakes one is told, where there are several.
pub(crate) fn one_of_all(report: &Report) -> String {
    let count = report.count(Level::Error);
    if count > 1 { format!(" (one of {count} errors)") } else { String::new() }
}

/// The names that stand under these members of a document that cannot be read as a whole, where they can be found.
pub(crate) fn names_in<const N: usize>(document: &[u8], members: [&str; N]) -> [Option<String>; N] {
    let scanned = Tape::scan(document);
    let root = match &scanned {
        Ok(tape) => tape.root(),
        Err(broken) => broken.so_far.root(),
    };
    members.map(|member| {
        let value = root?.get(member)?;
        // What is cut off in the middle is no name that anybody gave.
        let is_whole = scanned.is_ok() || Tape::scan(value.source().as_bytes()).is_ok();
        Some(value.text()?.decode().into_owned()).filter(|name| is_whole && !name.is_empty())
    })
}

/// ALL-1: one trace id may cover several stages. No header can hold the sign that parts them.
fn run_key(job: &Canonical<'_>, request_id: &str) -> Box<str> {
    let (work, stage) = (text(job, Home::Work).unwrap_or_default(), text(job, Home::Stage));
    // That there is no stage is something else than one without a name.
    let stage = stage.map(|stage| format!("\u{1f}{stage}")).unwrap_or_default();
    format!("run\u{1f}{}\u{1f}{}\u{1f}{request_id}{work}{stage}", request_id.len(), work.len()).into()
}

fn text(job: &Canonical<'_>, home: Home) -> Option<String> {
    Some(job.get(home)?.text()?.into_owned())
}

/// Where a part of the document stands in it.
fn place(document: &Bytes, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(document.as_ptr() as usize);
    let end = start.wrapping_add(part.len());
    if end <= document.len() { start..end } else { 0..0 }
}

fn limits(job: &Canonical<'_>, door: Door) -> Limits {
    let given: Option<f64> = job.get(Home::SecondsMax).and_then(|seconds| seconds.get().parse().ok());
    let given = given.filter(|seconds| *seconds > 0.0);
    let total = match given {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => (door == Door::Bridge).then_some(BRIDGE_TIME_DEFAULT),
    };
    Limits { total: total.filter(|total| !total.is_zero()), retry: schedule(job), ..Limits::default() }
}

/// TASK-7: what the caller wants, within what we allow.
fn schedule(job: &Canonical<'_>) -> Option<Schedule> {
    let policy = job.get(Home::RetryPolicy)?;
    let tape = Tape::scan(policy.get().as_bytes()).ok()?;
    let root = tape.root()?;
    let number = |name: &str| root.get(name).and_then(Value::float).filter(|number| *number >= 0.0);
    let backoff = root.get("backoffType").and_then(Value::text).map(|name| name.decode().into_owned());
    let default = Schedule::DEFAULT;
    let attempts_max = number("maxAttempts").map_or(default.attempts_max, |attempts| attempts as u32);
    let first = number("initialDelay").and_then(|millis| Duration::try_from_secs_f64(millis / 1_000.0).ok());
    Some(Schedule {
        attempts_max: attempts_max.clamp(1, ATTEMPTS_MAX),
        backoff: match backoff.as_deref() {
            Some("linear") => Backoff::Linear,
            Some("fixed") => Backoff::Fixed,
            Some(_) | None => Backoff::Exponential,
        },
        first: first.unwrap_or(default.first).min(DELAY_MAX),
    })
}
