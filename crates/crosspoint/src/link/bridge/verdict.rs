//! What a file under the name of the response is worth: decided from its bytes alone.

use bytes::Bytes;
use crosspoint_bridge::document::id_of;
use crosspoint_contracts::bridge::clause::BRIDGE_4_3;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::{Kind, Report};
use crosspoint_exchange::reply::{self, Meaning};

use super::inbox::response_name;
use crate::link::record::{Note, found, note};

/// What the file is worth.
pub(super) enum Verdict {
    /// It is the answer; the notes say what is loose about it.
    Answer(Result<Success, Box<Failed>>, Vec<Note>),
    /// It is longer than an answer may be.
    TooLong,
    /// It is no answer, and should be mended; the step says so.
    Wrong { step: String, notes: Vec<Note> },
}

/// Judges a file as the answer to the request of this id.
pub(super) fn verdict_of(bytes: Vec<u8>, id: &str, bytes_max: usize) -> Verdict {
    let written = id_of(&bytes);
    let is_foreign = written.as_deref().is_some_and(|written| written != id);
    if bytes.len() > bytes_max && !is_foreign {
        return Verdict::TooLong;
    }
    match reply::read(Kind::BridgeResponse, &Bytes::from(bytes)) {
        Err(unreadable) => malformed(unreadable.report),
        // No connection says which request the file answers, so it must say that itself (BRIDGE-4).
        Ok(reply) if written.is_none() => malformed(reply.report),
        Ok(_) if is_foreign => {
            let what = format!("{} answers another request; the expected request_id is {id}", response_name());
            Verdict::Wrong { step: format!("{what} (BRIDGE-4.3)"), notes: vec![note(&BRIDGE_4_3, what)] }
        }
        Ok(reply) => match reply.meaning {
            Meaning::Ended(result) => Verdict::Answer(result, found(reply.report, &[])),
            // A response can say nothing but an end.
            Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => malformed(reply.report),
        },
    }
}

/// All findings are recorded; only the first error is shown.
fn malformed(report: Report) -> Verdict {
    let first = report.findings.iter().find(|finding| finding.level == Level::Error);
    let first = first.map(|finding| format!(": {} ({})", finding.message, finding.clause.id)).unwrap_or_default();
    let step = format!("{} is malformed and waits to be mended{first}", response_name());
    Verdict::Wrong { step, notes: found(report, &[]) }
}
