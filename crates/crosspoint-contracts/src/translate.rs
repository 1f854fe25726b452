//! Translates any contract into any other, and back unchanged.
//!
//! Reading and writing meet only in the [`Canonical`]. One law holds for every pair of contracts: a document that is
//! read from one, written as another, read again and written back is the document that was read, or its strict form
//! where it was loose. This is not achieved by carrying the original along: a value for which the other contract has a
//! field stands in that field, and a change there shows in the document that comes back.

use std::fmt;
use std::ops::Range;

use uuid::Uuid;

use crate::content::Json;
use crate::document::{self, Extent, Options, Reading};
use crate::exchange::{Exchange, Holds, Lack, Part};
use crate::job::{Canonical, Home};
use crate::json::{DEPTH_MAX, Tape, Type, Value, WRAPPING_LEVELS_MAX};
use crate::kind::{self, Contract, Kind};
use crate::map::write::FilledPlaces;
use crate::map::{self, WriteContext};
use crate::needs::Form;
use crate::report::Report;

/// A document that was written.
pub struct Written {
    /// The kind of the document.
    pub kind: Kind,
    text: String,
    /// Facts that its contract has no field for, by home or by place. They were carried, or lost where carrying is off.
    pub homeless: Vec<Homeless>,
    filled: FilledPlaces,
}

/// A fact that a contract has no field for.
#[derive(Clone, PartialEq, Eq)]
pub enum Homeless {
    /// A fact with a name of ours.
    Known(&'static str),
    /// A member of the document's author, by its place or name.
    Own(String),
}

impl Homeless {
    /// Returns the name or place. The author's names may be content.
    pub fn name(&self) -> &str {
        match self {
            Homeless::Known(name) => name,
            Homeless::Own(place) => place,
        }
    }
}

impl fmt::Debug for Homeless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Homeless::Known(name) => f.write_str(name),
            Homeless::Own(place) => write!(f, "[{} bytes]", place.len()),
        }
    }
}

impl Written {
    /// Returns the document: JSON, or events for a `run.stream`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the places of values that were made up or written differently, because the contract demands it.
    pub fn filled(&self) -> impl Iterator<Item = &str> {
        self.filled.iter()
    }

    /// Returns the document, to keep it.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{} bytes]", self.kind, self.text.len())
    }
}

/// Why a job cannot be written in a contract.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The contract has no document for the job.
    #[error("{from} has no counterpart in the {} contract: {why}", to.name())]
    NoCounterpart {
        /// The kind that the job came as.
        from: Kind,
        /// The contract that it was to be written in.
        to: Contract,
        /// Why it has none.
        why: &'static str,
    },
    /// The written document breaks the contract, because a carried value does not fit or the nesting is too deep.
    #[error("the {kind} this becomes breaks its contract")]
    Broken {
        /// The kind that was written.
        kind: Kind,
        /// What is wrong with the document.
        report: Box<Report>,
    },
}

const NOT_ENDED: &str = "the work has not ended, and that contract knows only how work ended";
const NO_JOB: &str = "it is an agent's sign of life, about no job";

/// Reads a document into a job, or a stream into one job for each of its events.
///
/// Returns no job where the document has an error, or is about no job, such as a heartbeat.
pub fn read_jobs<'s>(bytes: &'s [u8], options: &Options<'_>) -> (Reading<'s>, Vec<Canonical<'s>>) {
    let (reading, jobs, _) = read_jobs_and(bytes, options, |_| ());
    (reading, jobs)
}

/// A request of a caller.
pub struct Request<'s> {
    /// The document and the findings about it.
    pub reading: Reading<'s>,
    /// The job that it asks for, unless there was an error.
    pub job: Option<Canonical<'s>>,
    /// What every answer repeats of it, each value by its home in the answer.
    pub echoes: Vec<(Home, Json<'static>)>,
}

/// Reads a request of a contract, in one scan. `agent_types` are the types that the operator added.
pub fn read_request<'s>(contract: Contract, bytes: &'s [u8], agent_types: &[&str]) -> Request<'s> {
    let options = Options { kind: Some(contract.exchange().request), agent_types, ..Options::default() };
    let echoes = |tape: &Tape<'s>| contract.echoes_of(tape, agent_types, |_| true);
    let (reading, jobs, echoes) = read_jobs_and(bytes, &options, echoes);
    Request { reading, job: jobs.into_iter().next(), echoes: echoes.unwrap_or_default() }
}

/// Reads a document into jobs, and whatever else `more` takes from its tape, if it is JSON without an error.
fn read_jobs_and<'s, T>(
    bytes: &'s [u8],
    options: &Options<'_>,
    more: impl FnOnce(&Tape<'s>) -> T,
) -> (Reading<'s>, Vec<Canonical<'s>>, Option<T>) {
    let (reading, read) = document::read_and(bytes, options, |kind, tape| (job_of(kind, tape), more(tape)));
    let (job, more) = read.unzip();
    let jobs = match (&reading.document, reading.report.kind.and_then(|kind| kind.entry().framed())) {
        (Some(document), Some(framed)) => (framed.jobs)(document),
        (Some(_), None) | (None, _) => job.flatten().into_iter().collect(),
    };
    (reading, jobs, more)
}

/// A response of an agent, and the places in it of what an outcome keeps as parts.
pub struct Response<'s> {
    /// The findings about the document.
    pub report: Report,
    /// The job that the document is about, or what the document lacks that an outcome needs.
    pub job: Result<Canonical<'s>, Lack>,
    /// Its long members, in the order of the document.
    pub parts: Vec<(Part, Range<usize>)>,
    /// The id of the request that the document answers, where it has one.
    pub id: Option<String>,
    /// The code in the document, even where it says no more than the failure does.
    pub code: Option<String>,
}

/// Reads a response that is one JSON document, in one scan. An error in it is reported, and costs the job only where
/// it cannot be told what an outcome needs (ALL-11).
pub fn read_response<'s>(kind: Kind, bytes: &'s [u8]) -> Response<'s> {
    read_response_of(kind, bytes, &[])
}

/// Like [`read_response`], from an agent that may have a type that the operator added.
pub fn read_response_of<'s>(kind: Kind, bytes: &'s [u8], agent_types: &[&str]) -> Response<'s> {
    let exchange = kind.contract().exchange();
    let form = if exchange.gives_text { Form::Text } else { Form::Object };
    let (report, more) = document::read_answer(bytes, kind, agent_types, |tape, root| {
        let job = match exchange.needs.lack(root, form) {
            Some(lack) => Err(lack),
            None => job_of(kind, tape).ok_or(Lack::Mark),
        };
        (job, parts_of(exchange, tape), exchange.needs.id(root), code_of(exchange, tape))
    });
    let (job, parts, id, code) = more.unwrap_or((Err(Lack::Sense), Vec::new(), None, None));
    Response { report, job, parts, id, code }
}

/// Returns the value at a path within a document.
fn at<'t, 's>(tape: &'t Tape<'s>, path: &[&str]) -> Option<Value<'t, 's>> {
    path.iter().try_fold(tape.root()?, |value, name| value.get(name))
}

fn parts_of(exchange: &Exchange, tape: &Tape<'_>) -> Vec<(Part, Range<usize>)> {
    let mut found: Vec<(Part, Range<usize>)> = Vec::new();
    for part in exchange.parts {
        let Some(value) = at(tape, part.path).filter(|value| is_part(*part, exchange, *value)) else { continue };
        if found.iter().all(|(known, _)| known.holds != part.holds) {
            let (start, end) = value.span();
            found.push((*part, start..end));
        }
    }
    found.sort_unstable_by_key(|(_, range)| range.start);
    found
}

/// Whether a value is what its part holds. Any other value stays in the document, and is no part of an outcome.
fn is_part(part: Part, exchange: &Exchange, value: Value<'_, '_>) -> bool {
    let is_text = |item: Value<'_, '_>, name: &str| item.get(name).is_none_or(|value| value.kind() == Type::String);
    match part.holds {
        Holds::Output if exchange.gives_text => value.kind() == Type::String,
        Holds::Output => value.kind() == Type::Object,
        Holds::Artifacts => {
            let named = |item: Value<'_, '_>| ["name", "path"].iter().any(|name| item.get(name).is_some());
            let whole =
                |item| named(item) && ["name", "path", "type", "content"].iter().all(|name| is_text(item, name));
            value.kind() == Type::Array && value.items().all(whole)
        }
    }
}

fn code_of(exchange: &Exchange, tape: &Tape<'_>) -> Option<String> {
    Some(at(tape, exchange.code).filter(|_| !exchange.code.is_empty())?.text()?.decode().into_owned())
}

fn job_of<'s>(kind: Kind, tape: &Tape<'s>) -> Option<Canonical<'s>> {
    let root = tape.root()?;
    let shape = (map::of(kind.contract()).reading)(kind, root)?;
    let mut job = map::read::document(shape, root);
    job.wary |= nests_deep(tape);
    Some(job)
}

/// Whether a scanned document may nest too deep in another contract. Near the limit the result is checked.
pub(crate) fn nests_deep(tape: &Tape<'_>) -> bool {
    tape.deepest() + WRAPPING_LEVELS_MAX > DEPTH_MAX
}

/// Writes a job as a document of a contract.
///
/// # Errors
/// Fails if the contract has no document for the job, or if the written document is not valid.
pub fn write(job: &Canonical<'_>, to: Contract, context: &WriteContext<'_>) -> Result<Written, Refused> {
    let mut written = unframed(job, to, context)?;
    // A job that came in a frame goes back into one, even where another kind holds the same.
    let returns = job.origin.contract() == to && job.origin.entry().framed().is_some();
    let kind = if returns { job.origin } else { written.kind };
    if let Some(framed) = kind.entry().framed().and_then(|framed| (framed.frame)(job, &written.text)) {
        written.text = framed;
        written.kind = kind;
    }
    if job.wary {
        check(written.kind, &written.text, context)?;
    }
    Ok(written)
}

/// Whether the document that a job becomes in a contract has a member for this fact.
pub fn has_member(job: &Canonical<'_>, to: Contract, home: Home) -> bool {
    (map::of(to).writing)(job).is_some_and(|shape| shape.has(home))
}

/// Whether the document that a job becomes in a contract may say when it was written, or have an id of its own. Where
/// it does not, a writer needs neither `now` nor `message_id`.
pub fn is_stamped(job: &Canonical<'_>, to: Contract) -> bool {
    (map::of(to).writing)(job).is_some_and(|shape| shape.members.iter().any(map::Member::is_stamped))
}

/// Writes a job without a frame, for doors that frame what they send.
///
/// # Errors
/// As for [`write()`].
pub fn write_data(job: &Canonical<'_>, to: Contract, context: &WriteContext<'_>) -> Result<Written, Refused> {
    let written = unframed(job, to, context)?;
    if job.wary {
        let framed = written.kind.entry().framed().and_then(|framed| (framed.frame)(job, &written.text));
        check(written.kind, framed.as_deref().unwrap_or(&written.text), context)?;
    }
    Ok(written)
}

fn unframed(job: &Canonical<'_>, to: Contract, context: &WriteContext<'_>) -> Result<Written, Refused> {
    let none = || Refused::NoCounterpart { from: job.origin, to, why: NOT_ENDED };
    let shape = (map::of(to).writing)(job).ok_or_else(none)?;
    let body = map::write::document(job, shape, context);
    Ok(Written { kind: shape.kind, text: body.text, homeless: body.homeless, filled: body.filled })
}

/// Carried values came from outside, and deep values may nest too deep now, so the result is read like any document.
fn check(kind: Kind, text: &str, context: &WriteContext<'_>) -> Result<(), Refused> {
    let agent_types = context.agent_types;
    let options =
        Options { kind: Some(kind), extent: Extent::Part, agent_types, levels: context.levels, ..Options::default() };
    let report = document::read(text.as_bytes(), &options).report;
    if report.is_valid() { Ok(()) } else { Err(Refused::Broken { kind, report: Box::new(report) }) }
}

/// The result of translating a document.
#[derive(Debug)]
pub struct Translation {
    /// The findings about the document that was read.
    pub report: Report,
    /// Why its kind is not known, where it could not be detected.
    pub undetected: Option<kind::Undetected>,
    /// The written documents: one, or one for each event of a stream.
    pub written: Vec<Result<Written, Refused>>,
}

/// Reads a document and writes it in another contract.
pub fn translate(bytes: &[u8], options: &Options<'_>, to: Contract, context: &WriteContext<'_>) -> Translation {
    let (reading, jobs) = read_jobs(bytes, options);
    let write_one = |(at, job)| {
        let (id, message_id) = (nth_id(context.id, at), nth_id(context.message_id, at));
        write(job, to, &WriteContext { id, message_id, ..*context })
    };
    let mut written: Vec<_> = jobs.iter().enumerate().map(write_one).collect();
    if let (Some(kind), true, true) = (reading.report.kind, jobs.is_empty(), reading.document.is_some()) {
        written.push(Err(Refused::NoCounterpart { from: kind, to, why: NO_JOB }));
    }
    Translation { report: reading.report, undetected: reading.undetected, written }
}

/// Returns the id for the document at this place of a stream: no two of its documents may share their new ids.
fn nth_id(id: Uuid, at: usize) -> Uuid {
    if at == 0 { id } else { map::derived(&format!("{at} {id}")) }
}
