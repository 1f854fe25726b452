//! JSON on its way to a terminal: laid out again, and unable to do anything there.

use std::fmt::Write;

use crosspoint_contracts::json::{self, Levels, Tape};

use crate::render;

/// Over several lines. Numbers and strings keep their spelling and members their order.
pub(crate) fn pretty(text: &str) -> String {
    laid_out(text, json::pretty)
}

/// On one line.
pub(crate) fn one_line(text: &str) -> String {
    laid_out(text, json::compact)
}

fn laid_out(text: &str, lay_out: fn(json::Value<'_, '_>) -> String) -> String {
    let tape = Tape::scan_within(text.as_bytes(), Levels::Wrapped);
    let text = tape.ok().and_then(|tape| tape.root().map(lay_out)).unwrap_or_else(|| text.to_owned());
    harmless(&text)
}

/// Characters that would move the cursor or turn the text, as escapes. They can only stand in strings, where an escape means
/// the same, so that it is still the same JSON.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' || render::is_harmless(character) {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}
