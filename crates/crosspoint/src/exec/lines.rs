//! Cuts what a program prints into blocks of output and the lines that are meant for us.
//!
//! Output is passed on as it comes, whole lines where there are any, in blocks of at most 64 KiB. A line that has not ended is kept for a
//! moment, because the rest of it is probably on its way, but not for ever: a prompt has no line break. Only a line that may still
//! become one of ours is kept until it ends. Pure: time is the caller's.

use bytes::{Bytes, BytesMut};
use std::io::BufRead;

/// What a line begins with that is meant for us.
pub(super) const PREFIX: &[u8] = b"@crosspoint ";

/// A block of output is at most so long, in bytes.
pub(super) const BLOCK_BYTES_MAX: usize = 64 << 10;

/// A line that is meant for us is at most so long, in bytes: as long as what it can hold, which is outputs or an artifact.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// A piece of what was printed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Output(Bytes),
    /// A line that is meant for us, as it was printed.
    Directive(Bytes),
    /// A line that was meant for us and is too long follows as output.
    TooLong,
}

/// Whether the line that has not ended may have to wait.
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
    /// How far the buffer was searched for the end of a line that is meant for us.
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

    /// Whether anything is left that time could bring on.
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
            // It is output now, and as such it has begun.
            self.at_start = false;
            return Some(Piece::TooLong);
        }
        let line = self.buffer.split_to(end).freeze();
        Some(if line.starts_with(PREFIX) { Piece::Directive(line) } else { Piece::Output(line) })
    }

    /// Where the next block ends; what begins the buffer is output.
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
            // A character of which only the beginning is there waits for its end, as long as that takes.
            More::Late => Some(whole_characters(window)).filter(|end| *end > 0),
            More::Never => Some(window.len()),
        }
    }
}

/// Where within the window a line begins that is, or may become, meant for us; not at its very beginning.
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

/// Whether a line that begins so is meant for us, or may be once there is more of it.
fn may_be_ours(line: &[u8]) -> bool {
    let known = line.len().min(PREFIX.len());
    line[..known] == PREFIX[..known]
}

/// So many bytes that no character is cut in two, where they are characters at all.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

/// Where the first line ends, its line break included.
pub(super) fn line_end(bytes: &[u8]) -> Option<usize> {
    position(bytes, b'\n').map(|at| at + 1)
}

/// Where a byte is. This is the system's own search, which is fast in every build.
pub(super) fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut rest = bytes;
    let count = rest.skip_until(wanted).unwrap_or_default();
    (count > 0 && bytes[count - 1] == wanted).then(|| count - 1)
}

#[cfg(test)]
mod tests;
