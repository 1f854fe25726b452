//! Rewrites documents of agents that are older than the envelopes.
//!
//! The contract names four patterns for moving such an agent over: flat input goes into `task.params`, a `mode` is the
//! `task.action`, output of the domain is summarised in `notes`, and state updates become an artifact. Members of an
//! input that name files go into `paths`, and a `next_recommendation` is the `recommendation` (WF-9). This is a
//! translation like any other, so it loses nothing: values move as they were spelled, a note that summarises a value
//! holds the value, and nothing is ever overwritten. A value that the envelope demands and the document does not have
//! is made up only where that cannot change the meaning (`iteration` 1, `artifacts` []). Otherwise the rewriting is
//! refused, and the refusal says what is needed.
//!
//! A document that is valid already stays as it is, even where it has members that the contract does not know, because
//! those are legal. So rewriting twice is the same as rewriting once. Every result is read again before it is handed
//! out.

mod change;
mod input;
mod note;
mod object;
mod output;

pub use change::{Change, Refused};

use std::cmp::Ordering;
use std::fmt;

use super::clause::{WF_2_2, WF_114};
use crate::clause::all::{ALL_101, ALL_108};
use crate::document;
use crate::json::{self, Tape, Type, Value};
use crate::kind::Kind;
use crate::report::{Finding, Findings, Place, Report, pointer};

/// Which of the two envelopes a document is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// `workflow.input`
    Input,
    /// `workflow.output`
    Output,
}

impl Envelope {
    /// Returns the kind of document that the envelope is.
    pub fn kind(self) -> Kind {
        match self {
            Envelope::Input => Kind::WorkflowInput,
            Envelope::Output => Kind::WorkflowOutput,
        }
    }

    /// Returns the members in the order in which they are written.
    fn members(self) -> &'static [&'static str] {
        match self {
            Envelope::Input => &["context", "paths", "task", "prior_context"],
            Envelope::Output => &["success", "summary", "artifacts", "notes", "recommendation"],
        }
    }
}

/// What the caller knows beside the document. What the document itself says takes precedence.
#[derive(Clone, Copy, Default)]
pub struct Options<'o> {
    /// The envelope that the document is to become. Without it the document's members are weighed.
    pub envelope: Option<Envelope>,
    /// The path of the index file that state updates become.
    pub index: Option<&'o str>,
    /// The name of the workflow.
    pub workflow: Option<&'o str>,
    /// The action of the task.
    pub action: Option<&'o str>,
    /// What happened, in one sentence.
    pub summary: Option<&'o str>,
    /// Whether the work succeeded.
    pub success: Option<bool>,
}

/// JSON text that was put together from a document. It holds what agents wrote, so `Debug` shows only its size.
#[derive(Clone, PartialEq, Eq)]
pub struct Rewritten(String);

impl Rewritten {
    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Rewritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

/// A document as an envelope.
#[derive(Debug)]
pub struct Migrated {
    /// The envelope: valid, and indented for people. The document as it came where nothing was to be done.
    pub document: Rewritten,
    /// `workflow.input` or `workflow.output`.
    pub kind: Kind,
    /// What was done, in order. Empty where the document was valid already.
    pub changes: Vec<Change>,
    /// Pointers to the members of a valid document that the contract does not know. They were left where they are.
    pub left: Vec<String>,
}

/// The member that Crosspoint itself writes beside those of a contract. It stays where it is.
const OURS: &str = "x_crosspoint";

/// Rewrites a document as the envelope that it would be today (WF-9).
///
/// # Errors
/// Fails if the document cannot be read, if its envelope cannot be told, if it lacks what cannot be made up, or if a
/// value would be overwritten.
pub fn migrate(bytes: &[u8], options: &Options<'_>) -> Result<Migrated, Refused> {
    let tape = scan(bytes)?;
    let root = root(&tape, bytes)?;
    let envelope = options.envelope.map_or_else(|| weigh(root, options), Ok)?;
    let kind = envelope.kind();
    if is_current(&read(bytes, kind)) {
        let document = Rewritten(root.source().to_owned());
        return Ok(Migrated { document, kind, changes: Vec::new(), left: unknown(root, envelope) });
    }
    let (json, changes) = match envelope {
        Envelope::Input => input::rewrite(root, options)?,
        Envelope::Output => output::rewrite(root, options)?,
    };
    let document = checked(json, kind)?;
    Ok(Migrated { document, kind, changes, left: Vec::new() })
}

fn read(bytes: &[u8], kind: Kind) -> Report {
    document::read(bytes, &document::Options { kind: Some(kind), ..document::Options::default() }).report
}

/// Whether there is nothing to migrate. The two loosenesses that stem from older agents are no errors, but are
/// migrated.
fn is_current(report: &Report) -> bool {
    let is_old = |finding: &Finding| *finding.clause == WF_2_2 || *finding.clause == WF_114;
    report.is_valid() && !report.findings.iter().any(is_old)
}

/// Indents the envelope and reads it as any reader would.
fn checked(json: String, kind: Kind) -> Result<Rewritten, Refused> {
    let tape = Tape::scan(json.as_bytes());
    let root = tape.as_ref().ok().and_then(Tape::root);
    // Moving a value inwards may nest it deeper than readers allow. Then the text cannot be indented.
    let text = root.map(json::pretty).unwrap_or(json);
    let report = read(text.as_bytes(), kind);
    if is_current(&report) {
        return Ok(Rewritten(text));
    }
    Err(Refused::Invalid { document: Rewritten(text), report })
}

/// Scans the document. Values on which readers would disagree cannot be moved.
fn scan(bytes: &[u8]) -> Result<Tape<'_>, Refused> {
    let mut findings = Findings::default();
    match Tape::scan(bytes) {
        Ok(tape) => {
            document::note_flaws(&tape, &mut findings);
            if findings.any_error() {
                return Err(Refused::Unreadable(findings.into_report(None, &tape, bytes)));
            }
            Ok(tape)
        }
        Err(broken) => {
            document::note_syntax(&broken.error, &ALL_101, &mut findings);
            Err(Refused::Unreadable(findings.into_report(None, &broken.so_far, bytes)))
        }
    }
}

fn root<'t, 's>(tape: &'t Tape<'s>, bytes: &[u8]) -> Result<Value<'t, 's>, Refused> {
    let found = tape.root().map_or(Type::Null, Value::kind);
    tape.root().filter(|root| root.kind() == Type::Object).ok_or_else(|| {
        let mut findings = Findings::default();
        let message = format!("the document is {}, not an object", found.described());
        findings.note(&ALL_108, Place::Value(0), message);
        Refused::Unreadable(findings.into_report(None, tape, bytes))
    })
}

/// Members that speak for an envelope, and their weights. Older agents echo ids and paths in their output too.
const FOR_INPUT: [(&str, u32); 10] = [
    ("context", 2),
    ("task", 2),
    ("prior_context", 2),
    ("mode", 2),
    ("action", 2),
    ("params", 2),
    ("paths", 1),
    ("feature_id", 1),
    ("workflow", 1),
    ("iteration", 1),
];
const FOR_OUTPUT: [(&str, u32); 9] = [
    ("success", 2),
    ("summary", 2),
    ("artifacts", 2),
    ("recommendation", 2),
    ("next_recommendation", 2),
    ("state_updates", 2),
    ("notes", 1),
    ("error", 1),
    ("error_message", 1),
];

/// Decides which envelope the document is to become. Where its members leave that open, what the caller knows decides.
fn weigh(root: Value<'_, '_>, options: &Options<'_>) -> Result<Envelope, Refused> {
    let found = |marks: &[(&'static str, u32)]| -> (Vec<&'static str>, u32) {
        let found: Vec<_> = marks.iter().filter(|(name, _)| root.get(name).is_some()).collect();
        (found.iter().map(|(name, _)| *name).collect(), found.iter().map(|(_, weight)| weight).sum())
    };
    let (input, input_weight) = found(&FOR_INPUT);
    let (output, output_weight) = found(&FOR_OUTPUT);
    let of_input = options.workflow.is_some() || options.action.is_some();
    let of_output = options.index.is_some() || options.summary.is_some() || options.success.is_some();
    match (input_weight.cmp(&output_weight), of_input, of_output) {
        (Ordering::Greater, ..) | (Ordering::Equal, true, false) => Ok(Envelope::Input),
        (Ordering::Less, ..) | (Ordering::Equal, false, true) => Ok(Envelope::Output),
        (Ordering::Equal, ..) => Err(Refused::Undecided { input, output }),
    }
}

/// Returns pointers to the members that the envelope does not have.
fn unknown(root: Value<'_, '_>, envelope: Envelope) -> Vec<String> {
    let is_known = |name: &str| name == OURS || envelope.members().contains(&name);
    let names = root.members().map(|(name, _)| name.decode()).filter(|name| !is_known(name));
    names.map(|name| pointer(&[&name])).collect()
}
