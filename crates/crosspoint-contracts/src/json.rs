//! JSON that remembers where it was written.
//!
//! A validator must name *all* that is wrong with a document, with line and column, and must not stop at the first
//! mistake. A deserialiser into types stops at the first; a tree of values has forgotten the places. So the bytes are
//! scanned once into a flat *tape* of nodes, each a span of the source and the index of its next sibling. Everything
//! after that, from detection to typed reading, walks the tape; strings and opaque payloads stay slices of the source.
//!
//! The scanner keeps its own stack, so nesting costs no call stack. Depth and size have limits. Repeated members, lone
//! surrogates, numbers that no reader can hold and a byte order mark do not stop the scan but are noted as [`Flaw`]s.
//! After a syntax error the tape holds what was read so far, so that a truncated document can still be recognised by
//! its first members.

mod bytes;
#[cfg(debug_assertions)]
mod count;
mod decode;
mod flaw;
mod number;
mod pretty;
mod scan;
mod write;

#[cfg(debug_assertions)]
pub use count::take_scans;
pub use decode::{Places, Text};
pub use flaw::{Flaw, FlawKind, Syntax, SyntaxError};
pub use number::one_spelling;
pub use pretty::{compact, plain, pretty};
pub use write::equal;
pub use write::quoted;
pub(crate) use write::{push_escaped, push_known, push_name, push_quoted};

use std::fmt;

/// How deep values may nest: as deep as `serde_json` reads, so that the parsers of our users can read every document
/// that passes here.
pub const DEPTH_MAX: usize = 127;

/// Most levels that a document of ours may nest beyond [`DEPTH_MAX`]. What a caller or an agent gave was within that
/// limit. A writer puts it into the members of another document, perhaps among the carried facts, and that must not
/// turn an accepted answer into one that cannot be read.
pub const WRAPPING_LEVELS_MAX: usize = 8;

/// Largest document, in bytes: offsets are kept in 32 bits.
pub const DOCUMENT_BYTES_MAX: usize = u32::MAX as usize;

/// How deep a document may nest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Levels {
    /// A document from outside: up to [`DEPTH_MAX`] levels.
    #[default]
    Received,
    /// A document that we have written around one from outside: [`WRAPPING_LEVELS_MAX`] levels more.
    Wrapped,
}

impl Levels {
    fn max(self) -> usize {
        match self {
            Levels::Received => DEPTH_MAX,
            Levels::Wrapped => DEPTH_MAX + WRAPPING_LEVELS_MAX,
        }
    }
}

/// The type of a node of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// The name of an object's member; its value is the next node.
    Key,
    /// `"..."`
    String,
    /// Any number, as it was spelled.
    Number,
    /// `true` or `false`
    Boolean,
    /// `null`
    Null,
}

impl Type {
    /// Returns the type with its article, for messages: "an object".
    pub fn described(self) -> &'static str {
        match self {
            Type::Object => "an object",
            Type::Array => "an array",
            Type::Key => "a member name",
            Type::String => "a string",
            Type::Number => "a number",
            Type::Boolean => "a boolean",
            Type::Null => "null",
        }
    }
}

#[derive(Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    /// Index of the node after this one and everything inside it.
    next: u32,
    kind: Type,
    /// Whether this is a string or key with at least one backslash.
    escaped: bool,
}

/// One scanned JSON document.
pub struct Tape<'s> {
    source: &'s str,
    nodes: Vec<Node>,
    flaws: Vec<Flaw>,
    deepest: usize,
}

/// A document that is no JSON, and what could be read of it.
#[derive(Debug)]
pub struct Broken<'s> {
    /// What stopped the scan.
    pub error: SyntaxError,
    /// The nodes before that place. Containers that were open there end there.
    pub so_far: Tape<'s>,
}

impl<'s> Tape<'s> {
    /// Scans one document.
    ///
    /// # Errors
    /// Returns the first place at which the bytes stop being JSON, with what was read before it.
    pub fn scan(bytes: &'s [u8]) -> Result<Tape<'s>, Box<Broken<'s>>> {
        Tape::scan_within(bytes, Levels::Received)
    }

    /// Scans a document that may nest this deep.
    ///
    /// # Errors
    /// As for [`Tape::scan`].
    pub fn scan_within(bytes: &'s [u8], levels: Levels) -> Result<Tape<'s>, Box<Broken<'s>>> {
        #[cfg(debug_assertions)]
        count::note(bytes.len());
        scan::document(bytes, levels)
    }

    /// Returns the outermost value, or `None` where not even its first byte was read.
    pub fn root(&self) -> Option<Value<'_, 's>> {
        (!self.nodes.is_empty()).then_some(Value { tape: self, at: 0 })
    }

    /// Returns what is wrong with the document although it can be read.
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// Returns whether readers disagree on what the value, or anything in it, says (ALL-11).
    pub fn is_ambiguous(&self, value: Value<'_, '_>) -> bool {
        let within = value.index()..value.next_index();
        self.flaws.iter().any(|flaw| flaw.kind.is_ambiguous() && within.contains(&flaw.node))
    }

    /// Returns how many levels the values in it nest at most.
    pub fn deepest(&self) -> usize {
        self.deepest
    }

    /// Returns the number of nodes. Indices below it are valid for [`Tape::node`].
    pub fn len(&self) -> u32 {
        // The scanner refuses documents of more than `u32::MAX` bytes, and a node has at least one byte.
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the node at an index.
    pub fn node(&self, at: u32) -> Option<Value<'_, 's>> {
        (at < self.len()).then_some(Value { tape: self, at })
    }
}

impl fmt::Debug for Tape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tape[{} bytes, {} nodes]", self.source.len(), self.nodes.len())
    }
}

/// One value of a tape. It is an index into the tape, so copying it is cheap.
#[derive(Clone, Copy)]
pub struct Value<'t, 's> {
    tape: &'t Tape<'s>,
    at: u32,
}

impl<'t, 's> Value<'t, 's> {
    fn node(self) -> Node {
        self.tape.nodes[self.at as usize]
    }

    /// Returns the index of the node on the tape.
    pub fn index(self) -> u32 {
        self.at
    }

    /// Returns the index of the node after this one and everything inside it.
    pub fn next_index(self) -> u32 {
        self.node().next
    }

    /// Returns the type of the value.
    pub fn kind(self) -> Type {
        self.node().kind
    }

    /// Returns the value's first byte in the source, and the byte after its last.
    pub fn span(self) -> (usize, usize) {
        let node = self.node();
        (node.start as usize, node.end as usize)
    }

    /// Returns the value as it was written.
    pub fn source(self) -> &'s str {
        let (start, end) = self.span();
        self.tape.source.get(start..end).unwrap_or_default()
    }

    /// Returns the text of a string or key, or `None` for any other value.
    pub fn text(self) -> Option<Text<'s>> {
        let node = self.node();
        if !matches!(node.kind, Type::String | Type::Key) {
            return None;
        }
        let quoted = self.source();
        // A string that a syntax error cut off has no closing quote.
        let inner = quoted.strip_prefix('"')?;
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        Some(Text::from_raw(inner, node.escaped))
    }

    /// Returns a boolean's value, or `None` for any other value.
    pub fn boolean(self) -> Option<bool> {
        (self.kind() == Type::Boolean).then(|| self.source() == "true")
    }

    /// Returns a number's value as floating point, or `None` for any other value. It is infinite where a float cannot
    /// hold it.
    pub fn float(self) -> Option<f64> {
        (self.kind() == Type::Number).then(|| self.source().parse().ok())?
    }

    /// Returns a number's value if it is whole, however it was spelled: `3`, `3.0`, `30e-1`. JSON Schema calls these
    /// integers too.
    pub fn integer(self) -> Option<i64> {
        if self.kind() != Type::Number {
            return None;
        }
        if let Ok(whole) = self.source().parse::<i64>() {
            return Some(whole);
        }
        let float = self.float()?;
        // Beyond 2^53 a float no longer tells which integer was meant.
        (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
    }

    /// Returns whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Type::Null
    }

    /// Returns the members of an object, in order. Empty for any other value.
    pub fn members(self) -> impl Iterator<Item = (Text<'s>, Value<'t, 's>)> {
        let end = if self.kind() == Type::Object { self.next_index() } else { 0 };
        let tape = self.tape;
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            // The last key of a truncated document has no value.
            if at + 1 >= end {
                return None;
            }
            let key = Value { tape, at }.text()?;
            let value = Value { tape, at: at + 1 };
            at = value.next_index();
            Some((key, value))
        })
    }

    /// Returns the items of an array, in order. Empty for any other value.
    pub fn items(self) -> impl Iterator<Item = Value<'t, 's>> {
        let end = if self.kind() == Type::Array { self.next_index() } else { 0 };
        let tape = self.tape;
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let item = (at < end).then_some(Value { tape, at })?;
            at = item.next_index();
            Some(item)
        })
    }

    /// Returns the first member of that name.
    pub fn get(self, name: &str) -> Option<Value<'t, 's>> {
        self.members().find_map(|(key, value)| (key == *name).then_some(value))
    }

    /// Returns the name of the member whose value this is, or `None` if it is no member's value.
    pub fn member_name(self) -> Option<Text<'s>> {
        self.key()?.text()
    }

    /// Returns the key node in front of a member's value.
    pub fn key(self) -> Option<Value<'t, 's>> {
        let key = Value { tape: self.tape, at: self.at.checked_sub(1)? };
        (key.kind() == Type::Key).then_some(key)
    }
}

impl fmt::Debug for Value<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{} bytes]", self.kind(), self.source().len())
    }
}

#[cfg(test)]
mod tests;
