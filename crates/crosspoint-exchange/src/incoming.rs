//! Reads a caller's request of a contract into a new job.
//!
//! The document is kept as it came and its input is a range of it. What the engine acts upon is taken from the homes of
//! the canonical job, so that it does not matter in which contract, or in which carried member, it was written.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::exchange::{Exchange, Seconds};
use crosspoint_contracts::job::{Canonical, Growth, Home};
use crosspoint_contracts::json::{Syntax, Tape, Value};
use crosspoint_contracts::request::{ATTEMPTS_MAX, Backoff, DELAY_MAX, Door, Key, Limits, NewJob, Priority, Schedule};
use crosspoint_contracts::translate::{Request, read_request};
use crosspoint_contracts::{Contract, Finding, Report};

use super::admission::Headers;
use super::echo::Echo;
use super::trace::Trace;

/// Most mistakes that are reported at once. A document may have ten thousand, and an answer that lists them costs.
const MISTAKES_MAX: usize = 50;

/// About how long a request key of several names is, in bytes.
const KEY_BYTES: usize = 96;

/// Most warnings that are reported at once.
const WARNINGS_MAX: usize = 20;

/// A request that can become a job.
pub struct Incoming {
    /// The job that the request asks for.
    pub new: NewJob,
    /// The lengths of its names, in bytes, by the pointer of their member.
    name_bytes: Vec<(&'static str, usize)>,
    /// Whether it was translated from another contract. Members that only that contract has are carried in it.
    pub is_translated: bool,
    /// Findings of the document that did not prevent its acceptance.
    loose: Vec<Finding>,
    /// Whether the header and the document name two traces (TASK-8.2).
    traces_differ: bool,
}

impl Incoming {
    /// Returns the warnings about the request, each with the id of its clause.
    pub fn warnings(&self) -> Vec<String> {
        let found = self.loose.iter().take(WARNINGS_MAX);
        let found = found.map(|finding| format!("{}: {}", finding.clause.id, finding.message));
        let traces = "TASK-8.2: the traceparent header and the document name two traces; the header counts";
        found.chain(self.traces_differ.then(|| traces.to_owned())).collect()
    }

    /// Returns the pointer of a name that is longer than this, in bytes.
    pub fn name_over(&self, bytes_max: usize) -> Option<&'static str> {
        self.name_bytes.iter().find(|(_, bytes)| *bytes > bytes_max).map(|(pointer, _)| *pointer)
    }
}

/// Reads a request of a contract. The report of an error has only errors, no warnings.
pub fn read(contract: Contract, document: &Bytes, headers: Headers) -> Result<Incoming, Box<Report>> {
    let exchange = contract.exchange();
    let agent_types: Vec<&str> = headers.agent_types.iter().map(|name| &**name).collect();
    let Request { reading, job, echoes } = read_request(contract, document, &agent_types);
    let asked = reading.document.as_ref().and_then(exchange.asked);
    let (Some(asked), Some(job)) = (asked, job) else {
        return Err(Box::new(mistakes(reading.report)));
    };
    let request_id: Box<str> = asked.id.unwrap_or_default().into();
    let own = own_trace(&job);
    let traces_differ = matches!((&headers.trace, &own), (Some(header), Some(own)) if !header.is_place_of(own));
    let length = |home| match home == Home::RequestId {
        true => request_id.len(),
        false => text(&job, home).map_or(0, |name| name.len()),
    };
    let name_bytes = exchange.names.iter().map(|(pointer, home)| (*pointer, length(*home))).collect();
    let target = text(&job, Home::Target);
    // A target that the document itself does not have is carried, and is the name of an agent, unless it came from a
    // contract in which it is a type.
    let is_type = is_for_type(&job);
    let pinned = target.as_deref().filter(|target| !is_type && asked.recipient.as_deref() != Some(target));
    let addressed = asked.addressed.filter(|addressed| target.as_deref() == Some(addressed));
    let is_translated = job.origin.contract() != contract;
    let echo = Echo::read_in_request(echoes, is_translated).stored(addressed.is_some());
    let new = NewJob {
        door: Door::Contract(contract),
        caller: headers.caller.into(),
        key: headers.key.map_or_else(|| own_key(contract, &job, &request_id), Key::Other),
        request_id: Some(request_id),
        work: text(&job, Home::Work).unwrap_or_default().into(),
        agent: headers.agent.or_else(|| pinned.map(Into::into)),
        addressed: addressed.map(Into::into),
        priority: text(&job, Home::Priority).and_then(|name| Priority::from_name(&name)).unwrap_or_default(),
        limits: limits(&job, exchange),
        document: Block(document.clone()),
        input: asked.input.map_or(0..0, |input| range_in(document, input)),
        trace: headers.trace.or(own).map(|trace| trace.stored().into()),
        echo,
        notify: headers.notify,
    };
    Ok(Incoming { new, name_bytes, is_translated, loose: reading.report.findings, traces_differ })
}

/// Whether the target of a request is a type of agents, as it is in the contract that the request came from first.
pub(crate) fn is_for_type(job: &Canonical<'_>) -> bool {
    !job.origin.contract().exchange().types.is_empty()
}

/// Returns the trace that the document itself names. A trace without a span is followed too, under a parent that stands
/// for its caller.
fn own_trace(job: &Canonical<'_>) -> Option<Trace> {
    let id = |home| text(job, home).map(|id| id.to_ascii_lowercase());
    let (trace, span) = (id(Home::Trace)?, id(Home::Span));
    let own = span.and_then(|span| Trace::of(&trace, &span));
    own.or_else(|| Trace::of(&trace, trace.get(..16)?)).or_else(|| Trace::of(&trace, trace.get(16..)?))
}

/// Prepares a report for the sender of a body: errors only, with hints for bodies. Errors past the limit are counted.
fn mistakes(mut report: Report) -> Report {
    let count = report.count(Level::Error);
    report.findings.retain(|finding| finding.level == Level::Error);
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

/// Replaces hints that speak of files, which do not help the sender of a body.
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

/// Says that this is one of several errors, if it is.
pub fn one_of_all(report: &Report) -> String {
    let count = report.count(Level::Error);
    if count > 1 { format!(" (one of {count} errors)") } else { String::new() }
}

/// Finds the names at these members of a document that cannot be read as a whole.
pub fn names_in<const N: usize>(document: &[u8], members: [&str; N]) -> [Option<String>; N] {
    let mut names = names_of(document, &members).into_iter();
    members.map(|_| names.next().flatten())
}

/// Like [`names_in`], for any number of members.
pub(crate) fn names_of(document: &[u8], members: &[&str]) -> Vec<Option<String>> {
    let scanned = Tape::scan(document);
    let root = match &scanned {
        Ok(tape) => tape.root(),
        Err(broken) => broken.so_far.root(),
    };
    let name = |member: &&str| {
        // A contract without such a member has an empty name for it.
        let root = root.filter(|_| !member.is_empty())?;
        let value = member.split('/').try_fold(root, Value::get)?;
        // A name that was cut off in the middle is not the caller's name.
        let is_whole = scanned.is_ok() || Tape::scan(value.source().as_bytes()).is_ok();
        Some(value.text()?.decode().into_owned()).filter(|name| is_whole && !name.is_empty())
    };
    members.iter().map(name).collect()
}

/// ALL-1: returns the request key if no header gives one: the id, or several names together.
fn own_key(contract: Contract, job: &Canonical<'_>, request_id: &str) -> Key {
    let homes = match contract.key_homes() {
        [] => return Key::None,
        [Home::RequestId] => return Key::RequestId,
        homes => homes,
    };
    let name = |home: Home| match home == Home::RequestId {
        true => Some(Cow::Borrowed(request_id)),
        false => text(job, home),
    };
    let (last, first) = homes.split_last().map_or((None, homes), |(last, first)| (name(*last), first));
    // No header can contain the separator, and the lengths of all names but the last are part of the key.
    let mut key = String::with_capacity(KEY_BYTES);
    key.push_str(contract.name());
    key.push('\u{1f}');
    for (at, home) in first.iter().enumerate() {
        // Writing to memory does not fail.
        let separator = if at > 0 { "\u{1f}" } else { "" };
        let _ = write!(key, "{separator}{}", name(*home).unwrap_or_default().len());
    }
    key.push('\u{1f}');
    first.iter().filter_map(|home| name(*home)).for_each(|name| key.push_str(&name));
    // A missing last name is something else than an empty one.
    if let Some(last) = last {
        key.push('\u{1f}');
        key.push_str(&last);
    }
    Key::Other(key.into())
}

fn text<'j>(job: &'j Canonical<'_>, home: Home) -> Option<Cow<'j, str>> {
    job.get(home)?.text()
}

/// Returns the range of a part of the document.
fn range_in(document: &Bytes, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(document.as_ptr() as usize);
    let end = start.wrapping_add(part.len());
    if end <= document.len() { start..end } else { 0..0 }
}

fn limits(job: &Canonical<'_>, exchange: &Exchange) -> Limits {
    let given: Option<f64> = job.get(Home::SecondsMax).and_then(|seconds| seconds.get().parse().ok());
    // 0 means no limit.
    let time = match given.filter(|seconds| *seconds > 0.0) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => exchange.seconds_default.map(|seconds| Duration::from_secs(seconds.into())),
    };
    let time = time.filter(|time| !time.is_zero());
    let limits = Limits { retry: schedule(job), memory_bytes: memory(job), ..Limits::default() };
    match exchange.seconds {
        Seconds::Total => Limits { total: time, ..limits },
        Seconds::EachAttempt { grace_seconds } => {
            let grace = Duration::from_secs(grace_seconds.into());
            Limits { attempt: time.map(|time| time.saturating_add(grace)), ..limits }
        }
    }
}

/// Returns how much memory a program may use, in bytes (MSG-6.5); 0 means no limit.
fn memory(job: &Canonical<'_>) -> Option<u64> {
    let megabytes: f64 = job.get(Home::MemoryMax)?.get().parse().ok()?;
    let bytes = megabytes * f64::from(1_u32 << 20);
    (bytes >= 1.0).then_some(bytes as u64)
}

/// TASK-7: returns the caller's retry policy, within the limits of this server.
fn schedule(job: &Canonical<'_>) -> Option<Schedule> {
    let wanted = job.retry_policy()?;
    let default = Schedule::DEFAULT;
    let attempts_max = wanted.attempts_max.map_or(default.attempts_max, |attempts| attempts as u32);
    let first = wanted.first_millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1_000.0).ok());
    Some(Schedule {
        attempts_max: attempts_max.clamp(1, ATTEMPTS_MAX),
        backoff: match wanted.growth {
            Growth::Linear => Backoff::Linear,
            Growth::Fixed => Backoff::Fixed,
            Growth::Exponential => Backoff::Exponential,
        },
        first: first.unwrap_or(default.first).min(DELAY_MAX),
    })
}
