//! Outcomes as rows: a column for each part, so that no document has to be read to learn what it says.
//!
//! Up to schema 7 an outcome was one column: the JSON that was shown of it. Such rows stay as they are, because
//! rewriting a million of them would hold up a start. They are taken apart when they are read.

use std::sync::Arc;

use crosspoint_contracts::Kind;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::outcome::{Outcome, Reason, Status, Text, text_within};
use crosspoint_contracts::printed::Printed;
use crosspoint_contracts::reply::{AgentDocument, Success};
use crosspoint_contracts::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::LISTED_BYTES_MAX;
use crate::event::{Entry, What};
use crate::id::Seq;
use crate::job::Ending;

/// The value of `form` for an outcome in parts. Rows up to schema 7 have none.
const IN_PARTS: i64 = 1;

/// All columns that [`ended`] reads, in its order. `body` holds the outputs, or the whole outcome up to schema 7.
const COLUMNS: &str = "n, at, status, failure, repeat, form, body, text_start, text_end, text, artifacts, usage, message, code, details, \
    kind, document, printed_by, printed_start, printed_end, whole_bytes";

/// The length of the parts in bytes, without usage and code, and with a text that is in blocks of output.
pub(super) const BYTES: &str = "length(body) + coalesce(length(text), 0) + coalesce(length(artifacts), 0) + coalesce(length(message), 0) \
    + coalesce(length(details), 0) + coalesce(length(document), 0) + coalesce(printed_end - printed_start, 0)";

/// Writes an outcome and returns its length in bytes. A second outcome of one job violates the table's key and fails
/// the whole transaction.
pub(super) fn write(transaction: &Transaction<'_>, seq: Seq, entry: &Entry) -> rusqlite::Result<u64> {
    let What::Ended(ended) = &entry.what else { return Ok(0) };
    let mut insert = transaction.prepare_cached(
        "INSERT INTO outcome(job, n, at, status, failure, repeat, form, body, text_start, text_end, text, artifacts, usage, message, code,
            details, kind, document, printed_by, printed_start, printed_end, whole_bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    )?;
    let reason = ended.reason.as_ref();
    let (within, beside) = match &ended.text {
        Some(Text::Within(range)) => (Some(range), None),
        Some(Text::Beside(text)) => (None, Some(text)),
        // A text that was put together is never stored again.
        Some(Text::Printed(_) | Text::Partial(_)) | None => (None, None),
    };
    let printed = ended.printed();
    insert.execute(params![
        seq.0.cast_signed(),
        entry.n,
        entry.at.0,
        ended.status as i64,
        reason.map(|reason| reason.failure.name()),
        reason.map(|reason| reason.repeat.name()),
        IN_PARTS,
        // No JSON text is empty, so an empty one says that there are no outputs.
        ended.outputs.as_ref().map_or(&[][..], |outputs| outputs.bytes()),
        within.map(|range| range.start as i64),
        within.map(|range| range.end as i64),
        bytes(beside),
        bytes(ended.artifacts.as_ref()),
        bytes(ended.usage.as_ref()),
        bytes(reason.and_then(|reason| reason.message.as_ref())),
        bytes(reason.and_then(|reason| reason.code.as_ref())),
        bytes(reason.and_then(|reason| reason.details.as_ref())),
        ended.document.as_ref().map(|document| document.kind.name()),
        bytes(ended.document.as_ref().map(|document| &document.document)),
        printed.map(|printed| printed.attempt),
        printed.map(|printed| printed.start.cast_signed()),
        printed.map(|printed| printed.end.cast_signed()),
        // An agent may claim any length, and the database has no larger number.
        ended.whole_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
    ])?;
    Ok(ended.bytes() as u64)
}

fn bytes(part: Option<&Body>) -> Option<&[u8]> {
    part.map(|part| &**part.bytes())
}

/// Returns the outcome of a job, and its number among the job's events.
pub(super) fn read(connection: &Connection, seq: Seq) -> rusqlite::Result<Option<(u32, Ending)>> {
    let sql = format!("SELECT {COLUMNS} FROM outcome WHERE job = ?1");
    let mut one = connection.prepare_cached(&sql)?;
    one.query_row([seq.0.cast_signed()], |row| Ok((row.get(0)?, ended(row)?))).optional()
}

/// Returns an outcome as lists show it: for a long one only how the job ended, and how long the outcome is.
pub(super) fn listed(connection: &Connection, seq: Seq) -> rusqlite::Result<Option<Arc<Ending>>> {
    let sql = format!("SELECT at, status, failure, repeat, {BYTES} FROM outcome WHERE job = ?1");
    let short = |row: &Row<'_>| {
        let bytes = row.get::<_, i64>(4)?.unsigned_abs();
        let failure = row.get::<_, Option<String>>(2)?;
        let reason = reason(failure.as_deref(), row.get::<_, Option<String>>(3)?.as_deref());
        let outcome = Outcome { reason, ..empty(status(row.get(1)?)) };
        Ok(Ending { left_out: Some(bytes), ..Ending::new(Time(row.get(0)?), outcome) })
    };
    let short = connection.prepare_cached(&sql)?.query_row([seq.0.cast_signed()], short).optional()?;
    match short {
        Some(short) if short.left_out > Some(LISTED_BYTES_MAX as u64) => Ok(Some(Arc::new(short))),
        Some(_) => Ok(read(connection, seq)?.map(|(_, ended)| Arc::new(ended))),
        None => Ok(None),
    }
}

fn ended(row: &Row<'_>) -> rusqlite::Result<Ending> {
    let part = |column: usize| part(row, column);
    let failure: Option<String> = row.get(3)?;
    let reason = reason(failure.as_deref(), row.get::<_, Option<String>>(4)?.as_deref());
    let (at, status) = (Time(row.get(1)?), status(row.get(2)?));
    let body = part(6)?.filter(|body| !body.bytes().is_empty());
    if row.get::<_, Option<i64>>(5)?.is_none() {
        let outcome = body.and_then(|body| taken_apart(&body, status, reason.clone()));
        let outcome = outcome.unwrap_or(Outcome { reason, ..empty(status) });
        return Ok(Ending { is_unjudged: true, ..Ending::new(at, outcome) });
    }
    let within = position(row, 7)?.zip(position(row, 8)?).map(|(start, end)| Text::Within(start..end));
    let beside = part(9)?.map(Text::Beside);
    let printed = printed(row)?.map(Text::Printed);
    let kind = row.get::<_, Option<String>>(15)?.and_then(|name| Kind::from_name(&name));
    let document = kind.zip(part(16)?).map(|(kind, document)| AgentDocument { kind, document });
    let (message, code, details) = (part(12)?, part(13)?, part(14)?);
    let outcome = Outcome {
        status,
        reason: reason.map(|reason| Reason { message, code, details, ..reason }),
        outputs: body,
        text: within.or(beside).or(printed),
        whole_bytes: row.get::<_, Option<i64>>(20)?.map(i64::unsigned_abs),
        artifacts: part(10)?,
        usage: part(11)?,
        document,
    };
    Ok(Ending::new(at, outcome))
}

fn part(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Body>> {
    Ok(row.get::<_, Option<Vec<u8>>>(column)?.map(Body::trusted))
}

fn printed(row: &Row<'_>) -> rusqlite::Result<Option<Printed>> {
    let Some(attempt) = row.get::<_, Option<u32>>(17)? else { return Ok(None) };
    let (start, end) = (row.get::<_, i64>(18)?.unsigned_abs(), row.get::<_, i64>(19)?.unsigned_abs());
    Ok(Some(Printed { attempt, start, end }))
}

fn position(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<usize>> {
    Ok(row.get::<_, Option<i64>>(column)?.and_then(|at| usize::try_from(at).ok()))
}

fn status(number: u8) -> Status {
    Status::ALL.get(usize::from(number)).copied().unwrap_or(Status::Failed)
}

fn empty(status: Status) -> Outcome {
    Outcome { status, ..Outcome::completed(Success::default()) }
}

fn reason(failure: Option<&str>, repeat: Option<&str>) -> Option<Reason> {
    let repeats = [Repeat::Safe, Repeat::Unknown, Repeat::Never];
    let repeat = repeats.into_iter().find(|known| Some(known.name()) == repeat)?;
    let failure = Failure::from_name(failure?)?;
    Some(Reason { failure, repeat, message: None, code: None, details: None })
}

/// An outcome up to schema 7.
#[derive(Deserialize)]
struct Shown<'b> {
    #[serde(borrow)]
    outputs: &'b RawValue,
    #[serde(borrow)]
    artifacts: &'b RawValue,
    #[serde(borrow)]
    failure: Option<ShownFailure<'b>>,
    #[serde(borrow)]
    said: Option<ShownDocument<'b>>,
}

#[derive(Deserialize)]
struct ShownFailure<'b> {
    #[serde(borrow)]
    message: &'b RawValue,
    #[serde(borrow)]
    details: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct ShownDocument<'b> {
    kind: &'b str,
    #[serde(borrow)]
    document: &'b RawValue,
}

/// Takes an outcome up to schema 7 apart. The parts share the bytes of the row.
fn taken_apart(body: &Body, status: Status, reason: Option<Reason>) -> Option<Outcome> {
    let shown: Shown<'_> = serde_json::from_str(body.get()).ok()?;
    let part = |raw: &RawValue| Body::trusted(body.bytes().slice_ref(raw.get().as_bytes()));
    let outputs = (status == Status::Completed).then(|| part(shown.outputs));
    let document = shown.said.and_then(|document| {
        Some(AgentDocument { kind: Kind::from_name(document.kind)?, document: part(document.document) })
    });
    let (message, details) = shown.failure.map(|failure| (part(failure.message), failure.details.map(part))).unzip();
    let details = details.flatten();
    let code = details.as_ref().and_then(code_in);
    Some(Outcome {
        status,
        reason: reason.map(|reason| Reason { message, code, details, ..reason }),
        text: outputs.as_ref().and_then(text_within).map(Text::Within),
        outputs,
        whole_bytes: None,
        artifacts: Some(part(shown.artifacts)).filter(|artifacts| artifacts.get() != "[]"),
        usage: None,
        document,
    })
}

/// Returns the more specific code, which was stored among the details.
fn code_in(details: &Body) -> Option<Body> {
    let tape = Tape::scan(details.bytes()).ok()?;
    let code = tape.root()?.get("code").filter(|code| code.text().is_some())?;
    Some(Body::trusted(details.bytes().slice_ref(code.source().as_bytes())))
}
