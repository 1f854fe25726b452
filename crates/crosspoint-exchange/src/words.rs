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

/// Returns the short text that an answer is, or has in a member that is meant for it.
fn message(answer: &[u8]) -> Option<String> {
    if answer.len() > SEARCHED_BYTES_MAX {
        return None;
    }
    let text = match Tape::scan(answer) {
        Ok(tape) => said(tape.root()?)?,
        Err(_) => std::str::from_utf8(answer).ok()?.to_owned(),
    };
    let text = text.trim();
    // A page begins with a tag, and an object that is cut off with a brace.
    let is_plain = !text.starts_with(['<', '{', '[']) && !text.contains(|c: char| c.is_control() && c != '\n');
    (is_plain && !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX).then(|| text.to_owned())
}

/// Returns the text of a JSON answer: the answer itself, or a member of it. An `error` may be an object with a message.
fn said(answer: Value<'_, '_>) -> Option<String> {
    let text = |value: Value<'_, '_>| Some(value.text()?.decode().into_owned());
    if answer.kind() == Type::String {
        return text(answer);
    }
    let member = |name: &&str| answer.get(name).and_then(text);
    MEMBERS.iter().find_map(member).or_else(|| text(answer.get("error")?.get("message")?))
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
    fn other_words_are_in_the_details_alone() {
        let long = format!(r#"{{"detail": "{}"}}"#, "x".repeat(MESSAGE_BYTES_MAX + 1));
        let huge = format!(r#"{{"detail": "here", "trace": "{}"}}"#, "x".repeat(SEARCHED_BYTES_MAX));
        for answer in [
            r#"{"detail": [{"loc": ["body", "inputs"], "msg": "field required"}]}"#,
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
