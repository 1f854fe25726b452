//! Bodies of JSON on which all readers agree.

use bytes::Bytes;
use crosspoint_contracts::clause::all::{ALL_103, ALL_104};
use crosspoint_contracts::json::{Flaw, FlawKind, Levels, Syntax, Tape, Type, Value};
use crosspoint_exchange::refusal::Refusal;

use crate::long;

/// Scans the body as JSON on which all readers agree.
pub fn scan(document: &Bytes) -> Result<Tape<'_>, Refusal> {
    let tape = scan_ambiguous(document)?;
    match tape.flaws().iter().find(|flaw| flaw.kind.is_ambiguous()) {
        Some(flaw) => Err(ambiguous(document, flaw)),
        None => Ok(tape),
    }
}

/// Scans the body as JSON, even if readers may disagree on what it says.
pub fn scan_ambiguous(document: &Bytes) -> Result<Tape<'_>, Refusal> {
    scan_within(document, Levels::Received)
}

/// The same, for a body that may nest this deep.
pub fn scan_within(document: &Bytes, levels: Levels) -> Result<Tape<'_>, Refusal> {
    long::look(document.len(), || Tape::scan_within(document, levels)).map_err(|broken| {
        let (line, column) = line_and_column(document, broken.error.offset);
        let syntax = broken.error.kind;
        let message = format!("the body is not JSON: {} (line {line}, column {column})", syntax.message());
        let hint = if syntax_is_cut(syntax) { "the body looks cut off: send all of it" } else { syntax.hint() };
        Refusal::invalid(message, hint)
    })
}

/// Whether the syntax error has a hint that speaks of files.
fn syntax_is_cut(syntax: Syntax) -> bool {
    [Syntax::Empty, Syntax::EndsInString, Syntax::EndsInObject, Syntax::EndsInArray].contains(&syntax)
}

/// ALL-11: refuses JSON on which readers disagree, wherever in the body it is.
pub fn ambiguous(document: &Bytes, flaw: &Flaw) -> Refusal {
    let (line, column) = line_and_column(document, flaw.offset as usize);
    let (what, hint, clause) = match flaw.kind {
        FlawKind::LoneSurrogate => {
            ("a string of the body holds half a character", "write the character itself, or both halves", ALL_104.id)
        }
        FlawKind::RepeatedMember | FlawKind::ByteOrderMark | FlawKind::NumberRange => {
            ("a name stands twice in an object of the body", "leave one of the two out", ALL_103.id)
        }
    };
    Refusal::invalid(format!("{what} (line {line}, column {column})"), hint).clause(clause)
}

/// Returns the body, which must be an object.
pub fn object<'t, 's>(tape: &'t Tape<'s>, hint: &'static str) -> Result<Value<'t, 's>, Refusal> {
    let root = tape.root().ok_or_else(|| Refusal::invalid("the body is empty", hint))?;
    if root.kind() != Type::Object {
        return Err(wrong("", root, "an object", hint).at(""));
    }
    Ok(root)
}

/// A value has the wrong type.
pub fn wrong(pointer: &'static str, value: Value<'_, '_>, must_be: &str, hint: &'static str) -> Refusal {
    let name = if pointer.is_empty() { "the body".to_owned() } else { format!("`{}`", pointer[1..].replace('/', ".")) };
    let message = format!("{name} is {} and must be {must_be}", value.kind().described());
    Refusal::invalid(message, hint).at(pointer)
}

/// Returns the line and the column of a byte, both from 1. The column counts characters.
pub fn line_and_column(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = before[start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() + 1;
    (line, column)
}
