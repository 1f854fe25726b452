//! Cuts long output into blocks, and keeps the end of it.
//!
//! The obvious cut, every 262,144 bytes, may fall inside a character. A block travels as a JSON string, which cannot
//! hold half a character: the half would be sent as replacement characters, of another length, and the output could not
//! be put together again. So a block ends at the last boundary within that size, and may be up to three bytes shorter.

use std::fmt;
use std::iter::FusedIterator;

use super::Chunk;

/// Longest output that is sent whole, in bytes: 1 MiB. Longer output is sent in blocks (MSG-9, MSG-9.6).
pub const WHOLE_BYTES_MAX: usize = 1 << 20;

/// Longest block, in bytes.
pub const BLOCK_BYTES_MAX: usize = 262_144;

/// Returns the blocks that output is sent in, or `None` if it is short enough to be sent whole.
pub fn split(output: &str) -> Option<Blocks<'_>> {
    split_after(output, 0)
}

/// Like [`split()`], for output whose first `start` bytes were sent while it was printed. Where that is no boundary of
/// characters, the character is sent again.
pub fn split_after(output: &str, start: usize) -> Option<Blocks<'_>> {
    let start = output.floor_char_boundary(start);
    (output.len() > WHOLE_BYTES_MAX).then_some(Blocks { output, start })
}

/// Returns the last 1 MiB of output, which is what a result keeps of it. A character that would be cut is left out.
pub fn tail(output: &str) -> &str {
    let cut = output.len().saturating_sub(WHOLE_BYTES_MAX);
    &output[output.ceil_char_boundary(cut)..]
}

/// The blocks of one output, in order.
#[derive(Clone)]
pub struct Blocks<'s> {
    output: &'s str,
    start: usize,
}

impl<'s> Iterator for Blocks<'s> {
    type Item = (Chunk, &'s str);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.start;
        // A boundary beyond the end of the output is its end. A character is shorter than a block, so every block
        // advances.
        let end = self.output.floor_char_boundary(start + BLOCK_BYTES_MAX);
        self.start = end;
        let chunk = Chunk { start: start as u64, end: end as u64, total: Some(self.output.len() as u64) };
        (start < end).then(|| (chunk, &self.output[start..end]))
    }
}

impl FusedIterator for Blocks<'_> {}

impl fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blocks[{} of {} bytes]", self.output.len() - self.start, self.output.len())
    }
}
