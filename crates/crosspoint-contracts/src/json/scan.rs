//! Scans bytes into a tape, in one pass, without recursion.

mod repeated;

use super::bytes::{digits, out_of_range, plain_end};
use super::decode::code_unit;
use super::{Broken, DOCUMENT_BYTES_MAX, Flaw, FlawKind, Levels, Node, Syntax, SyntaxError, Tape, Type};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn document(bytes: &[u8], levels: Levels) -> Result<Tape<'_>, Box<Broken<'_>>> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(broken(Scanner::new("", levels), 0, Syntax::TooLarge));
    }
    // A document has a NUL as its first or second byte only where characters are wider than a byte.
    let utf16 =
        bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") || bytes.iter().take(2).any(|byte| *byte == 0);
    match std::str::from_utf8(bytes) {
        Ok(_) if utf16 => Err(broken(Scanner::new("", levels), 0, Syntax::Utf16)),
        Ok(source) => run(source, levels),
        Err(error) => {
            let kind = if utf16 { Syntax::Utf16 } else { Syntax::NotUtf8 };
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let mut scanner = Scanner::new(valid, levels);
            // Whatever else stops this scan, the encoding is the reason to report.
            let _ = scanner.document();
            Err(broken(scanner, error.valid_up_to(), kind))
        }
    }
}

fn run(source: &str, levels: Levels) -> Result<Tape<'_>, Box<Broken<'_>>> {
    let mut scanner = Scanner::new(source, levels);
    match scanner.document() {
        Ok(()) => Ok(scanner.into_tape()),
        Err(kind) => {
            let offset = scanner.at;
            Err(broken(scanner, offset, kind))
        }
    }
}

fn broken(mut scanner: Scanner<'_>, offset: usize, kind: Syntax) -> Box<Broken<'_>> {
    let inside = scanner.open.last().copied().unwrap_or(0);
    while !scanner.open.is_empty() {
        scanner.close();
    }
    Box::new(Broken { error: SyntaxError { offset, kind, inside }, so_far: scanner.into_tape() })
}

/// Offsets and counts fit, because `document` refuses sources over `u32::MAX` bytes.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

struct Scanner<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    nodes: Vec<Node>,
    open: Vec<u32>,
    flaws: Vec<Flaw>,
    /// The keys of the object that is being closed. The memory is kept for the next object.
    keys: Vec<u32>,
    deepest: usize,
    levels: Levels,
}

impl<'s> Scanner<'s> {
    fn new(source: &'s str, levels: Levels) -> Scanner<'s> {
        // Envelopes have a node for about every twenty bytes; one long string is a single node.
        let nodes = Vec::with_capacity((source.len() / 16).clamp(8, 1024));
        Scanner {
            source,
            bytes: source.as_bytes(),
            at: 0,
            nodes,
            open: Vec::with_capacity(8),
            flaws: Vec::new(),
            keys: Vec::with_capacity(16),
            deepest: 0,
            levels,
        }
    }

    fn into_tape(self) -> Tape<'s> {
        Tape { source: self.source, nodes: self.nodes, flaws: self.flaws, deepest: self.deepest }
    }

    fn document(&mut self) -> Result<(), Syntax> {
        if self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.flaw(0, 0, FlawKind::ByteOrderMark);
            self.at = BYTE_ORDER_MARK.len();
        }
        if self.peek().is_none() {
            return Err(Syntax::Empty);
        }
        loop {
            // A value begins here. An opened container that is not empty begins another one.
            if self.value()? {
                continue;
            }
            if self.after_value()? {
                return if self.peek().is_none() { Ok(()) } else { Err(self.stray(Syntax::Trailing)) };
            }
        }
    }

    /// Reads a scalar, an empty container or the opening of another container. Returns whether a value must follow.
    fn value(&mut self) -> Result<bool, Syntax> {
        match self.peek() {
            Some(b'{') => {
                self.open(Type::Object)?;
                if self.peek() == Some(b'}') {
                    self.end_container();
                    return Ok(false);
                }
                self.key()?;
                return Ok(true);
            }
            Some(b'[') => {
                self.open(Type::Array)?;
                if self.peek() == Some(b']') {
                    self.end_container();
                    return Ok(false);
                }
                return Ok(true);
            }
            Some(b'"') => return self.string(Type::String).map(|()| false),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true", Type::Boolean)?,
            Some(b'f') => self.literal("false", Type::Boolean)?,
            Some(b'n') => self.literal("null", Type::Null)?,
            Some(_) => return Err(self.stray(Syntax::NotAValue)),
            None => return Err(self.cut_off()),
        }
        Ok(false)
    }

    /// Closes the containers that end here and reads up to the next value. Returns whether the document is complete.
    fn after_value(&mut self) -> Result<bool, Syntax> {
        while let Some(&container) = self.open.last() {
            let is_object = self.nodes[container as usize].kind == Type::Object;
            match (self.peek(), is_object) {
                (Some(b','), _) => {
                    self.at += 1;
                    if matches!(self.peek(), Some(b'}' | b']')) {
                        return Err(Syntax::TrailingComma);
                    }
                    if is_object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                (Some(b'}'), true) | (Some(b']'), false) => self.end_container(),
                (Some(b'}' | b']'), _) => return Err(Syntax::WrongBracket),
                (Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'), _) => {
                    return Err(Syntax::MissingComma);
                }
                (Some(_), _) => return Err(self.stray(Syntax::MissingComma)),
                (None, _) => return Err(self.cut_off()),
            }
        }
        Ok(true)
    }

    fn open(&mut self, kind: Type) -> Result<(), Syntax> {
        if self.open.len() == self.levels.max() {
            return Err(Syntax::TooDeep);
        }
        self.open.push(narrow(self.nodes.len()));
        self.deepest = self.deepest.max(self.open.len());
        self.push(kind, self.at, self.at + 1, false);
        self.at += 1;
        Ok(())
    }

    fn end_container(&mut self) {
        self.at += 1;
        self.close();
    }

    fn close(&mut self) {
        let Some(container) = self.open.pop() else { return };
        let next = narrow(self.nodes.len());
        let node = &mut self.nodes[container as usize];
        node.end = narrow(self.at);
        node.next = next;
        if node.kind == Type::Object {
            self.note_repeated_members(container, next);
        }
    }

    fn key(&mut self) -> Result<(), Syntax> {
        match self.peek() {
            Some(b'"') => self.string(Type::Key)?,
            Some(b'}' | b']') => return Err(Syntax::WrongBracket),
            Some(_) => return Err(self.stray(Syntax::BareName)),
            None => return Err(self.cut_off()),
        }
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Syntax::MissingColon),
            None => Err(self.cut_off()),
        }
    }

    fn string(&mut self, kind: Type) -> Result<(), Syntax> {
        let start = self.at;
        let mut escaped = false;
        let ended = self.string_end(&mut escaped);
        // A string that does not end is still a node: flaws may have been noted in it.
        self.push(kind, start, self.at, escaped);
        ended
    }

    /// Steps over a string, from quote to quote.
    fn string_end(&mut self, escaped: &mut bool) -> Result<(), Syntax> {
        let node = narrow(self.nodes.len());
        self.at += 1;
        loop {
            self.at = plain_end(self.bytes, self.at);
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    *escaped = true;
                    self.escape(node)?;
                }
                Some(_) => return Err(Syntax::ControlCharacter),
                None => return Err(Syntax::EndsInString),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Steps over one escape, or over both halves of a surrogate pair.
    fn escape(&mut self, node: u32) -> Result<(), Syntax> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let Some(unit) = self.unit_at(self.at) else {
                    let cut_off = self.bytes[self.at + 2..].iter().all(u8::is_ascii_hexdigit);
                    return Err(if cut_off { Syntax::EndsInString } else { Syntax::BadEscape });
                };
                let paired = (0xd800..0xdc00).contains(&unit)
                    && self.unit_at(self.at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low));
                if (0xd800..0xe000).contains(&unit) && !paired {
                    self.flaw(node, self.at, FlawKind::LoneSurrogate);
                }
                self.at += if paired { 12 } else { 6 };
            }
            Some(_) => return Err(Syntax::BadEscape),
            None => return Err(Syntax::EndsInString),
        }
        Ok(())
    }

    fn unit_at(&self, at: usize) -> Option<u16> {
        code_unit(self.source.get(at..at + 6)?)
    }

    fn number(&mut self) -> Result<(), Syntax> {
        let start = self.at;
        let mut at = start + usize::from(self.bytes[start] == b'-');
        let whole = digits(self.bytes, at);
        if whole == 0 {
            let infinite = self.bytes[at..].starts_with(b"Infinity");
            return Err(if infinite { Syntax::NotFinite } else { Syntax::BadNumber });
        }
        if whole > 1 && self.bytes[at] == b'0' {
            return Err(Syntax::BadNumber);
        }
        at += whole;
        let mut float = false;
        if self.bytes.get(at) == Some(&b'.') {
            float = true;
            let fraction = digits(self.bytes, at + 1);
            if fraction == 0 {
                return Err(Syntax::BadNumber);
            }
            at += 1 + fraction;
        }
        if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
            float = true;
            at += 1;
            at += usize::from(matches!(self.bytes.get(at), Some(b'+' | b'-')));
            let exponent = digits(self.bytes, at);
            if exponent == 0 {
                return Err(Syntax::BadNumber);
            }
            at += exponent;
        }
        if matches!(self.bytes.get(at), Some(b'.' | b'+' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z')) {
            return Err(Syntax::BadNumber);
        }
        if out_of_range(&self.source[start..at], float) {
            self.flaw(narrow(self.nodes.len()), start, FlawKind::NumberRange);
        }
        self.push(Type::Number, start, at, false);
        self.at = at;
        Ok(())
    }

    fn literal(&mut self, word: &str, kind: Type) -> Result<(), Syntax> {
        let end = self.at + word.len();
        let rest = &self.bytes[self.at..];
        let whole_word = !self.bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
        if rest.starts_with(word.as_bytes()) && whole_word {
            self.push(kind, self.at, end, false);
            self.at = end;
            return Ok(());
        }
        if !self.nodes.is_empty() && rest.len() < word.len() && word.as_bytes().starts_with(rest) {
            return Err(self.cut_off());
        }
        Err(self.stray(Syntax::NotAValue))
    }

    fn push(&mut self, kind: Type, start: usize, end: usize, escaped: bool) {
        let next = narrow(self.nodes.len() + 1);
        self.nodes.push(Node { start: narrow(start), end: narrow(end), next, kind, escaped });
    }

    fn flaw(&mut self, node: u32, offset: usize, kind: FlawKind) {
        self.flaws.push(Flaw { node, offset: narrow(offset), kind });
    }

    /// Skips white space and returns the byte after it.
    fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Returns the error for a document that ends too early.
    fn cut_off(&self) -> Syntax {
        let in_array = self.open.last().is_some_and(|&container| self.nodes[container as usize].kind == Type::Array);
        if in_array { Syntax::EndsInArray } else { Syntax::EndsInObject }
    }

    /// Returns the mistake behind a byte that cannot stand here, or `otherwise` if it is none of the known ones.
    fn stray(&self, otherwise: Syntax) -> Syntax {
        let rest = &self.bytes[self.at..];
        let begins = |words: &[&str]| words.iter().any(|word| rest.starts_with(word.as_bytes()));
        let at_start = self.nodes.is_empty();
        match rest.first() {
            Some(b'`') if begins(&["```"]) => Syntax::Fence,
            Some(b'.') if begins(&["..."]) => Syntax::Ellipsis,
            Some(0xe2) if begins(&["\u{2026}"]) => Syntax::Ellipsis,
            Some(b',') => Syntax::StrayComma,
            Some(0xe2) if begins(&["\u{2018}", "\u{2019}", "\u{201c}", "\u{201d}"]) => Syntax::TypographicQuotes,
            Some(b'\'') => Syntax::SingleQuotes,
            Some(b'/') if begins(&["//", "/*"]) => Syntax::Comment,
            Some(b'N' | b'I' | b'n' | b'i') if begins(&["NaN", "Infinity", "nan", "inf"]) => Syntax::NotFinite,
            Some(b'T' | b'F' | b'N') if begins(&["True", "False", "None"]) => Syntax::PythonLiteral,
            Some(b'+' | b'.') if otherwise == Syntax::NotAValue => Syntax::BadNumber,
            Some(b'}' | b']') => Syntax::WrongBracket,
            Some(byte) if at_start && (byte.is_ascii_alphabetic() || *byte >= 0x80) => Syntax::Prose,
            _ => otherwise,
        }
    }
}
