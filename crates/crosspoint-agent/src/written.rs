//! What a handler gives, as JSON that all readers can read, and no more of it than they take.

use std::io;

use crosspoint_contracts::json::{DEPTH_MAX, Tape, WRAPPING_LEVELS_MAX};
use serde::Serialize;

use crate::Failure;

/// How deep it may nest: the documents around it have levels too, and no reader must take more in all.
const LEVELS_MAX: usize = DEPTH_MAX - WRAPPING_LEVELS_MAX;

/// Room for most values, in bytes.
const SHORT_BYTES: usize = 512;

/// Writes a value. `what` is the value in a failure.
pub(crate) fn json(value: &(impl Serialize + ?Sized), what: &str, bytes_max: usize) -> Result<String, Failure> {
    let mut room = Room { bytes: Vec::with_capacity(SHORT_BYTES), bytes_max };
    serde_json::to_writer(&mut room, value).map_err(|error| match error.classify() {
        serde_json::error::Category::Io => Failure::too_large(&format!("{what} has"), bytes_max),
        serde_json::error::Category::Data | serde_json::error::Category::Syntax | serde_json::error::Category::Eof => {
            Failure::from(error)
        }
    })?;
    let text = String::from_utf8(room.bytes)?;
    match unreadable(&text) {
        Some(why) => Err(Failure::new(format!("{what} {why}"))),
        None => Ok(text),
    }
}

/// Returns why not all readers can read it, or not alike (ALL-11).
fn unreadable(text: &str) -> Option<&'static str> {
    let Ok(tape) = Tape::scan(text.as_bytes()) else { return Some("nests too deep") };
    let is_ambiguous = || tape.root().is_some_and(|root| tape.is_ambiguous(root));
    match tape.deepest() {
        levels if levels > LEVELS_MAX => Some("nests too deep"),
        _ if is_ambiguous() => Some("holds a name twice, or half a character"),
        _ => None,
    }
}

/// A text that grows up to its limit.
struct Room {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
