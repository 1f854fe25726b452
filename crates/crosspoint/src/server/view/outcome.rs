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
    let printed = ending.printed().map_or(0, |printed| printed.bytes());
    let bytes = ending.bytes() as u64 + printed;
    let long = match extent {
        Extent::Whole => None,
        Extent::Listed => Some(bytes).filter(|bytes| *bytes > LISTED_BYTES_MAX),
        Extent::Bare => Some(bytes),
    };
    let mut shown = object.object("outcome");
    match ending.left_out.or(long) {
        Some(bytes) => push_short(&mut shown, ending, bytes),
        None => push_parts(&mut shown, ending),
    }
    shown.close();
}

fn push_parts(shown: &mut Object<'_>, outcome: &Outcome) {
    shown.text("status", outcome.status.name());
    push_outputs(shown, outcome);
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

/// Writes what came of the work: outputs, the text beside them, and what is to be said of that (ALL-12).
fn push_outputs(shown: &mut Object<'_>, outcome: &Outcome) {
    match (&outcome.text, &outcome.outputs) {
        (Some(Text::Partial(partial)), None) => shown.raw("outputs", partial.outputs().as_bytes()),
        (_, outputs) => shown.raw("outputs", part(outputs.as_ref(), b"null")),
    }
    match &outcome.text {
        Some(Text::Beside(text)) => shown.raw("text", text.bytes()),
        Some(Text::Partial(partial)) if outcome.outputs.is_some() => {
            shown.raw("text", partial.text.bytes());
            for (name, value) in partial.remarks() {
                shown.raw(name, value.as_bytes());
            }
        }
        // Exports name the bytes: the lines of the output events hold them.
        Some(Text::Printed(printed)) => {
            let mut object = shown.object("printed");
            object.plain("attempt", printed.attempt);
            object.plain("from", printed.start);
            object.plain("bytes", printed.bytes());
            object.close();
        }
        Some(Text::Partial(_) | Text::Within(_)) | None => {}
    }
    // A text that says so itself does not have it: lists and exports show outcomes as they are stored.
    if let Some(bytes) = outcome.whole_bytes {
        shown.plain("whole_bytes", bytes);
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

#[cfg(test)]
mod tests {
    use crosspoint_contracts::printed::with_remark;
    use crosspoint_contracts::reply::Success;
    use crosspoint_contracts::time::Time;
    use serde_json::{Value, json};

    use super::*;

    fn shown(outcome: Outcome) -> Value {
        serde_json::from_str(json(&Ending::new(Time::default(), outcome)).get()).expect("it is JSON")
    }

    #[test]
    fn a_text_of_which_a_part_never_came_says_so_to_callers_and_in_lists() {
        let cut = Success { whole_bytes: Some(9), ..Success::of(Body::of(&"its end")) };
        let stored = Outcome::completed(cut.clone());
        let listed = shown(stored.clone());
        assert_eq!((&listed["outputs"], &listed["whole_bytes"]), (&json!("its end"), &json!(9)));
        let told = shown(with_remark(&stored, || "/all".to_owned()).expect("a part is missing"));
        let truncated = json!({"bytes": 9, "href": "/all"});
        assert_eq!(told["outputs"], json!({"output": "its end", "truncated": truncated}));
        assert_eq!(told.get("whole_bytes"), None, "it is said once");
        let object = Some(Body::trusted("{\"a\":1}"));
        let beside = Success { outputs: object, text: Some(Text::Beside(Body::of(&"its end"))), ..cut };
        let told = shown(with_remark(&Outcome::completed(beside), || "/all".to_owned()).expect("a part is missing"));
        assert_eq!((&told["text"], &told["truncated"]), (&json!("its end"), &truncated));
    }
}
