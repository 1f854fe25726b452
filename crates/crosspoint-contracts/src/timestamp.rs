//! Timestamps as the contracts spell them: ISO 8601, kept byte for byte.

use jiff::fmt::temporal::DateTimeParser;

use crate::content::{Text, inline_schema};

/// A point in time as it was spelled. The spelling is kept because it must come back unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp<'s> {
    text: Text<'s>,
    has_offset: bool,
}

impl<'s> Timestamp<'s> {
    /// Reads date and time, with or without offset; `None` for anything else, such as 30 February.
    pub fn parse(text: Text<'s>) -> Option<Timestamp<'s>> {
        static PARSER: DateTimeParser = DateTimeParser::new();
        let decoded = text.decode();
        // The parser knows annotations (`[Europe/Paris]`), which ISO 8601 does not.
        if decoded.len() > BYTES_MAX || decoded.contains('[') {
            return None;
        }
        let pieces = PARSER.parse_pieces(decoded.as_bytes()).ok()?;
        pieces.time()?;
        Some(Timestamp { text, has_offset: pieces.offset().is_some() })
    }

    /// Whether it says how far from UTC it is.
    pub fn has_offset(self) -> bool {
        self.has_offset
    }

    /// As it was spelled.
    pub fn text(self) -> Text<'s> {
        self.text
    }
}

/// Longer than any spelling of a timestamp, in bytes.
const BYTES_MAX: usize = 64;

/// What JSON Schema can say about the spelling; that the day exists it cannot.
macro_rules! pattern {
    ($offset:literal) => {
        concat!(r"^[+-]?\d{4,6}-?\d{2}-?\d{2}[Tt ]\d{2}(:?\d{2}(:?\d{2}([.,]\d{1,9})?)?)?", $offset, "$")
    };
}

/// A timestamp that must say how far from UTC it is.
pub(crate) const WITH_OFFSET_PATTERN: &str = pattern!(r"([Zz]|[+-]\d{2}(:?\d{2}(:?\d{2})?)?)");

inline_schema!(Timestamp<'_>, {
    "type": "string",
    "pattern": pattern!(r"([Zz]|[+-]\d{2}(:?\d{2}(:?\d{2})?)?)?")
});
