//! How a program says by itself that it failed, and the words that callers are given for a failure.
//!
//! What a program says is content: it goes to the job's caller, and is never logged.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::{Type, Value};

/// Most bytes of a message of the program's own. What is longer is cut, and whole in the details.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Most bytes of a code. A longer one is no code, and stands in the details alone.
const CODE_BYTES_MAX: usize = 256;

/// Most lines, and most bytes, of the end of stderr that are a message. People read them in one go.
const WORDS_LINES_MAX: usize = 10;
const WORDS_BYTES_MAX: usize = 2 << 10;

/// Stands where words were cut off.
const CUT: &str = "\u{2026}";

/// What a program says about its failure.
#[derive(Debug, PartialEq)]
pub(super) struct Fail {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    /// Nothing was done: the same work may be given to it once more.
    pub(super) retry: bool,
    /// What it said, where that is more than the three.
    pub(super) whole: Option<Body>,
    /// A member has a wrong type, and was not used.
    pub(super) is_loose: bool,
}

impl Fail {
    /// Reads an object with `code`, `message` and `retry`, of which each may be missing; or a text, which is the
    /// message. A member of a wrong type is not used (ALL-11): that the work failed is known all the same.
    pub(super) fn read(value: Value<'_, '_>) -> Option<Fail> {
        if let Some(text) = value.text().filter(|_| value.kind() == Type::String) {
            let (message, is_whole) = message(&text.decode());
            let whole = (!is_whole).then(|| Body::trusted(value.source().to_owned()));
            return Some(Fail { code: None, message, retry: false, whole, is_loose: false });
        }
        if value.kind() != Type::Object {
            return None;
        }
        let given = |name: &str| value.get(name).filter(|member| !member.is_null());
        let text = |name: &str| Some(given(name)?.text()?.decode().into_owned());
        let said = text("code").filter(|code| !code.is_empty());
        let code = said.clone().filter(|code| code.len() <= CODE_BYTES_MAX);
        let (message, is_whole) = message(&text("message").unwrap_or_default());
        let retry = given("retry").and_then(Value::boolean);
        let is_loose = ["code", "message"].into_iter().any(|name| given(name).is_some() && text(name).is_none())
            || (given("retry").is_some() && retry.is_none());
        let has_more = value.members().any(|(name, _)| !["code", "message", "retry"].contains(&&*name.decode()));
        let is_said = is_whole && said == code && !is_loose && !has_more;
        let whole = (!is_said).then(|| Body::trusted(value.source().to_owned()));
        Some(Fail { code, message, retry: retry == Some(true), whole, is_loose })
    }
}

/// Returns what can be shown of a message, and whether that is all of it.
fn message(text: &str) -> (Option<String>, bool) {
    if text.trim().is_empty() {
        return (None, true);
    }
    if text.len() <= MESSAGE_BYTES_MAX {
        return (Some(text.to_owned()), true);
    }
    let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
    (Some(format!("{}{CUT}", &text[..end])), false)
}

/// Returns the last lines of stderr that say something: programs end with why they end.
pub(super) fn last_words(stderr: &str) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for line in stderr.lines().rev().map(str::trim_end).filter(|line| !line.is_empty()) {
        bytes += line.len() + 1;
        if lines.len() == WORDS_LINES_MAX || (bytes > WORDS_BYTES_MAX && !lines.is_empty()) {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    let words = lines.join("\n");
    let start = words.ceil_char_boundary(words.len().saturating_sub(WORDS_BYTES_MAX));
    let cut = if start > 0 { CUT } else { "" };
    (!words.is_empty()).then(|| format!("{cut}{}", &words[start..]))
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::json::Tape;

    use super::*;

    fn read(json: &str) -> Option<Fail> {
        Fail::read(Tape::scan(json.as_bytes()).expect("it is JSON").root().expect("it has a root"))
    }

    fn said(code: Option<&str>, message: Option<&str>, retry: bool) -> Fail {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Fail { code: owned(code), message: owned(message), retry, whole: None, is_loose: false }
    }

    #[test]
    fn a_failure_is_read_with_whatever_it_says() {
        let whole = r#"{"code": "NO_DISK", "message": "The disk is full.", "retry": true}"#;
        assert_eq!(read(whole), Some(said(Some("NO_DISK"), Some("The disk is full."), true)));
        assert_eq!(read("{}"), Some(said(None, None, false)));
        assert_eq!(read(r#""It broke.""#), Some(said(None, Some("It broke."), false)));
        assert_eq!(read(r#"{"code": null, "message": " ", "retry": null}"#), Some(said(None, None, false)));
        for other in ["7", "[]", "true", "null"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_not_used_is_kept() {
        let loose = r#"{"code": 7, "message": "m", "retry": "yes"}"#;
        let kept =
            |json: &str, fail: Fail, is_loose| Fail { whole: Some(Body::trusted(json.to_owned())), is_loose, ..fail };
        assert_eq!(read(loose), Some(kept(loose, said(None, Some("m"), false), true)));
        let more = r#"{"message": "m", "at": "line 3"}"#;
        assert_eq!(read(more), Some(kept(more, said(None, Some("m"), false), false)));
        let long = format!(r#"{{"message": "{}", "code": "{}"}}"#, "\u{fc}".repeat(40_000), "c".repeat(257));
        let read = read(&long).expect("it is read");
        let message = read.message.expect("there is one");
        assert!(message.ends_with("\u{fc}\u{2026}") && message.len() <= MESSAGE_BYTES_MAX + CUT.len());
        assert_eq!((read.code, read.whole.as_ref().map(Body::get)), (None, Some(long.as_str())));
    }

    #[test]
    fn the_last_lines_that_say_something_are_the_words() {
        assert_eq!(last_words(""), None);
        assert_eq!(last_words(" \n\r\n\t\n"), None);
        assert_eq!(last_words("one\n\n  two \r\n\n").as_deref(), Some("one\n  two"));
        let many: String = (0..30).map(|number| format!("{number}\n")).collect();
        let last: Vec<String> = (20..30).map(|number| number.to_string()).collect();
        assert_eq!(last_words(&many), Some(last.join("\n")));
        let long = format!("{}\nshort\n", "x".repeat(WORDS_BYTES_MAX));
        assert_eq!(last_words(&long).as_deref(), Some("short"), "a line is shown whole or not at all");
        let alone = last_words(&format!("begin{}", "\u{fc}".repeat(WORDS_BYTES_MAX))).expect("there are words");
        assert!(alone.starts_with("\u{2026}\u{fc}") && alone.len() <= WORDS_BYTES_MAX + CUT.len());
    }
}
