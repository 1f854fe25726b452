//! The front door: bytes in, a typed document and all findings out.

use crate::clause::Clause;
use crate::clause::all::*;
use crate::fields::Fields;
use crate::json::{Broken, FlawKind, Syntax, SyntaxError, Tape, Type, Value};
use crate::kind::{self, Kind, Undetected};
use crate::message::{ErrorReport, Message, MessageType, WorkRequest, WorkResult, WorkStatus};
use crate::report::{Findings, Place, Report};
use crate::{bridge, message, run, task, workflow};

/// What the reader knows beside the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// Read it as this kind; otherwise the kind is detected.
    pub kind: Option<Kind>,
    /// What the text inside a bridge response must be.
    pub inner: Inner,
    /// Agent types the operator added to the five of the message contract.
    pub agent_types: &'o [&'o str],
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

/// A document that was read without errors.
#[derive(Debug)]
pub enum Document<'s> {
    /// `bridge.request`
    BridgeRequest(bridge::Request<'s>),
    /// `bridge.response`
    BridgeResponse(bridge::Response<'s>),
    /// `workflow.input`
    WorkflowInput(workflow::Input<'s>),
    /// `workflow.output`
    WorkflowOutput(workflow::Output<'s>),
    /// `message.work_request`
    WorkRequest(Message<'s, WorkRequest<'s>>),
    /// `message.work_status`
    WorkStatus(Message<'s, WorkStatus<'s>>),
    /// `message.work_result`
    WorkResult(Message<'s, WorkResult<'s>>),
    /// `message.error`
    MessageError(Message<'s, ErrorReport<'s>>),
    /// `task.request`
    TaskRequest(task::Request<'s>),
    /// `task.response`
    TaskResponse(task::Response<'s>),
    /// `run.request`
    RunRequest(run::Request<'s>),
    /// `run.response`
    RunResponse(run::Response<'s>),
    /// `run.stream`
    RunStream(run::Stream),
}

/// What reading gave.
#[derive(Debug)]
pub struct Reading<'s> {
    /// What is to be said about the document.
    pub report: Report,
    /// The document, unless there was an error.
    pub document: Option<Document<'s>>,
    /// Why the kind is not known, where it is not.
    pub undetected: Option<Undetected>,
}

/// Reads one document and finds all that is wrong with it.
pub fn read<'s>(bytes: &'s [u8], options: &Options<'_>) -> Reading<'s> {
    read_and(bytes, options, |_, _| ()).0
}

/// The same, and hands what was scanned to whoever wants more of it than the typed document, if it has no error.
pub(crate) fn read_and<'s, T>(
    bytes: &'s [u8],
    options: &Options<'_>,
    more: impl FnOnce(Kind, &Tape<'s>) -> T,
) -> (Reading<'s>, Option<T>) {
    let is_stream = match options.kind {
        Some(kind) => kind == Kind::RunStream,
        None => kind::looks_like_stream(bytes),
    };
    if is_stream {
        let (report, stream) = run::stream::read(bytes);
        return (Reading { report, document: stream.map(Document::RunStream), undetected: None }, None);
    }
    let mut findings = Findings::default();
    let tape = match Tape::scan(bytes) {
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

/// What can be said of bytes that are no JSON.
fn unscanned<'s>(broken: &Broken<'_>, options: &Options<'_>, bytes: &[u8]) -> Reading<'s> {
    let mut findings = Findings::default();
    note_syntax(&broken.error, &ALL_101, &mut findings);
    note_flaws(&broken.so_far, &mut findings);
    let so_far = broken.so_far.root().and_then(|root| kind::detect(root).ok());
    let report = findings.into_report(options.kind.or(so_far), &broken.so_far, bytes);
    Reading { report, document: None, undetected: None }
}

/// Reads an object as the kind it is.
fn object<'s>(kind: Kind, root: Value<'_, 's>, findings: &mut Findings, options: &Options<'_>) -> Option<Document<'s>> {
    let fields = &mut Fields::new(root, findings);
    Some(match kind {
        Kind::BridgeRequest => Document::BridgeRequest(bridge::read::request(fields)),
        Kind::BridgeResponse => Document::BridgeResponse(bridge::read::response(fields, options)),
        Kind::WorkflowInput => Document::WorkflowInput(workflow::read::input(fields)),
        Kind::WorkflowOutput => Document::WorkflowOutput(workflow::read::output(fields)),
        Kind::WorkRequest => Document::WorkRequest(message::read::message(
            fields,
            MessageType::WorkRequest,
            options,
            message::read::work_request,
        )),
        Kind::WorkStatus => {
            Document::WorkStatus(message::read::message(fields, MessageType::WorkStatus, options, |payload| {
                message::read::work_status(payload, options)
            }))
        }
        Kind::WorkResult => Document::WorkResult(message::read::message(
            fields,
            MessageType::WorkResult,
            options,
            message::read::work_result,
        )),
        Kind::MessageError => {
            Document::MessageError(message::read::message(fields, MessageType::Error, options, message::error::read))
        }
        Kind::TaskRequest => Document::TaskRequest(task::read::request(fields)),
        Kind::TaskResponse => Document::TaskResponse(task::read::response(fields)),
        Kind::RunRequest => Document::RunRequest(run::read::request(fields)),
        Kind::RunResponse => Document::RunResponse(run::read::response(fields)),
        // Streams are no objects and were read before.
        Kind::RunStream => return None,
    })
}

/// Notes why the bytes are no JSON, under the clause for that particular reason or else `malformed`.
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
