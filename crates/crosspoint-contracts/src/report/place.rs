//! Where a finding is: its JSON pointer, its line and its column.

use super::POINTER_BYTES_MAX;
use crate::json::{Text, Type, Value};

/// The path from the root to the node that was visited last.
#[derive(Default)]
pub(super) struct Path {
    open: Vec<Container>,
    /// Token of the node that was visited last, within its container.
    last: Option<String>,
    /// Set when a key was visited and its value comes next.
    pending_key: Option<String>,
}

struct Container {
    end: u32,
    token: Option<String>,
    items: Option<usize>,
}

impl Path {
    pub(super) fn step(&mut self, value: Value<'_, '_>) {
        while self.open.last().is_some_and(|level| level.end <= value.index()) {
            self.open.pop();
        }
        if value.kind() == Type::Key {
            let name = value.text().map(token).unwrap_or_default();
            self.last = Some(name.clone());
            self.pending_key = Some(name);
            return;
        }
        let token = match self.open.last_mut() {
            Some(Container { items: Some(count), .. }) => {
                *count += 1;
                Some((*count - 1).to_string())
            }
            _ => self.pending_key.take(),
        };
        self.last.clone_from(&token);
        if matches!(value.kind(), Type::Object | Type::Array) {
            let items = (value.kind() == Type::Array).then_some(0);
            self.open.push(Container { end: value.next_index(), token, items });
            // The container itself is the last of `open` now. Its token must not be counted twice.
            self.last = None;
        }
    }

    pub(super) fn pointer(&self) -> Pointer {
        let mut pointer = Pointer::default();
        let tokens = self.open.iter().filter_map(|level| level.token.as_deref());
        for token in tokens.chain(self.last.as_deref()) {
            pointer.push(token);
        }
        pointer
    }
}

/// Returns a member's name as a token of a pointer. Only the beginning of a long name is kept.
fn token(name: Text<'_>) -> String {
    let raw = name.raw();
    if raw.len() <= POINTER_BYTES_MAX {
        return name.decode().into_owned();
    }
    let end = (0..=POINTER_BYTES_MAX).rev().find(|&end| raw.is_char_boundary(end)).unwrap_or(0);
    raw[..end].to_owned()
}

/// Returns the pointer that these names and numbers make.
pub(crate) fn pointer(tokens: &[&str]) -> String {
    let mut pointer = Pointer::default();
    tokens.iter().for_each(|token| pointer.push(token));
    pointer.text
}

/// A pointer that is being written.
#[derive(Default)]
pub(super) struct Pointer {
    pub(super) text: String,
    cut: bool,
}

impl Pointer {
    /// Appends one reference token, escaped as RFC 6901 demands, unless the pointer is cut already.
    pub(super) fn push(&mut self, token: &str) {
        if self.cut {
            return;
        }
        self.text.push('/');
        self.text.push_str(&token.replace('~', "~0").replace('/', "~1"));
        if self.text.len() > POINTER_BYTES_MAX {
            let most = POINTER_BYTES_MAX - CUT.len();
            let end = (0..=most).rev().find(|&end| self.text.is_char_boundary(end)).unwrap_or(0);
            self.text.truncate(end);
            self.text.push_str(CUT);
            self.cut = true;
        }
    }
}

/// Ends a pointer that was cut.
const CUT: &str = "...";

/// Computes lines and columns of ascending offsets in one pass through the source.
pub(super) struct LineCounter<'s> {
    source: &'s [u8],
    offset: usize,
    line: usize,
    column: usize,
}

impl<'s> LineCounter<'s> {
    pub(super) fn new(source: &'s [u8]) -> LineCounter<'s> {
        LineCounter { source, offset: 0, line: 1, column: 1 }
    }

    /// Returns line and column of a byte. Offsets must not descend from call to call.
    pub(super) fn at(&mut self, offset: usize) -> (usize, usize) {
        let end = offset.min(self.source.len());
        while self.offset < end {
            let byte = self.source[self.offset];
            let ends_line = byte == b'\n' || (byte == b'\r' && self.source.get(self.offset + 1) != Some(&b'\n'));
            if ends_line {
                self.line += 1;
                self.column = 1;
            } else if byte & 0xc0 != 0x80 {
                // Continuation bytes of UTF-8 belong to the character before.
                self.column += 1;
            }
            self.offset += 1;
        }
        (self.line, self.column)
    }
}
