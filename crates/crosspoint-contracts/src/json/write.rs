//! Writes JSON text, and compares it.
//!
//! Most of what is written are slices of what was read. Only text that is made up here, or joined from several pieces,
//! needs quotes and escapes anew.

use std::borrow::Cow;

use super::{Type, Value, number};

/// Appends a JSON string. Non-ASCII stays as it is.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends the text between the quotes of a JSON string.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        push_escape(out, tail.as_bytes()[0]);
        rest = &tail[1..];
    }
    out.push_str(rest);
}

/// Returns the place of the first byte that needs an escape. Blocks of plain text are passed as a whole, without a
/// branch for each byte: long texts have few such bytes.
fn first_special(bytes: &[u8]) -> Option<usize> {
    const BLOCK_BYTES: usize = 32;
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let is_plain = |block: &&[u8]| !block.iter().fold(false, |special, byte| special | is_special(byte));
    let plain = bytes.chunks_exact(BLOCK_BYTES).take_while(is_plain).count() * BLOCK_BYTES;
    bytes[plain..].iter().position(is_special).map(|at| plain + at)
}

fn push_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        other => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(char::from(DIGITS[usize::from(other >> 4)]));
            out.push(char::from(DIGITS[usize::from(other & 15)]));
        }
    }
}

/// Returns the text as a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    push_quoted(&mut out, text);
    out
}

/// Starts the next member of an object whose opening brace was just written, or that has members already.
pub(crate) fn push_name(out: &mut String, name: &str) {
    out.push_str(if out.ends_with('{') { "\"" } else { ",\"" });
    push_escaped(out, name);
    out.push_str("\":");
}

/// Starts the next member like [`push_name`], but with a name of our own, which needs no escapes.
pub(crate) fn push_known(out: &mut String, name: &'static str) {
    out.push_str(if out.ends_with('{') { "\"" } else { ",\"" });
    out.push_str(name);
    out.push_str("\":");
}

/// Returns whether two values are the same. The order of members, white space, escapes and the spelling of numbers do
/// not count.
///
/// Numbers are equal if their exact decimal values are, so that two different account numbers of any length are never
/// taken for the same (ALL-1). The function recurses, but no deeper than [`super::DEPTH_MAX`].
pub fn equal(a: Value<'_, '_>, b: Value<'_, '_>) -> bool {
    if a.source() == b.source() {
        return true;
    }
    match (a.kind(), b.kind()) {
        (Type::Object, Type::Object) => {
            let (a, b) = (sorted(a), sorted(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && equal(a.1, b.1))
        }
        (Type::Array, Type::Array) => {
            a.items().count() == b.items().count() && a.items().zip(b.items()).all(|(a, b)| equal(a, b))
        }
        (Type::String, Type::String) => a.text() == b.text(),
        (Type::Number, Type::Number) => number::equal(a.source(), b.source()),
        _ => false,
    }
}

/// Returns the members sorted by name, so that two objects with a million members are compared in one pass.
fn sorted<'t, 's>(object: Value<'t, 's>) -> Vec<(Cow<'s, str>, Value<'t, 's>)> {
    let mut members: Vec<_> = object.members().map(|(name, value)| (name.decode(), value)).collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members
}
