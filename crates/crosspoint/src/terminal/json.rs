//! JSON for a terminal: formatted again, and with characters escaped that could control the terminal.

use std::fmt::Write;

use crosspoint_contracts::json::{self, Levels, Tape};

use crate::terminal::render;

/// Formats JSON over several lines. Numbers and strings keep their spelling and members their order.
pub(crate) fn pretty(text: &str) -> String {
    laid_out(text, json::pretty)
}

/// Formats JSON on one line.
pub(crate) fn one_line(text: &str) -> String {
    laid_out(text, json::compact)
}

fn laid_out(text: &str, lay_out: fn(json::Value<'_, '_>) -> String) -> String {
    let tape = Tape::scan_within(text.as_bytes(), Levels::Wrapped);
    let text = tape.ok().and_then(|tape| tape.root().map(lay_out)).unwrap_or_else(|| text.to_owned());
    harmless(&text)
}

/// Escapes characters that would move the cursor or change the direction of the text. They can only occur in strings,
/// where an escape means the same, so the text remains the same JSON.
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
