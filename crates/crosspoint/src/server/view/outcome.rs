//! Outcomes as JSON: the one place where the parts become the `outcome` object of the API, of events and of exports.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::outcome::{Outcome, Reason, Text};
use crosspoint_engine::job::Ending;
use crosspoint_http::json::Object;

use super::Extent;

/// Largest outcome that is shown in lists, in bytes. A page of five hundred jobs is for looking, not for fetching.
const LISTED_BYTES_MAX: u64 = 4 << 10;

/// About the size of an outcome without its parts, as JSON.
const MEMBERS_BYTES: usize = 256;

/// About the size of an outcome as JSON.
pub(super) fn bytes(ending: &Ending) -> usize {
    MEMBERS_BYTES + ending.bytes()
}

/// Writes an outcome by itself.
pub(super) fn json(ending: &Ending) -> Body {
    let mut out = Vec::with_capacity(bytes(ending));
    let mut object = Object::open(&mut out);
    push_parts(&mut object, ending);
    object.close();
    Body::trusted(out)
}

/// Writes an outcome as a member.
pub(super) fn push(object: &mut Object<'_>, ending: &Ending, extent: Extent) {
    let long = Some(ending.bytes() as u64).filter(|bytes| extent == Extent::Listed && *bytes > LISTED_BYTES_MAX);
    let mut shown = object.object("outcome");
    match ending.left_out.or(long) {
        Some(bytes) => push_short(&mut shown, ending, bytes),
        None => push_parts(&mut shown, ending),
    }
    shown.close();
}

fn push_parts(shown: &mut Object<'_>, outcome: &Outcome) {
    shown.text("status", outcome.status.name());
    shown.raw("outputs", part(outcome.outputs.as_ref(), b"null"));
    if let Some(Text::Beside(text)) = &outcome.text {
        shown.raw("text", text.bytes());
    }
    shown.raw("artifacts", part(outcome.artifacts.as_ref(), b"[]"));
    if let Some(reason) = &outcome.reason {
        let mut failure = push_failure(shown, reason);
        match &reason.message {
            Some(message) => failure.raw("message", message.bytes()),
            None => failure.text("message", reason.failure.sentence()),
        }
        failure.text("repeat", reason.repeat.name());
        if let Some(details) = &reason.details {
            failure.raw("details", details.bytes());
        }
        failure.close();
    }
    if let Some(document) = &outcome.document {
        let mut object = shown.object("said");
        object.text("kind", document.kind.name());
        object.raw("document", document.document.bytes());
        object.close();
    }
}

/// Writes how the job ended and the size of the outcome, without its parts.
fn push_short(shown: &mut Object<'_>, outcome: &Outcome, bytes: u64) {
    shown.text("status", outcome.status.name());
    shown.raw("outputs", b"null");
    shown.raw("artifacts", b"[]");
    if let Some(reason) = &outcome.reason {
        let mut failure = push_failure(shown, reason);
        failure.text("message", reason.failure.sentence());
        failure.text("repeat", reason.repeat.name());
        failure.close();
    }
    shown.plain("bytes", bytes);
}

fn push_failure<'o>(shown: &'o mut Object<'_>, reason: &Reason) -> Object<'o> {
    let mut failure = shown.object("failure");
    failure.text("code", reason.failure.name());
    failure
}

fn part<'p>(part: Option<&'p Body>, none: &'static [u8]) -> &'p [u8] {
    part.map_or(none, |part| part.bytes())
}
