//! Writes one note that says what a member of the domain held.
//!
//! The contract prints "Validation: 8 passed, 1 failed" for `{"passed": 8, "failed": 1}` and a count for an array. The
//! rule: numbers of an object come before their names, other scalars after them, and arrays are counted. A summary that
//! does not say everything is followed by the value itself: the member is gone, so the note is the only place that
//! holds it.

use crate::json::{self, Text, Type, Value};

/// Returns the note for a member.
pub(super) fn note(name: Text<'_>, value: Value<'_, '_>) -> String {
    let words = words(name);
    match value.kind() {
        Type::Array => counted(&words, value),
        Type::Object if is_flat(value) => {
            let label = capitalised(&words);
            format!("{}: {}", label.strip_suffix(" report").unwrap_or(&label), parts(value))
        }
        Type::Object | Type::Key => format!("{}: {}", capitalised(&words), json::compact(value)),
        Type::String | Type::Number | Type::Boolean | Type::Null => {
            format!("{}: {}", capitalised(&words), scalar(value, Stands::Alone))
        }
    }
}

/// Returns a name as it would be spoken.
fn words(name: Text<'_>) -> String {
    let words = name.decode().replace(['_', '-'], " ").trim().to_owned();
    if words.is_empty() { json::quoted(&name.decode()) } else { words }
}

fn capitalised(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Returns an array as a count, with what is counted.
fn counted(words: &str, array: Value<'_, '_>) -> String {
    match array.items().count() {
        0 => format!("0 {words}"),
        1 => format!("1 {}: {}", singular(words), json::compact(array)),
        count => format!("{count} {words}: {}", json::compact(array)),
    }
}

fn singular(words: &str) -> String {
    if let Some(stem) = words.strip_suffix("ies") {
        return format!("{stem}y");
    }
    // status, analysis and class are no plurals.
    let is_plural = words.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| words.ends_with(ending));
    if is_plural { words[..words.len() - 1].to_owned() } else { words.to_owned() }
}

fn is_flat(object: Value<'_, '_>) -> bool {
    let mut members = object.members().peekable();
    members.peek().is_some() && members.all(|(_, value)| !matches!(value.kind(), Type::Object | Type::Array))
}

fn parts(object: Value<'_, '_>) -> String {
    let part = |(name, value): (Text<'_>, Value<'_, '_>)| match value.kind() {
        Type::Number => format!("{} {}", value.source(), words(name)),
        Type::Object | Type::Array | Type::Key | Type::String | Type::Boolean | Type::Null => {
            format!("{}: {}", words(name), scalar(value, Stands::AmongOthers))
        }
    };
    object.members().map(part).collect::<Vec<_>>().join(", ")
}

/// Where a scalar stands in a note.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Alone,
    AmongOthers,
}

/// Returns a scalar as text. A string that could be taken for another scalar, or for more than one part, keeps its
/// quotes.
fn scalar(value: Value<'_, '_>, stands: Stands) -> String {
    let Some(text) = value.text() else { return value.source().to_owned() };
    let text = text.decode();
    let ends_early = stands == Stands::AmongOthers && text.contains(',');
    if is_plain(&text) && !ends_early { text.into_owned() } else { value.source().to_owned() }
}

fn is_plain(text: &str) -> bool {
    let is_other_scalar = matches!(text, "true" | "false" | "null") || text.parse::<f64>().is_ok();
    let is_bare = !text.is_empty() && text.trim() == text && !text.starts_with(['"', '{', '[']);
    is_bare && !is_other_scalar && !text.contains(char::is_control)
}
