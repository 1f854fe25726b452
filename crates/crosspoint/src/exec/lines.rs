//! Cuts what a program prints into blocks of output and directives, the lines that are meant for Crosspoint.
//!
//! Output is passed on as it comes, in whole lines if there are any, in blocks of at most 64 KiB. A line that has not
//! ended is kept for a moment, because the rest of it is probably on its way, but not for ever: a prompt has no line
//! break. Only a line that may still become a directive is kept until it ends. Pure: the caller keeps the time.

use bytes::{Bytes, BytesMut};
use std::io::BufRead;

/// What a directive begins with.
pub(super) const PREFIX: &[u8] = b"@crosspoint ";

/// Longest block of output, in bytes.
pub(super) const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Longest directive, in bytes: as long as what it can hold, which is outputs or an artifact.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// A piece of what was printed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Output(Bytes),
    /// A line that is meant for Crosspoint, as it was printed.
    Directive(Bytes),
    /// A directive that is too long follows as output.
    TooLong,
}

/// Whether a line that has not ended may have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// More is on its way.
    Comes,
    /// Nothing has come for a while.
    Late,
    /// Nothing comes any more.
    Never,
}

/// What was printed and is not passed on yet.
pub(super) struct Lines {
    buffer: BytesMut,
    /// Whether the buffer begins where a line does.
    at_start: bool,
    /// How far the buffer was searched for the end of a directive.
    searched: usize,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines { buffer: BytesMut::new(), at_start: true, searched: 0 }
    }

    /// Where to put what comes next.
    pub(super) fn room(&mut self) -> &mut BytesMut {
        self.buffer.reserve(BLOCK_BYTES_MAX);
        &mut self.buffer
    }

    /// Whether anything is left that is passed on after a while.
    pub(super) fn is_waiting(&self) -> bool {
        let is_held = self.at_start && may_be_ours(&self.buffer);
        !self.buffer.is_empty() && !is_held
    }

    /// The next piece, if there is one.
    pub(super) fn take(&mut self, more: More) -> Option<Piece> {
        if self.buffer.is_empty() {
            return None;
        }
        if self.at_start && may_be_ours(&self.buffer) {
            return self.take_ours(more);
        }
        self.searched = 0;
        let end = self.output_end(more)?;
        let block = self.buffer.split_to(end).freeze();
        self.at_start = block.last() == Some(&b'\n');
        Some(Piece::Output(block))
    }

    fn take_ours(&mut self, more: More) -> Option<Piece> {
        let end = line_end(&self.buffer[self.searched..]).map(|end| self.searched + end);
        self.searched = self.buffer.len();
        let end = match end {
            Some(end) => end,
            None if self.buffer.len() > LINE_BYTES_MAX => self.buffer.len(),
            None if more == More::Never => self.buffer.len(),
            None => return None,
        };
        self.searched = 0;
        if end > LINE_BYTES_MAX {
            // From here on the line is output, and not at its start.
            self.at_start = false;
            return Some(Piece::TooLong);
        }
        let line = self.buffer.split_to(end).freeze();
        Some(if line.starts_with(PREFIX) { Piece::Directive(line) } else { Piece::Output(line) })
    }

    /// Returns where the next block ends; the buffer begins with output.
    fn output_end(&self, more: More) -> Option<usize> {
        let window = &self.buffer[..self.buffer.len().min(BLOCK_BYTES_MAX)];
        if let Some(ours) = ours_within(window, &self.buffer) {
            return Some(ours);
        }
        if let Some(last) = window.iter().rposition(|byte| *byte == b'\n') {
            return Some(last + 1);
        }
        if window.len() == BLOCK_BYTES_MAX {
            return Some(whole_characters(window));
        }
        match more {
            More::Comes => None,
            // A character that is incomplete waits for its rest, as long as that takes.
            More::Late => Some(whole_characters(window)).filter(|end| *end > 0),
            More::Never => Some(window.len()),
        }
    }
}

/// Returns where within the window, but not at its very beginning, a line begins that is or may become a directive.
fn ours_within(window: &[u8], buffer: &[u8]) -> Option<usize> {
    let mut from = 1;
    while let Some(found) = window.get(from..).and_then(|rest| position(rest, b'@')) {
        let at = from + found;
        if window.get(at - 1) == Some(&b'\n') && may_be_ours(&buffer[at..]) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Whether a line that begins like this is a directive, or may be one once there is more of it.
fn may_be_ours(line: &[u8]) -> bool {
    let known = line.len().min(PREFIX.len());
    line[..known] == PREFIX[..known]
}

/// Returns how many bytes to take so that no character is cut in two, if they are text at all.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

/// Returns where the first line ends, its line break included.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    position(bytes, b'\n').map(|at| at + 1)
}

/// Returns where a byte is. This is the system's own search, which is fast in every build.
pub(super) fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut rest = bytes;
    let count = rest.skip_until(wanted).unwrap_or_default();
    (count > 0 && bytes[count - 1] == wanted).then(|| count - 1)
}

#[cfg(test)]
mod tests;
