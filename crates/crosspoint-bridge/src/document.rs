//! What request and response files have in common: a JSON document with an id in it, indented for people.

use crosspoint_contracts::json::{Levels, Tape, pretty};

use crate::directory::Found;

/// Returns the document as it is written: indented by two spaces per level, with non-ASCII text as it is (BRIDGE-7.2).
pub fn laid_out(document: &str) -> Vec<u8> {
    let tape = Tape::scan_within(document.as_bytes(), Levels::Wrapped);
    let laid_out = tape.ok().and_then(|tape| tape.root().map(pretty)).unwrap_or_else(|| document.to_owned());
    format!("{laid_out}\n").into_bytes()
}

/// Returns whether the document that was found has this id.
pub fn is_of(found: &Found, request_id: &str) -> bool {
    id_of(&found.bytes).is_some_and(|id| id == request_id)
}

/// Returns the id in a document, which may be broken, or cut off after the id.
pub fn id_of(document: &[u8]) -> Option<String> {
    let scanned = Tape::scan(document);
    let root = match &scanned {
        Ok(tape) => tape.root(),
        Err(broken) => broken.so_far.root(),
    };
    let id = root?.get("request_id")?;
    // An id that is cut off in the middle is not the id that the writer gave.
    let is_whole = scanned.is_ok() || Tape::scan(id.source().as_bytes()).is_ok();
    Some(id.text()?.decode().into_owned()).filter(|id| is_whole && !id.is_empty())
}
