//! Words of an agent that are no document of its contract: an HTTP error of its framework, a text, a proxy's page.
//!
//! They say why work was refused, so the job's caller is shown them beside the failure (ALL-11). They are content: they
//! are never logged.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::{Tape, Type, Value};
use crosspoint_contracts::reply::Failed;

use crate::reply;

/// Longest text that stands as a failure's message, in bytes. A longer one is in the details alone.
const MESSAGE_BYTES_MAX: usize = 500;

/// Longest answer that is searched for such a text, in bytes.
const SEARCHED_BYTES_MAX: usize = 64 << 10;

/// The members in which frameworks say what went wrong, the most usual first.
const MEMBERS: [&str; 3] = ["detail", "message", "error"];

/// Adds the words of an agent to a failure that is known without them: all of them to the details, and a short text as
/// the message in place of our own sentence.
#[must_use]
pub fn beside(failed: Failed, answer: &[u8]) -> Failed {
    let message = message(answer).map(|text| Body::of(&text)).or(failed.message);
    let details = reply::kept(answer).or(failed.details);
    Failed { message, details, ..failed }
}

/// The members that hold what an agent gives, in which some say what went wrong.
const GIVEN: [&str; 4] = ["error", "outputs", "data", "result"];

/// Returns the words for a failure in a document whose contract has a place for them that is empty: in an `error` of
/// another form, beside it, or among what the agent gives.
pub(crate) fn within(document: &[u8]) -> Option<String> {
    let tape = if document.len() <= SEARCHED_BYTES_MAX { Tape::scan(document).ok()? } else { return None };
    let root = tape.root()?;
    let listed = |value: Value<'_, '_>| {
        let texts: Vec<String> = value.items().filter_map(|item| Some(item.text()?.decode().into_owned())).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    };
    let inside = |name: &&str| root.get(name).and_then(|value| said(value).or_else(|| listed(value)));
    let found = inside(&"error").or_else(|| said(root)).or_else(|| GIVEN.iter().find_map(inside))?;
    plain(&found)
}

/// Returns the short text that an answer is, or has in a member that is meant for it.
fn message(answer: &[u8]) -> Option<String> {
    if answer.len() > SEARCHED_BYTES_MAX {
        return None;
    }
    let text = match Tape::scan(answer) {
        Ok(tape) => said(tape.root()?)?,
        Err(_) => std::str::from_utf8(answer).ok()?.to_owned(),
    };
    plain(&text)
}

fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    // A page begins with a tag, and an object that is cut off with a brace.
    let is_plain = !text.starts_with(['<', '{', '[']) && !text.contains(|c: char| c.is_control() && c != '\n');
    (is_plain && !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX).then(|| text.to_owned())
}

/// Most mistakes of a list that stand in a failure's message.
const MISTAKES_MAX: usize = 5;

/// Returns the text of a JSON answer: the answer itself, or a member of it. An `error` may be an object with a message,
/// and a `detail` a list of mistakes.
fn said(answer: Value<'_, '_>) -> Option<String> {
    let text = |value: Value<'_, '_>| Some(value.text()?.decode().into_owned());
    if answer.kind() == Type::String {
        return text(answer);
    }
    let member = |name: &&str| answer.get(name).and_then(text);
    let inside = || text(answer.get("error")?.get("message")?);
    MEMBERS.iter().find_map(member).or_else(inside).or_else(|| mistakes(answer.get("detail")?))
}

/// Returns a list of mistakes as frameworks for Python write it, each with a place (`loc`) and words (`msg`), as one
/// text.
fn mistakes(list: Value<'_, '_>) -> Option<String> {
    let mistake = |item: Value<'_, '_>| {
        let words = item.get("msg")?.text()?.decode().into_owned();
        let place: Vec<String> = item.get("loc").into_iter().flat_map(Value::items).filter_map(token).collect();
        Some(if place.is_empty() { words } else { format!("{}: {words}", place.join(".")) })
    };
    let said: Vec<String> = list.items().filter_map(mistake).take(MISTAKES_MAX).collect();
    let more = list.items().count().saturating_sub(said.len());
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    (!said.is_empty()).then(|| said.join("; ") + &more)
}

/// Returns one part of a place: a name, or the number of an item.
fn token(part: Value<'_, '_>) -> Option<String> {
    match part.text() {
        Some(name) => Some(name.decode().into_owned()),
        None => part.integer().map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::failure::{Dispatched, Failure};

    use super::*;

    fn told(answer: &str) -> (String, Option<String>) {
        let failed = beside(Failed::said(Failure::Invalid, Dispatched::No, "ours"), answer.as_bytes());
        let text = |body: Body| body.get().to_owned();
        (failed.message.map(text).expect("a message"), failed.details.map(text))
    }

    #[test]
    fn short_words_are_the_message_and_all_words_are_in_the_details() {
        for (answer, message) in [
            (r#"{"detail": "no such paper"}"#, r#""no such paper""#),
            (r#"{"message": "too long, ä"}"#, r#""too long, ä""#),
            (r#"{"error": "a \"bad\" day"}"#, r#""a \"bad\" day""#),
            (r#"{"error": {"message": "no model", "type": "x"}}"#, r#""no model""#),
            (r#"{"message": "less exact", "detail": "more exact"}"#, r#""more exact""#),
            (r#"{"detail": [{"loc": ["body"]}], "message": "both"}"#, r#""both""#),
            (
                r#"{"detail": [{"loc": ["body", "items", 0], "msg": "field required"}, {"msg": "too old"}]}"#,
                r#""body.items.0: field required; too old""#,
            ),
            (r#""Internal Server Error""#, r#""Internal Server Error""#),
            ("  come again later\n", r#""come again later""#),
            ("first\nsecond", r#""first\nsecond""#),
        ] {
            let (found, details) = told(answer);
            assert_eq!(found, message, "{answer}");
            assert!(details.is_some_and(|details| details.starts_with(r#"{"answer":""#)), "{answer}");
        }
    }

    #[test]
    fn a_document_without_a_message_may_have_words_elsewhere() {
        for (document, words) in [
            (r#"{"ok": false, "detail": "nope"}"#, Some("nope")),
            (r#"{"status": "error", "error": {"detail": "no disk"}}"#, Some("no disk")),
            (r#"{"status": "error", "error": ["bad", "worse"]}"#, Some("bad; worse")),
            (r#"{"status": "error", "message": "later", "outputs": {}}"#, Some("later")),
            (r#"{"status": "error", "outputs": {"error": "Missing x"}}"#, Some("Missing x")),
            (r#"{"status": "failed", "result": {"message": "half"}}"#, Some("half")),
            (r#"{"status": "error", "outputs": {"n": 1}}"#, None),
        ] {
            assert_eq!(within(document.as_bytes()).as_deref(), words, "{document}");
        }
    }

    #[test]
    fn of_many_mistakes_a_few_are_the_message() {
        let answer = format!(r#"{{"detail": [{}]}}"#, [r#"{"msg": "no"}"#; 9].join(","));
        assert_eq!(told(&answer).0, r#""no; no; no; no; no; 4 more""#);
    }

    #[test]
    fn other_words_are_in_the_details_alone() {
        let long = format!(r#"{{"detail": "{}"}}"#, "x".repeat(MESSAGE_BYTES_MAX + 1));
        let huge = format!(r#"{{"detail": "here", "trace": "{}"}}"#, "x".repeat(SEARCHED_BYTES_MAX));
        for answer in [
            r#"{"detail": [{"loc": ["body", "inputs"]}]}"#,
            "<html>502</html>",
            r#"{"detail": "cut of"#,
            r#"{"detail": ""}"#,
            "7",
            "null",
            "bell \u{7}",
            "  ",
            &long,
            &huge,
        ] {
            let (found, details) = told(answer);
            assert_eq!(found, r#""ours""#, "{answer:.40}");
            assert!(details.is_some(), "{answer:.40}");
        }
        assert_eq!(told(""), (r#""ours""#.to_owned(), None));
    }
}
