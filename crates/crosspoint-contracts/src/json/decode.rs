//! The text of a JSON string, not decoded until it is needed.
//!
//! Most strings that pass through are never looked at: they are copied from one document into the next. So a [`Text`]
//! is the slice between the quotes as it was written. Only [`Text::decode`] allocates, and only where there are
//! escapes.

use std::borrow::Cow;
use std::fmt;

/// Most bytes of an escape for each byte that it stands for. So most texts are known to differ without being decoded.
const ESCAPE_FACTOR: usize = 6;

/// The content of a JSON string. It came from a caller or an agent, so `Debug` shows only its size.
#[derive(Clone, Copy, Default)]
pub struct Text<'s> {
    raw: &'s str,
    escaped: bool,
}

impl<'s> Text<'s> {
    pub(super) fn from_raw(raw: &'s str, escaped: bool) -> Text<'s> {
        Text { raw, escaped }
    }

    /// Wraps the text between the quotes of a string that was scanned before.
    pub(crate) fn of_string(raw: &'s str) -> Text<'s> {
        Text { raw, escaped: raw.contains('\\') }
    }

    /// Returns the text as it stood between the quotes, with its escapes.
    pub fn raw(self) -> &'s str {
        self.raw
    }

    /// Returns whether the text has no characters.
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Returns the characters that the text stands for. A lone surrogate stands for none and becomes U+FFFD; the
    /// scanner has reported it.
    pub fn decode(self) -> Cow<'s, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut decoded = String::with_capacity(self.raw.len());
        for piece in self.pieces() {
            match piece {
                Piece::Plain(plain) => decoded.push_str(plain),
                Piece::Escape { decoded: character, .. } => decoded.push(character),
            }
        }
        Cow::Owned(decoded)
    }

    /// Returns the length in bytes that [`Text::decode`] would have, without decoding.
    pub fn decoded_bytes(self) -> usize {
        if !self.escaped {
            return self.raw.len();
        }
        self.pieces().map(Piece::decoded_bytes).sum()
    }

    /// Returns a finder of the places of decoded bytes in [`Text::raw`].
    pub fn places(self) -> Places<'s> {
        Places { pieces: self.pieces(), current: None, decoded: 0, raw: 0 }
    }

    /// Whether one of its escapes stands for half of a surrogate pair, which is no character.
    pub(super) fn has_lone_surrogate(self) -> bool {
        let mut rest = self.raw;
        self.escaped
            && self.pieces().any(|piece| {
                let (head, tail) = rest.split_at(piece.raw_bytes());
                rest = tail;
                code_unit(head).is_some_and(|unit| char::from_u32(u32::from(unit)).is_none()) && head.len() == 6
            })
    }

    fn pieces(self) -> Pieces<'s> {
        Pieces { rest: self.raw }
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        if !self.escaped {
            return self.raw == other;
        }
        let could_be = self.raw.len() > other.len() && self.raw.len() <= ESCAPE_FACTOR * other.len();
        could_be && self.decode() == other
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Text<'_>) -> bool {
        if !self.escaped && !other.escaped {
            return self.raw == other.raw;
        }
        let could_be = |one: &str, other: &str| one.len() <= ESCAPE_FACTOR * other.len();
        could_be(self.raw, other.raw) && could_be(other.raw, self.raw) && self.decode() == other.decode()
    }
}

impl Eq for Text<'_> {}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.raw.len())
    }
}

/// Finds places in a text for any number of ascending offsets, in one walk along it.
pub struct Places<'s> {
    pieces: Pieces<'s>,
    current: Option<Piece<'s>>,
    /// Where the current piece begins, in the decoded text and in the raw text.
    decoded: usize,
    raw: usize,
}

impl Places<'_> {
    /// Returns where a byte of the decoded text stands in the raw text. Offsets must not descend from call to call.
    pub fn raw_offset(&mut self, decoded_offset: usize) -> usize {
        loop {
            let Some(piece) = self.current.or_else(|| self.pieces.next()) else { return self.raw };
            self.current = Some(piece);
            if self.decoded + piece.decoded_bytes() > decoded_offset {
                return match piece {
                    Piece::Plain(_) => self.raw + (decoded_offset - self.decoded),
                    Piece::Escape { .. } => self.raw,
                };
            }
            self.decoded += piece.decoded_bytes();
            self.raw += piece.raw_bytes();
            self.current = None;
        }
    }
}

#[derive(Clone, Copy)]
enum Piece<'s> {
    Plain(&'s str),
    Escape { decoded: char, raw_bytes: usize },
}

impl Piece<'_> {
    fn decoded_bytes(self) -> usize {
        match self {
            Piece::Plain(plain) => plain.len(),
            Piece::Escape { decoded, .. } => decoded.len_utf8(),
        }
    }

    fn raw_bytes(self) -> usize {
        match self {
            Piece::Plain(plain) => plain.len(),
            Piece::Escape { raw_bytes, .. } => raw_bytes,
        }
    }
}

/// Splits a scanned string at its escapes. The scanner has checked their form.
struct Pieces<'s> {
    rest: &'s str,
}

impl<'s> Iterator for Pieces<'s> {
    type Item = Piece<'s>;

    fn next(&mut self) -> Option<Piece<'s>> {
        let plain = self.rest.find('\\').unwrap_or(self.rest.len());
        if plain > 0 {
            let (head, tail) = self.rest.split_at(plain);
            self.rest = tail;
            return Some(Piece::Plain(head));
        }
        let letter = *self.rest.as_bytes().get(1)?;
        let (decoded, raw_bytes) = match letter {
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => unicode_escape(self.rest),
            // `"`, `\` and `/` stand for themselves.
            other => (char::from(other), 2),
        };
        self.rest = self.rest.get(raw_bytes..).unwrap_or_default();
        Some(Piece::Escape { decoded, raw_bytes })
    }
}

/// Returns the character of `\u00e9` or of a surrogate pair at the start of `rest`, and its length there.
fn unicode_escape(rest: &str) -> (char, usize) {
    let Some(first) = code_unit(rest) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if let Some(character) = char::from_u32(u32::from(first)) {
        return (character, 6);
    }
    let second = rest.get(6..).and_then(code_unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match pair {
        Some(character) => (character, 12),
        None => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// Returns the UTF-16 code unit of a `\u00e9` at the start of `text`.
pub(super) fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}
