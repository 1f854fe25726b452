//! What is loose about a request, told to whoever sent it: under `metadata.x_crosspoint.warnings` of the direct answer, where the contract
//! has no field for it and its metadata are open.

use crosspoint_contracts::json::{Levels, Tape, Type, quoted};

const PLACE: [&str; 3] = ["metadata", "x_crosspoint", "warnings"];

/// A document about a job, with these warnings.
pub(super) fn warned(document: String, warnings: &[String]) -> String {
    if warnings.is_empty() {
        return document;
    }
    let warnings: Vec<String> = warnings.iter().map(|text| quoted(text)).collect();
    // An agent may have a word of its own at that place, which is then left alone.
    with(&document, &PLACE, &format!("[{}]", warnings.join(","))).unwrap_or(document)
}

/// The document with a value at a place where none is; what leads there is made where it is missing.
fn with(document: &str, place: &[&str], value: &str) -> Option<String> {
    let tape = Tape::scan_within(document.as_bytes(), Levels::Wrapped).ok()?;
    let mut object = tape.root()?;
    for (depth, name) in place.iter().enumerate() {
        let Some(inner) = object.get(name) else {
            let nested = place[depth + 1..]
                .iter()
                .rev()
                .fold(value.to_owned(), |value, name| format!("{{{}:{value}}}", quoted(name)));
            let comma = if object.members().next().is_some() { "," } else { "" };
            let (before, after) = document.split_at(object.span().1 - 1);
            return Some(format!("{before}{comma}{}:{nested}{after}", quoted(name)));
        };
        if inner.kind() != Type::Object {
            return None;
        }
        object = inner;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_put_where_none_is_and_nothing_is_replaced() {
        let put = |document: &str| with(document, &["a", "b"], "1");
        assert_eq!(put("{}").as_deref(), Some(r#"{"a":{"b":1}}"#));
        assert_eq!(put(r#"{"c":2}"#).as_deref(), Some(r#"{"c":2,"a":{"b":1}}"#));
        assert_eq!(put(r#"{"a":{}}"#).as_deref(), Some(r#"{"a":{"b":1}}"#));
        assert_eq!(put(r#"{"a": {"c":2}}"#).as_deref(), Some(r#"{"a": {"c":2,"b":1}}"#));
        for kept in [r#"{"a":{"b":2}}"#, r#"{"a":{"b":{}}}"#, r#"{"a":[]}"#] {
            assert_eq!(put(kept), None, "{kept}");
        }
    }
}
