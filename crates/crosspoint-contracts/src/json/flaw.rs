//! What can be wrong with a document as JSON, before any contract is consulted.

/// A flaw that does not stop the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Index of the node that has the flaw; for the byte order mark, the root's.
    pub node: u32,
    /// First byte of the flaw in the source.
    pub offset: u32,
    /// What the flaw is.
    pub kind: FlawKind,
}

/// The kinds of flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlawKind {
    /// The file begins with U+FEFF.
    ByteOrderMark,
    /// A member whose name stands earlier in the same object.
    RepeatedMember,
    /// Half of a UTF-16 surrogate pair, which is no character.
    LoneSurrogate,
    /// A number outside both 64-bit integers and finite 64-bit floats.
    NumberRange,
}

impl FlawKind {
    /// Returns whether readers disagree on what a document with this flaw says. With the other flaws they agree, or
    /// lose digits.
    pub fn is_ambiguous(self) -> bool {
        match self {
            FlawKind::RepeatedMember | FlawKind::LoneSurrogate => true,
            FlawKind::ByteOrderMark | FlawKind::NumberRange => false,
        }
    }
}

/// Where the bytes stop being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// First byte of the place in the source.
    pub offset: usize,
    /// What is wrong there.
    pub kind: Syntax,
    /// Node of the innermost container that is open there.
    pub inside: u32,
}

/// Why bytes are not JSON. Each variant names the mistake as its author makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Nothing but white space.
    Empty,
    /// The document is over [`super::DOCUMENT_BYTES_MAX`].
    TooLarge,
    /// Nested deeper than its [`super::Levels`] allow.
    TooDeep,
    /// A byte sequence that is not UTF-8.
    NotUtf8,
    /// Characters of two or four bytes.
    Utf16,
    /// The document ends inside a string.
    EndsInString,
    /// The document ends inside an object.
    EndsInObject,
    /// The document ends inside an array.
    EndsInArray,
    /// A control character stands unescaped in a string.
    ControlCharacter,
    /// A backslash before a character that cannot be escaped.
    BadEscape,
    /// `01`, `1.`, `.5`, `+1`, `1e`.
    BadNumber,
    /// `NaN`, `Infinity` or `-Infinity`.
    NotFinite,
    /// `True`, `False` or `None`.
    PythonLiteral,
    /// A string or name in single quotes.
    SingleQuotes,
    /// A member name without quotes.
    BareName,
    /// A string or name in typographic quotes.
    TypographicQuotes,
    /// Three backquotes: the document is in a Markdown fence.
    Fence,
    /// Words where the document should begin.
    Prose,
    /// `...` in place of content that was left out.
    Ellipsis,
    /// A comma where a value or a name should be.
    StrayComma,
    /// `//` or `/*`.
    Comment,
    /// A comma before the closing bracket.
    TrailingComma,
    /// Two members or items without a comma between them.
    MissingComma,
    /// A member name without its colon.
    MissingColon,
    /// A closing bracket of the other kind, or one too many.
    WrongBracket,
    /// More content after the end of the document.
    Trailing,
    /// Any other bytes that begin no JSON value.
    NotAValue,
}

impl Syntax {
    /// Returns what is wrong, in one sentence.
    pub fn message(self) -> &'static str {
        match self {
            Syntax::Empty => "the document is empty",
            Syntax::TooLarge => "the document is larger than 4 GiB",
            Syntax::TooDeep => "the document nests deeper than 127 levels",
            Syntax::NotUtf8 => "these bytes are not UTF-8",
            Syntax::Utf16 => "the document is UTF-16 or UTF-32, not UTF-8",
            Syntax::EndsInString => "the document ends inside a string",
            Syntax::EndsInObject => "the document ends inside an object",
            Syntax::EndsInArray => "the document ends inside an array",
            Syntax::ControlCharacter => "a raw control character stands inside a string",
            Syntax::BadEscape => "this escape does not exist in JSON",
            Syntax::BadNumber => "this number is not spelled as JSON spells numbers",
            Syntax::NotFinite => "NaN and Infinity are not JSON",
            Syntax::PythonLiteral => "True, False and None are Python, not JSON",
            Syntax::SingleQuotes => "single quotes are not JSON",
            Syntax::BareName => "a member name stands without quotes",
            Syntax::TypographicQuotes => "typographic quotes are not JSON",
            Syntax::Fence => "the document stands in a Markdown fence",
            Syntax::Prose => "text stands where the document should begin",
            Syntax::Ellipsis => "`...` stands for something that was left out",
            Syntax::StrayComma => "a comma stands where a value or a name should be",
            Syntax::Comment => "comments are not JSON",
            Syntax::TrailingComma => "a comma stands before the closing bracket",
            Syntax::MissingComma => "a comma is missing here",
            Syntax::MissingColon => "a colon is missing after the member name",
            Syntax::WrongBracket => "this bracket closes nothing that is open here",
            Syntax::Trailing => "more stands after the end of the document",
            Syntax::NotAValue => "no JSON value begins like this",
        }
    }

    /// Returns how to mend it.
    pub fn hint(self) -> &'static str {
        match self {
            Syntax::Empty => {
                "Check that the program that writes the file has finished; write it whole, then rename it into place."
            }
            Syntax::TooLarge => "Split the work, or pass large content by reference.",
            Syntax::TooDeep => "Flatten the payload, or carry the deep part as a JSON-encoded string.",
            Syntax::NotUtf8 | Syntax::Utf16 => {
                "Save the file as UTF-8 (Python: open(path, \"w\", encoding=\"utf-8\"))."
            }
            Syntax::EndsInString | Syntax::EndsInObject | Syntax::EndsInArray => {
                "The file looks cut off: write it whole to a temporary file, then rename it into place."
            }
            Syntax::ControlCharacter => "Escape it: \\n for a line break, \\t for a tab, \\u00XX for others.",
            Syntax::BadEscape => {
                "JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four digits; write a plain backslash as \\\\."
            }
            Syntax::BadNumber => "Write digits, an optional fraction and exponent: 0.5, 10, 1e3.",
            Syntax::NotFinite => {
                "Write null or leave the member out (Python: json.dumps(value, allow_nan=False) finds it)."
            }
            Syntax::PythonLiteral => "Write true, false and null; json.dumps(value) does, str(value) does not.",
            Syntax::SingleQuotes => "Use double quotes; json.dumps(value) does, str(value) does not.",
            Syntax::BareName => "Put the name in double quotes.",
            Syntax::TypographicQuotes => "Use plain double quotes: \".",
            Syntax::Fence => "Remove the lines with ``` before and after it.",
            Syntax::Prose => "Remove everything before the opening {.",
            Syntax::Ellipsis => "Fill in what was left out, or remove the dots.",
            Syntax::StrayComma => "Remove it, or put something before it.",
            Syntax::Comment => "Remove the comment.",
            Syntax::TrailingComma => "Remove the last comma.",
            Syntax::MissingComma => {
                "Put a comma between the two; if this is still the same string, write the quote in it as \\\"."
            }
            Syntax::MissingColon => "Write \"name\": value.",
            Syntax::WrongBracket => "Close the innermost bracket first, with its own kind.",
            Syntax::Trailing => "One file holds one document: remove the rest, or split the file.",
            Syntax::NotAValue => "Write an object, array, string, number, true, false or null here.",
        }
    }
}
