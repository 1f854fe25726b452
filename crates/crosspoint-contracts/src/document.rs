//! The entry point for reading: bytes in, a typed document and all findings out.

pub use crate::Document;

use crate::clause::Clause;
use crate::clause::all::*;
use crate::fields::Fields;
use crate::json::{Broken, FlawKind, Levels, Syntax, SyntaxError, Tape, Type, Value};
use crate::kind::{self, Form, Framed, Kind, Undetected};
use crate::report::{Findings, Place, Report};

/// What the reader knows besides the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// The kind to read the document as. Without it the kind is detected.
    pub kind: Option<Kind>,
    /// What the text inside a bridge response must be.
    pub inner: Inner,
    /// Whether a part of a stream is enough.
    pub extent: Extent,
    /// Agent types that the operator added to the five of the message contract.
    pub agent_types: &'o [&'o str],
    /// How deep the document may nest.
    pub levels: Levels,
}

/// How much of a stream there must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The whole stream, from its first event to the terminal one.
    #[default]
    Whole,
    /// Any consecutive events of the stream.
    Part,
}

/// What the text inside a bridge response must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inner {
    /// Anything: JSON, Markdown, XML, plain text.
    #[default]
    Any,
    /// One JSON value.
    Json,
}

/// The result of reading a document.
#[derive(Debug)]
pub struct Reading<'s> {
    /// The findings about the document.
    pub report: Report,
    /// The document, unless there was an error.
    pub document: Option<Document<'s>>,
    /// Why the kind is not known, where it could not be detected.
    pub undetected: Option<Undetected>,
}

/// Reads one document and finds everything that is wrong with it.
pub fn read<'s>(bytes: &'s [u8], options: &Options<'_>) -> Reading<'s> {
    read_and(bytes, options, |_, _| ()).0
}

/// Reads a document like [`read`]. If it has no error, `more` is called with its tape, for callers that need more than
/// the typed document.
pub(crate) fn read_and<'s, T>(
    bytes: &'s [u8],
    options: &Options<'_>,
    more: impl FnOnce(Kind, &Tape<'s>) -> T,
) -> (Reading<'s>, Option<T>) {
    if let Some(framed) = framed(bytes, options) {
        let (report, document) = (framed.read)(bytes, options.extent);
        return (Reading { report, document, undetected: None }, None);
    }
    let mut findings = Findings::default();
    let tape = match Tape::scan_within(bytes, options.levels) {
        Ok(tape) => tape,
        Err(broken) => return (unscanned(&broken, options, bytes), None),
    };
    note_flaws(&tape, &mut findings);
    let unread = |findings: Findings, kind, undetected| {
        (Reading { report: findings.into_report(kind, &tape, bytes), document: None, undetected }, None)
    };
    let Some(root) = tape.root().filter(|root| root.kind() == Type::Object) else {
        let found = tape.root().map(|root| root.kind().described()).unwrap_or_default();
        findings.note(&ALL_108, Place::Value(0), format!("the document is {found}, not an object"));
        return unread(findings, options.kind, None);
    };
    let kind = match options.kind.map_or_else(|| kind::detect(root), Ok) {
        Ok(kind) => kind,
        Err(undetected) => return unread(findings, None, Some(undetected)),
    };
    let document = object(kind, root, &mut findings, options).filter(|_| !findings.any_error());
    let more = document.is_some().then(|| more(kind, &tape));
    (Reading { report: findings.into_report(Some(kind), &tape, bytes), document, undetected: None }, more)
}

/// Reads an answer of an agent, in which much may be wrong. `more` is called whenever the bytes are a JSON object on
/// which readers agree, whatever its contract says of it (ALL-11).
pub(crate) fn read_answer<'s, T>(
    bytes: &'s [u8],
    kind: Kind,
    agent_types: &[&str],
    more: impl FnOnce(&Tape<'s>, Value<'_, 's>) -> T,
) -> (Report, Option<T>) {
    let options = Options { kind: Some(kind), agent_types, ..Options::default() };
    let tape = match Tape::scan_within(bytes, options.levels) {
        Ok(tape) => tape,
        Err(broken) => return (unscanned(&broken, &options, bytes).report, None),
    };
    let mut findings = Findings::default();
    note_flaws(&tape, &mut findings);
    let agreed = !findings.any_error();
    let Some(root) = tape.root().filter(|root| root.kind() == Type::Object) else {
        let found = tape.root().map(|root| root.kind().described()).unwrap_or_default();
        findings.note(&ALL_108, Place::Value(0), format!("the document is {found}, not an object"));
        return (findings.into_report(options.kind, &tape, bytes), None);
    };
    let _ = object(kind, root, &mut findings, &options);
    let more = agreed.then(|| more(&tape, root));
    (findings.into_report(options.kind, &tape, bytes), more)
}

/// Reports what can be said of bytes that are no JSON.
fn unscanned<'s>(broken: &Broken<'_>, options: &Options<'_>, bytes: &[u8]) -> Reading<'s> {
    let mut findings = Findings::default();
    note_syntax(&broken.error, &ALL_101, &mut findings);
    note_flaws(&broken.so_far, &mut findings);
    let so_far = broken.so_far.root().and_then(|root| kind::detect(root).ok());
    let report = findings.into_report(options.kind.or(so_far), &broken.so_far, bytes);
    Reading { report, document: None, undetected: None }
}

/// Returns how the bytes are read where they are not JSON.
fn framed(bytes: &[u8], options: &Options<'_>) -> Option<&'static Framed> {
    match options.kind {
        Some(kind) => kind.entry().framed(),
        None => {
            let mut all = Kind::ALL.iter().filter_map(|kind| kind.entry().framed());
            all.find(|framed| (framed.looks_like)(bytes))
        }
    }
}

/// Reads an object as a document of this kind.
fn object<'s>(kind: Kind, root: Value<'_, 's>, findings: &mut Findings, options: &Options<'_>) -> Option<Document<'s>> {
    match &kind.entry().form {
        Form::Object { read, .. } => Some(read(&mut Fields::new(root, findings), options)),
        // A framed document is no object, and was read before.
        Form::Framed(_) => None,
    }
}

/// Notes why the bytes are no JSON, under the clause for that particular reason or else under `malformed`.
pub(crate) fn note_syntax(error: &SyntaxError, malformed: &'static Clause, findings: &mut Findings) {
    let clause = match error.kind {
        Syntax::NotUtf8 | Syntax::Utf16 => &ALL_102,
        Syntax::TooDeep => &ALL_107,
        Syntax::Empty
        | Syntax::TooLarge
        | Syntax::EndsInString
        | Syntax::EndsInObject
        | Syntax::EndsInArray
        | Syntax::ControlCharacter
        | Syntax::BadEscape
        | Syntax::BadNumber
        | Syntax::NotFinite
        | Syntax::PythonLiteral
        | Syntax::SingleQuotes
        | Syntax::BareName
        | Syntax::TypographicQuotes
        | Syntax::Fence
        | Syntax::Prose
        | Syntax::Ellipsis
        | Syntax::StrayComma
        | Syntax::Comment
        | Syntax::TrailingComma
        | Syntax::MissingComma
        | Syntax::MissingColon
        | Syntax::WrongBracket
        | Syntax::Trailing
        | Syntax::NotAValue => malformed,
    };
    findings.note_with_hint(clause, Place::Inside(error.inside, error.offset), error.kind.message(), error.kind.hint());
}

/// Notes what is wrong with the document as JSON although it can be read.
pub(crate) fn note_flaws(tape: &Tape<'_>, findings: &mut Findings) {
    for flaw in tape.flaws() {
        let inside = Place::Inside(flaw.node, flaw.offset as usize);
        match flaw.kind {
            FlawKind::ByteOrderMark => findings.note(&ALL_106, inside, "the document begins with a byte order mark"),
            FlawKind::RepeatedMember => {
                findings.note(&ALL_103, Place::Value(flaw.node), "this name stands earlier in the same object");
            }
            FlawKind::LoneSurrogate => {
                findings.note(&ALL_104, inside, "this escape is half of a surrogate pair, no character");
            }
            FlawKind::NumberRange => {
                findings.note(&ALL_105, Place::Value(flaw.node), "no 64-bit reader can hold this number");
            }
        }
    }
}
