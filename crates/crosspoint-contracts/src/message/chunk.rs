//! Which bytes of a long output a step carries: `bytes 0-262144 of 524288`, or the short form `bytes 0-256k`.
//!
//! [`split()`] cuts long output into blocks, and [`Reassembler`] puts the blocks of other senders together (MSG-9).

mod ranges;
mod reassemble;
mod refusal;
mod split;

pub use reassemble::{Piece, Plan, RANGES_MAX, Reassembler};
pub use refusal::Refusal;
pub use split::{BLOCK_BYTES_MAX, Blocks, WHOLE_BYTES_MAX, split, split_after, tail};

use std::fmt;

use crate::content::{Text, inline_schema};

/// A range of output, END exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset of the byte after the last.
    pub end: u64,
    /// Length of the whole output in bytes. The short form does not give it.
    pub total: Option<u64>,
}

impl Chunk {
    /// Reads either form. Returns `None` unless START <= END <= TOTAL.
    pub fn parse(text: Text<'_>) -> Option<Chunk> {
        let text = text.decode();
        let range = text.strip_prefix("bytes ")?;
        let (range, total) = match range.split_once(" of ") {
            Some((range, total)) => (range, Some(size(total)?)),
            None => (range, None),
        };
        let (start, end) = range.split_once('-')?;
        let chunk = Chunk { start: size(start)?, end: size(end)?, total };
        (chunk.start <= chunk.end && chunk.end <= total.unwrap_or(u64::MAX)).then_some(chunk)
    }

    /// Returns how many bytes the chunk covers: 0 if its end lies before its start, which no parsed chunk's does.
    pub fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Writes the long form, or without a total the short form, in plain bytes.
impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}-{}", self.start, self.end)?;
        match self.total {
            Some(total) => write!(f, " of {total}"),
            None => Ok(()),
        }
    }
}

/// Reads digits, with `k` for 1,024.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    // `parse` alone would accept a plus sign.
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().ok()?.checked_mul(unit))?
}

inline_schema!(Chunk, { "type": "string", "pattern": r"^bytes \d+k?-\d+k?( of \d+k?)?$" });
