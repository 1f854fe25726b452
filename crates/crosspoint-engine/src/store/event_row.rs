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

/// Returns the columns of an event. The numbers of the kinds are in stores that exist: their meaning never changes.
pub(super) fn event_columns(what: &What) -> EventColumns {
    let columns = |kind, number: u32, place, body| EventColumns { kind, number: i64::from(number), place, body };
    match what {
        What::Accepted => columns(0, 0, 0, None),
        What::Started { attempt, agent } => columns(1, *attempt, 0, Some(Bytes::copy_from_slice(agent.as_bytes()))),
        What::Progress(progress) => {
            columns(2, 0, 0, Some(Body::of(&(progress.percent, &progress.step, &progress.document)).bytes().clone()))
        }
        What::Output { attempt, offset, block } => columns(3, *attempt, offset.cast_signed(), Some(block.0.clone())),
        What::Asked { question } => columns(4, 0, 0, Some(question.json().bytes().clone())),
        What::Answered { answer } => columns(5, 0, 0, Some(answer.bytes().clone())),
        What::Retrying { attempt, failure, until } => {
            columns(6, *attempt, until.0, Some(Bytes::from_static(failure.name().as_bytes())))
        }
        What::Interrupted { attempt } => columns(7, *attempt, 0, None),
        What::Ended(_) => columns(8, 0, 0, None),
    }
}

/// Reads an event from its columns `n, at, kind, number, place, body`.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let number = u32::try_from(row.get::<_, i64>(3)?).unwrap_or(0);
    let place: i64 = row.get(4)?;
    let body = Bytes::from(row.get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default());
    let text = || String::from_utf8_lossy(&body).into_owned();
    let what = match row.get::<_, i64>(2)? {
        1 => What::Started { attempt: number, agent: text().into_boxed_str() },
        2 => What::Progress(progress(&body)),
        3 => What::Output { attempt: number, offset: place.cast_unsigned(), block: Block(body) },
        4 => What::Asked { question: Question::read(Body::trusted(body)) },
        5 => What::Answered { answer: Body::trusted(body) },
        6 => What::Retrying { attempt: number, failure: failure(Some(&text())), until: Time(place) },
        7 => What::Interrupted { attempt: number },
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

fn progress(body: &[u8]) -> Progress {
    // Earlier versions wrote only the first two.
    let (percent, step, stored): (Option<f64>, Option<&RawValue>, Option<DocumentColumn<'_>>) =
        serde_json::from_slice(body)
            .or_else(|_| serde_json::from_slice(body).map(|(percent, step)| (percent, step, None)))
            .unwrap_or_default();
    let owned = |raw: &RawValue| Body::trusted(raw.get().to_owned());
    let document = stored.and_then(|stored| {
        Some(AgentDocument { kind: Kind::from_name(stored.kind)?, document: owned(stored.document) })
    });
    Progress { percent, step: step.map(owned), document }
}
