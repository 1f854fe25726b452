//! Findings: what is wrong, where, which clause says so, and how to mend it.
//!
//! While a document is read, a finding notes only a node of the tape. Pointers, lines and columns are computed
//! afterwards, for all findings in one pass. A valid document pays nothing for them, and a large one with thousands of
//! findings pays once.

mod place;

use std::borrow::Cow;

use crate::clause::{Clause, Level};
use crate::json::{Tape, Value};
use crate::kind::Kind;

pub(crate) use place::pointer;
use place::{LineCounter, Path};

/// Most findings of each level that are listed for one document. A longer list would be as long as the document and
/// help no reader. Errors and warnings are counted separately, so that no number of warnings hides an error.
pub const FINDINGS_MAX: usize = 10_000;

/// Most bytes of a finding's pointer. A member's name may be as long as the document, and there may be thousands of
/// findings inside it. A pointer that is cut ends in an ellipsis.
pub const POINTER_BYTES_MAX: usize = 1_024;

/// One violation of one clause at one place.
///
/// Messages name fields, types and clauses and never quote values, because they may end up in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken.
    pub clause: &'static Clause,
    /// How much it matters here: the level of the clause, or less in an optional member (ALL-11).
    pub level: Level,
    /// JSON pointer (RFC 6901) to the place; for a missing member, to where it should be. In a stream the first part is
    /// the number of the event, from 0.
    pub pointer: String,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// First byte of the place in the source, and the byte after its last.
    pub span: (usize, usize),
    /// What is wrong, in words.
    pub message: Cow<'static, str>,
    /// How to mend it.
    pub hint: Cow<'static, str>,
    /// In which way it is wrong.
    pub wrong: Wrong,
}

impl Finding {
    /// Makes a finding at a place that is known by its pointer alone, with the clause's own hint.
    pub fn at(
        clause: &'static Clause,
        pointer: String,
        message: impl Into<Cow<'static, str>>,
        wrong: Wrong,
    ) -> Finding {
        let (message, hint) = (message.into(), Cow::Borrowed(clause.hint));
        Finding { clause, level: clause.level, pointer, line: 0, column: 0, span: (0, 0), message, hint, wrong }
    }
}

/// In which way a member is wrong, for contracts that have a code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The member is missing.
    Missing,
    /// The member has the wrong type.
    Type,
    /// The member has the right type but a wrong value.
    Value,
}

/// All findings about one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kind of the document, where it is known.
    pub kind: Option<Kind>,
    /// The findings, in order of their places.
    pub findings: Vec<Finding>,
    /// Number of findings past [`FINDINGS_MAX`], which are counted but not listed.
    pub unlisted: usize,
    /// Number of the unlisted findings that are errors.
    pub unlisted_errors: usize,
}

impl Report {
    /// Makes a report of findings that are known by their pointers alone. Each is placed at the value that its pointer
    /// names in the document, or at the nearest one around it.
    pub fn of_pointers(mut findings: Vec<Finding>, source: &[u8]) -> Report {
        if let Ok(tape) = Tape::scan(source) {
            for finding in &mut findings {
                finding.span = tape.root().map_or((0, 0), |root| nearest(root, &finding.pointer).span());
            }
        }
        let mut report = Report { findings, ..Report::default() };
        report.locate_lines(source);
        report
    }

    /// Returns whether no error was found. Warnings are allowed.
    pub fn is_valid(&self) -> bool {
        self.count(Level::Error) == 0
    }

    /// Returns the number of findings of that level, unlisted ones included.
    pub fn count(&self, level: Level) -> usize {
        let listed = self.findings.iter().filter(|finding| finding.level == level).count();
        match level {
            Level::Error => listed + self.unlisted_errors,
            Level::Warning => listed + self.unlisted - self.unlisted_errors,
        }
    }

    /// Sorts the findings by their places and computes lines and columns.
    pub(crate) fn locate_lines(&mut self, source: &[u8]) {
        self.findings.sort_by_key(|finding| finding.span.0);
        let mut lines = LineCounter::new(source);
        for finding in &mut self.findings {
            (finding.line, finding.column) = lines.at(finding.span.0);
        }
    }
}

/// Where a finding is, in terms of the tape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A value, from its first byte.
    Value(u32),
    /// A member, at its name.
    Member(u32),
    /// A missing member, at the object that lacks it.
    Missing(u32, &'static str),
    /// A byte inside a value.
    Inside(u32, usize),
}

impl Place {
    /// Returns how a finding at this place is wrong, unless the caller knows better: a missing member is missing, of a
    /// present one the value is wrong.
    fn wrong(self) -> Wrong {
        match self {
            Place::Missing(..) => Wrong::Missing,
            Place::Value(_) | Place::Member(_) | Place::Inside(..) => Wrong::Value,
        }
    }

    fn node(self) -> u32 {
        match self {
            Place::Value(node) | Place::Member(node) | Place::Missing(node, _) | Place::Inside(node, _) => node,
        }
    }
}

struct Note {
    clause: &'static Clause,
    level: Level,
    place: Place,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    wrong: Wrong,
}

/// Whether a member must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

/// The findings of a document that is being read.
#[derive(Default)]
pub(crate) struct Findings {
    notes: Vec<Note>,
    tally: Tally,
    /// Whether the member that is being read may be left out: then a wrong type in it is only a warning (ALL-11).
    optional: bool,
}

/// How many findings of each level there were.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    errors: Count,
    warnings: Count,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    listed: usize,
    unlisted: usize,
}

impl Tally {
    /// Counts one finding. Returns whether there is room for it in the list.
    pub(crate) fn admit(&mut self, level: Level) -> bool {
        let count = match level {
            Level::Error => &mut self.errors,
            Level::Warning => &mut self.warnings,
        };
        let room = count.listed < FINDINGS_MAX;
        if room {
            count.listed += 1;
        } else {
            count.unlisted += 1;
        }
        room
    }

    /// Counts the findings that another report did not list.
    pub(crate) fn add_unlisted(&mut self, report: &Report) {
        self.errors.unlisted += report.unlisted_errors;
        self.warnings.unlisted += report.unlisted - report.unlisted_errors;
    }

    /// Returns the report with these findings.
    pub(crate) fn report(self, kind: Option<Kind>, findings: Vec<Finding>) -> Report {
        let unlisted = self.errors.unlisted + self.warnings.unlisted;
        Report { kind, findings, unlisted, unlisted_errors: self.errors.unlisted }
    }
}

impl Findings {
    pub(crate) fn note(&mut self, clause: &'static Clause, place: Place, message: impl Into<Cow<'static, str>>) {
        self.push(clause, place, message.into(), None, place.wrong());
    }

    /// Notes that a value has the wrong type.
    pub(crate) fn note_type(&mut self, clause: &'static Clause, place: Place, message: impl Into<Cow<'static, str>>) {
        self.push(clause, place, message.into(), None, Wrong::Type);
    }

    /// Notes that a member is missing, at a member that looks like it.
    pub(crate) fn note_misspelled(
        &mut self,
        clause: &'static Clause,
        place: Place,
        message: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) {
        self.push(clause, place, message.into(), Some(hint.into()), Wrong::Missing);
    }

    /// Notes a finding with a more exact hint than the clause's own.
    pub(crate) fn note_with_hint(
        &mut self,
        clause: &'static Clause,
        place: Place,
        message: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) {
        self.push(clause, place, message.into(), Some(hint.into()), place.wrong());
    }

    fn push(
        &mut self,
        clause: &'static Clause,
        place: Place,
        message: Cow<'static, str>,
        hint: Option<Cow<'static, str>>,
        wrong: Wrong,
    ) {
        let level = if self.optional && wrong == Wrong::Type { Level::Warning } else { clause.level };
        if self.tally.admit(level) {
            self.notes.push(Note { clause, level, place, message, hint, wrong });
        }
    }

    /// Reads a member that must be there, or that may be left out. What is inside it says for itself which it is.
    pub(crate) fn within<T>(&mut self, need: Need, read: impl FnOnce(&mut Findings) -> T) -> T {
        let before = std::mem::replace(&mut self.optional, need == Need::Optional);
        let read = read(self);
        self.optional = before;
        read
    }

    /// Whether an error was noted. Then the document is not handed out.
    pub(crate) fn any_error(&self) -> bool {
        self.tally.errors.listed > 0
    }

    /// Computes pointers and spans, but no lines and columns.
    pub(crate) fn into_unplaced_report(self, kind: Option<Kind>, tape: &Tape<'_>) -> Report {
        self.tally.report(kind, locate(self.notes, tape))
    }

    /// Computes pointers, lines and columns.
    pub(crate) fn into_report(self, kind: Option<Kind>, tape: &Tape<'_>, source: &[u8]) -> Report {
        let mut report = self.into_unplaced_report(kind, tape);
        report.locate_lines(source);
        report
    }
}

/// Returns the value that a pointer names, or the last one on the way to it.
fn nearest<'t, 's>(root: Value<'t, 's>, pointer: &str) -> Value<'t, 's> {
    let mut at = root;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        let item = || name.parse::<usize>().ok().and_then(|index| at.items().nth(index));
        match at.get(&name).or_else(item) {
            Some(inside) => at = inside,
            None => break,
        }
    }
    at
}

/// Turns notes into findings with pointers and spans, in one walk over the tape up to the last noted node.
fn locate(mut notes: Vec<Note>, tape: &Tape<'_>) -> Vec<Finding> {
    notes.sort_by_key(|note| note.place.node());
    let mut findings = Vec::with_capacity(notes.len());
    let mut path = Path::default();
    let mut at = 0;
    for note in notes {
        while at <= note.place.node() {
            let Some(value) = tape.node(at) else { break };
            path.step(value);
            at += 1;
        }
        findings.push(note.into_finding(tape, &path));
    }
    findings
}

impl Note {
    fn into_finding(self, tape: &Tape<'_>, path: &Path) -> Finding {
        let mut pointer = path.pointer();
        let value = tape.node(self.place.node());
        let (start, end) = value.map_or((0, 0), Value::span);
        let span = match self.place {
            Place::Value(_) => (start, end),
            Place::Member(_) => value.and_then(Value::key).map_or((start, end), Value::span),
            Place::Missing(_, name) => {
                pointer.push(name);
                (start, (start + 1).min(end))
            }
            Place::Inside(_, offset) => (offset, offset + 1),
        };
        let hint = self.hint.unwrap_or(Cow::Borrowed(self.clause.hint));
        let Note { clause, level, message, wrong, .. } = self;
        Finding { clause, level, pointer: pointer.text, line: 0, column: 0, span, message, hint, wrong }
    }
}
