//! Converts between the rows of events and what happened. Which column means what is said here.

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::reply::{AgentDocument, Progress, Question};
use crosspoint_contracts::time::Time;
use rusqlite::Row;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::row::failure;
use crate::event::{Entry, What};

/// The parts of an event that have columns of their own.
pub(super) struct EventColumns {
    pub(super) kind: i64,
    pub(super) number: i64,
    pub(super) place: i64,
    pub(super) body: Option<Bytes>,
}

/// The kinds of events that are looked for.
pub(super) const STARTED: i64 = 1;
pub(super) const PROGRESS: i64 = 2;
pub(super) const STEP: i64 = 9;

/// Returns the columns of an event. The numbers of the kinds are in stores that exist: their meaning never changes.
pub(super) fn event_columns(what: &What) -> EventColumns {
    let columns = |kind, number: u32, place, body| EventColumns { kind, number: i64::from(number), place, body };
    match what {
        What::Accepted => columns(0, 0, 0, None),
        What::Started { attempt, agent } => {
            columns(STARTED, *attempt, 0, Some(Bytes::copy_from_slice(agent.as_bytes())))
        }
        What::Progress(progress) => {
            let body = progress_body(progress).bytes().clone();
            columns(PROGRESS, u32::from(progress.began.is_some()), 0, Some(body))
        }
        What::Output { attempt, offset, block } => columns(3, *attempt, offset.cast_signed(), Some(block.0.clone())),
        What::Asked { question } => columns(4, 0, 0, Some(question.json().bytes().clone())),
        What::Answered { answer } => columns(5, 0, 0, Some(answer.bytes().clone())),
        What::Retrying { attempt, failure, until } => {
            columns(6, *attempt, until.0, Some(Bytes::from_static(failure.name().as_bytes())))
        }
        What::Interrupted { attempt } => columns(7, *attempt, 0, None),
        What::Ended(_) => columns(8, 0, 0, None),
        What::Step { step } => columns(STEP, 0, 0, Some(step.bytes().clone())),
    }
}

/// Reads an event from its columns `n, at, kind, number, place, body`.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let number = u32::try_from(row.get::<_, i64>(3)?).unwrap_or(0);
    let place: i64 = row.get(4)?;
    let body = Bytes::from(row.get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default());
    let text = || String::from_utf8_lossy(&body).into_owned();
    let what = match row.get::<_, i64>(2)? {
        STARTED => What::Started { attempt: number, agent: text().into_boxed_str() },
        PROGRESS => What::Progress(progress(&body)),
        3 => What::Output { attempt: number, offset: place.cast_unsigned(), block: Block(body) },
        4 => What::Asked { question: Question::read(Body::trusted(body)) },
        5 => What::Answered { answer: Body::trusted(body) },
        6 => What::Retrying { attempt: number, failure: failure(Some(&text())), until: Time(place) },
        7 => What::Interrupted { attempt: number },
        STEP => What::Step { step: Body::trusted(body) },
        0 => What::Accepted,
        unknown => return Err(rusqlite::Error::IntegralValueOutOfRange(2, unknown)),
    };
    Ok(Entry { n: row.get(0)?, at: Time(row.get(1)?), what })
}

/// An agent's document, as it is stored in an event.
#[derive(Deserialize)]
struct DocumentColumn<'b> {
    kind: &'b str,
    #[serde(borrow)]
    document: &'b RawValue,
}

fn progress_body(progress: &Progress) -> Body {
    let Progress { percent, step, document, began } = progress;
    match began {
        // Earlier versions can read this one.
        None => Body::of(&(percent, step, document)),
        Some(began) => Body::of(&(percent, step, document, began)),
    }
}

pub(super) fn progress(body: &[u8]) -> Progress {
    type Stored<'b> = (Option<f64>, Option<&'b RawValue>, Option<DocumentColumn<'b>>, Option<DocumentColumn<'b>>);
    // Only a report of the start has the last one, and earlier versions wrote only the first two.
    let (percent, step, document, began): Stored<'_> = serde_json::from_slice(body)
        .or_else(|_| serde_json::from_slice(body).map(|(percent, step, document)| (percent, step, document, None)))
        .or_else(|_| serde_json::from_slice(body).map(|(percent, step)| (percent, step, None, None)))
        .unwrap_or_default();
    let owned = |raw: &RawValue| Body::trusted(raw.get().to_owned());
    let said = |stored: DocumentColumn<'_>| {
        Some(AgentDocument { kind: Kind::from_name(stored.kind)?, document: owned(stored.document) })
    };
    Progress { percent, step: step.map(owned), document: document.and_then(said), began: began.and_then(said) }
}
