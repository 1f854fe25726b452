//! Reads the lines that a program means for Crosspoint: `@crosspoint ` and a JSON object.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::{Tape, Type, Value};
use crosspoint_contracts::reply::Question;

use super::fail::Fail;
use super::lines::PREFIX;

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Directive {
    Progress { percent: Option<f64>, step: Option<String> },
    Outputs(Body),
    Artifact(Body),
    Ask(Question),
    Fail(Fail),
}

const NOT_AN_OBJECT: &str = "a line that began with @crosspoint held no JSON object, and was kept as output";
const WRONG: &str = "an @crosspoint line had a member of a wrong type, or lacked one, and was kept as output";
const UNKNOWN: &str = "an @crosspoint line had a member that is not known there, and that was not used";
const UNUSED: &str = "an @crosspoint line had an optional member of a wrong type, and that was not used";

/// The members of which one makes a line what it is.
const MAIN: [&str; 4] = ["outputs", "artifact", "ask", "fail"];

/// A line that was read, and the rule that it breaks all the same (ALL-11).
pub(super) type Read = (Directive, Option<&'static str>);

/// Reads one line, as it was printed; an error says which rule it breaks. Null reads as absent; an optional member of
/// another type, and one that is not known, is not used.
pub(super) fn read(line: &[u8]) -> Result<Read, &'static str> {
    let tape = Tape::scan(line.strip_prefix(PREFIX).unwrap_or(line).trim_ascii()).map_err(|_| NOT_AN_OBJECT)?;
    let root = tape.root().filter(|root| root.kind() == Type::Object).ok_or(NOT_AN_OBJECT)?;
    // ALL-11: JSON on which readers disagree is treated as no JSON. A number that few readers can hold is passed on
    // like any other.
    if tape.is_ambiguous(root) {
        return Err(NOT_AN_OBJECT);
    }
    let member = |name: &str| root.get(name).filter(|value| !value.is_null());
    // Copied: it may be kept for long, and the rest of the buffer it was read from must not be kept with it.
    let raw = |value: Value<'_, '_>| Body::trusted(value.source().to_owned());
    let main = MAIN.into_iter().find_map(|name| Some((name, member(name)?)));
    let (directive, unused, known): (Directive, bool, &[&str]) = match main {
        Some((name, value)) if name != "fail" && value.kind() != Type::Object => return Err(WRONG),
        Some(("outputs", outputs)) => (Directive::Outputs(raw(outputs)), false, &MAIN[..1]),
        Some(("artifact", artifact)) => {
            text(artifact.get("name")).filter(|name| !name.is_empty()).ok_or(WRONG)?;
            artifact.get("content").filter(|content| !content.is_null()).ok_or(WRONG)?;
            (Directive::Artifact(raw(artifact)), is_other(artifact.get("type")), &MAIN[1..2])
        }
        Some(("ask", question)) => {
            text(question.get("prompt")).ok_or(WRONG)?;
            (Directive::Ask(Question::read(raw(question))), false, &MAIN[2..3])
        }
        Some((_, fail)) => (Directive::Fail(Fail::read(fail).ok_or(WRONG)?), false, &MAIN[3..]),
        None => {
            let (percent, step) = (member("progress").and_then(Value::float), text(member("step")));
            let percent = percent.filter(|percent| percent.is_finite());
            if percent.is_none() && step.is_none() {
                return Err(WRONG);
            }
            let unused = (member("progress").is_some() && percent.is_none()) || is_other(member("step"));
            (Directive::Progress { percent, step }, unused, &["progress", "step"])
        }
    };
    let is_known = |name: &str| known.contains(&name) || root.get(name).is_some_and(Value::is_null);
    let is_unknown = root.members().any(|(name, _)| !is_known(&name.decode()));
    Ok((directive, if is_unknown { Some(UNKNOWN) } else { unused.then_some(UNUSED) }))
}

/// Whether a value is there and is no text.
fn is_other(value: Option<Value<'_, '_>>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.kind() != Type::String)
}

fn text(value: Option<Value<'_, '_>>) -> Option<String> {
    Some(value?.text()?.decode().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with_rule(json: &str) -> Result<Read, &'static str> {
        read(format!("@crosspoint {json}\n").as_bytes())
    }

    fn read_text(json: &str) -> Result<Directive, &'static str> {
        read_with_rule(json).map(|(directive, rule)| {
            assert_eq!(rule, None, "{json}");
            directive
        })
    }

    #[test]
    fn what_is_loose_is_followed_and_said() {
        for (json, rule) in [
            (r#"{"outputs": {"a": 1}, "note": "x"}"#, Some(UNKNOWN)),
            (r#"{"outputs": {"a": 1}, "progress": null}"#, None),
            (r#"{"progress": 40, "step": null}"#, None),
            (r#"{"progress": null, "step": "Dig"}"#, None),
            (r#"{"progress": 40, "step": 7}"#, Some(UNUSED)),
            (r#"{"progress": "40", "step": "Dig"}"#, Some(UNUSED)),
            (r#"{"artifact": {"name": "a.txt", "type": null, "content": "c"}}"#, None),
            (r#"{"artifact": {"name": "a.txt", "type": 1, "content": "c"}}"#, Some(UNUSED)),
            (r#"{"progress": 1, "outputs": {}}"#, Some(UNKNOWN)),
            (r#"{"ask": {"prompt": "?"}, "x": 1}"#, Some(UNKNOWN)),
        ] {
            assert_eq!(read_with_rule(json).map(|(_, rule)| rule), Ok(rule), "{json}");
        }
    }

    #[test]
    fn what_is_known_is_read_and_kept_as_it_was_spelled() {
        let progress = |percent, step: Option<&str>| Directive::Progress { percent, step: step.map(str::to_owned) };
        assert_eq!(read_text(r#"{"progress": 40, "step": "Configure"}"#), Ok(progress(Some(40.0), Some("Configure"))));
        assert_eq!(read_text(r#"{"step": "a\u00fc"}"#), Ok(progress(None, Some("aü"))));
        let outputs = Directive::Outputs(Body::trusted(r#"{"n":  1.50}"#));
        assert_eq!(read_text(r#" {"outputs": {"n":  1.50}} "#), Ok(outputs));
        let large = Directive::Outputs(Body::trusted(r#"{"n":1e400}"#));
        assert_eq!(read_text(r#"{"outputs":{"n":1e400}}"#), Ok(large));
        let artifact = r#"{"name": "a.txt", "content": "x", "more": 1}"#;
        assert_eq!(
            read_text(&format!(r#"{{"artifact": {artifact}}}"#)),
            Ok(Directive::Artifact(Body::trusted(artifact)))
        );
        let question = r#"{"prompt": "Ship it?", "schema": {}}"#;
        assert_eq!(
            read_text(&format!(r#"{{"ask": {question}}}"#)),
            Ok(Directive::Ask(Question::read(Body::trusted(question))))
        );
    }

    #[test]
    fn what_is_not_is_said_to_break_a_rule() {
        let deep = format!(r#"{{"outputs":{{"a":{}{}}}}}"#, "[".repeat(126), "]".repeat(126));
        let unreadable = [
            "",
            "x",
            "[]",
            "7",
            "{\"progress\": 1",
            r#"{"step":"a","step":"b"}"#,
            r#"{"outputs":{"a":[{"b":1,"b":2}]}}"#,
            r#"{"outputs":{"a":"\ud800"}}"#,
            r#"{"artifact":{"name":"a","content":{"b":1,"b":2}}}"#,
            r#"{"ask":{"prompt":"?","schema":{"b":1,"b":2}}}"#,
            &deep,
        ];
        for json in unreadable {
            assert_eq!(read_text(json), Err(NOT_AN_OBJECT), "{json}");
        }
        let wrong = [
            "{}",
            r#"{"progress": "1"}"#,
            r#"{"progress": null}"#,
            r#"{"progress": 1e400}"#,
            r#"{"step": 1}"#,
            r#"{"outputs": []}"#,
            r#"{"artifact": {"name": "", "content": ""}}"#,
            r#"{"artifact": {"name": "a"}}"#,
            r#"{"artifact": {"name": "b.txt", "content": null}}"#,
            r#"{"progres": 1}"#,
            r#"{"ask": "Ship it?"}"#,
            r#"{"ask": {"schema": {}}}"#,
            r#"{"fail": true}"#,
        ];
        for json in wrong {
            assert_eq!(read_text(json), Err(WRONG), "{json}");
        }
    }
}
