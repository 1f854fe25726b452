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
const UNKNOWN: &str = "an @crosspoint line had a member that is not known there, and was kept as output";
const WRONG: &str = "an @crosspoint line had a member of a wrong type, or lacked one, and was kept as output";

/// Reads one line, as it was printed; an error says which rule it breaks.
pub(super) fn read(line: &[u8]) -> Result<Directive, &'static str> {
    let tape = Tape::scan(line.strip_prefix(PREFIX).unwrap_or(line).trim_ascii()).map_err(|_| NOT_AN_OBJECT)?;
    let root = tape.root().filter(|root| root.kind() == Type::Object).ok_or(NOT_AN_OBJECT)?;
    // ALL-11: JSON on which readers disagree is treated as no JSON. A number that few readers can hold is passed on
    // like any other.
    if tape.is_ambiguous(root) {
        return Err(NOT_AN_OBJECT);
    }
    let names: Vec<String> = root.members().map(|(name, _)| name.decode().into_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let member = |name: &str| root.get(name);
    // Copied: it may be kept for long, and the rest of the buffer it was read from must not be kept with it.
    let raw = |value: Value<'_, '_>| Body::trusted(value.source().to_owned());
    match names.as_slice() {
        [] => Err(WRONG),
        ["outputs"] => object(member("outputs")).map(|value| Directive::Outputs(raw(value))),
        ["artifact"] => {
            let artifact = object(member("artifact"))?;
            text(artifact.get("name"))?.filter(|name| !name.is_empty()).ok_or(WRONG)?;
            text(artifact.get("type"))?;
            artifact.get("content").ok_or(WRONG)?;
            Ok(Directive::Artifact(raw(artifact)))
        }
        ["ask"] => {
            let question = object(member("ask"))?;
            text(question.get("prompt"))?.ok_or(WRONG)?;
            Ok(Directive::Ask(Question::read(raw(question))))
        }
        ["fail"] => member("fail").and_then(Fail::read).map(Directive::Fail).ok_or(WRONG),
        names if names.iter().all(|name| ["progress", "step"].contains(name)) => {
            let percent = match member("progress") {
                Some(value) => Some(value.float().filter(|percent| percent.is_finite()).ok_or(WRONG)?),
                None => None,
            };
            Ok(Directive::Progress { percent, step: text(member("step"))? })
        }
        _ => Err(UNKNOWN),
    }
}

fn object<'t, 's>(value: Option<Value<'t, 's>>) -> Result<Value<'t, 's>, &'static str> {
    value.filter(|value| value.kind() == Type::Object).ok_or(WRONG)
}

/// Returns the text, if there is a value; a value of another type is an error.
fn text(value: Option<Value<'_, '_>>) -> Result<Option<String>, &'static str> {
    let Some(value) = value else { return Ok(None) };
    let text = value.text().filter(|_| value.kind() == Type::String).ok_or(WRONG)?;
    Ok(Some(text.decode().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(json: &str) -> Result<Directive, &'static str> {
        read(format!("@crosspoint {json}\n").as_bytes())
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
        for json in [r#"{"progres": 1}"#, r#"{"progress": 1, "outputs": {}}"#, r#"{"ask": {"prompt": "?"}, "x": 1}"#] {
            assert_eq!(read_text(json), Err(UNKNOWN), "{json}");
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
            r#"{"artifact": {"name": "a", "type": 1, "content": ""}}"#,
            r#"{"ask": "Ship it?"}"#,
            r#"{"ask": {"schema": {}}}"#,
            r#"{"fail": true}"#,
        ];
        for json in wrong {
            assert_eq!(read_text(json), Err(WRONG), "{json}");
        }
    }
}
