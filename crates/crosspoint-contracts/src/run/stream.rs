//! Judging a whole stream: `started` first, `progress` as it comes, one terminal event, last.

use std::borrow::Cow;
use std::fmt;

use super::read;
use super::wire::{Progress, Started, Terminal};
use crate::clause::Clause;
use crate::clause::all::ALL_102;
use crate::clause::run::*;
use crate::content::Raw;
use crate::document;
use crate::fields::{Fields, complain, wrong_type};
use crate::json::{Tape, Type, Value};
use crate::kind::Kind;
use crate::report::{Finding, Findings, Place, Report, Tally};
use crate::sse::{Event, Limits, Reader};

/// The names under which a terminal event is read; `final` is what we write.
const TERMINAL_NAMES: &[&str] = &["final", "complete", "done"];

/// A stream without errors.
#[derive(Debug)]
pub struct Stream {
    /// In the order they came; the last is the terminal one.
    pub events: Vec<StreamEvent>,
}

/// One event of a stream.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// From the `event:` line, or from inside the data.
    pub name: String,
    /// One JSON value.
    pub data: String,
}

/// What an event says, typed.
#[derive(Debug)]
pub enum Said<'s> {
    /// The run has begun.
    Started(Started<'s>),
    /// The run goes on.
    Progress(Progress<'s>),
    /// The run has ended.
    Terminal(Box<Terminal<'s>>),
    /// Something of the agent's own.
    Other(Raw<'s>),
}

impl StreamEvent {
    /// Reads the data by the event's role. It borrows from the event, because data over several lines is joined there.
    ///
    /// `None` never comes from an event of a [`Stream`], which has no errors.
    pub fn read(&self) -> Option<Said<'_>> {
        let tape = Tape::scan(self.data.as_bytes()).ok()?;
        let root = tape.root()?;
        let mut findings = Findings::default();
        let said = match role(&self.name) {
            Role::Started => Said::Started(read::started(&mut Fields::new(root, &mut findings))),
            Role::Progress => Said::Progress(read::progress(root)),
            Role::Terminal => Said::Terminal(Box::new(read::terminal(&mut Fields::new(root, &mut findings)))),
            Role::Other => Said::Other(Raw::new(root.source())),
        };
        (!findings.any_error()).then_some(said)
    }
}

impl fmt::Debug for StreamEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamEvent[{} bytes]", self.data.len())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Started,
    Progress,
    Terminal,
    Other,
}

fn role(name: &str) -> Role {
    match name {
        "started" => Role::Started,
        "progress" => Role::Progress,
        name if TERMINAL_NAMES.contains(&name) => Role::Terminal,
        _ => Role::Other,
    }
}

/// Bytes handed to the event reader at a time, so that only the events of one piece are in memory twice.
const PIECE_BYTES: usize = 64 << 10;

/// Reads a stream that has ended.
pub(crate) fn read(source: &[u8]) -> (Report, Option<Stream>) {
    let mut judge = Judge::new(source);
    let mut reader = Reader::new(Limits::unbounded());
    let mut pending = Vec::new();
    let mut events = Vec::new();
    for piece in source.chunks(PIECE_BYTES) {
        // Without limits reading cannot fail.
        let _ = reader.push(piece, &mut pending);
        events.extend(pending.drain(..).filter_map(|event| judge.event(event)));
    }
    let _ = reader.finish(&mut pending);
    events.extend(pending.drain(..).filter_map(|event| judge.event(event)));
    let report = judge.into_report();
    let stream = report.is_valid().then_some(Stream { events });
    (report, stream)
}

struct Judge<'s> {
    source: &'s [u8],
    findings: Vec<Finding>,
    tally: Tally,
    /// Events so far, and where the last one begins.
    events: usize,
    last_offset: usize,
    /// The first request id seen in the stream, as it was spelled.
    request_id: Option<String>,
    /// A terminal event was seen.
    ended: bool,
    /// A terminal name with its case wrong, as it should be spelled.
    misspelled: Option<&'static str>,
}

impl<'s> Judge<'s> {
    fn new(source: &'s [u8]) -> Judge<'s> {
        Judge {
            source,
            findings: Vec::new(),
            tally: Tally::default(),
            events: 0,
            last_offset: 0,
            request_id: None,
            ended: false,
            misspelled: None,
        }
    }

    fn event(&mut self, mut event: Event) -> Option<StreamEvent> {
        let index = self.events;
        self.events += 1;
        self.last_offset = event.offset;
        if !event.terminated {
            self.note(&RUN_8_3, index, event.offset, "the last event has no empty line after it");
        }
        if event.name_is_broken {
            self.note(&ALL_102, index, event.offset, "the event's name is not UTF-8");
        }
        let Some(data) = event.data.take() else {
            self.note(&RUN_105, index, event.offset, "the event has no data");
            self.order(index, &event, event.name.as_deref().unwrap_or_default());
            return None;
        };
        let mut findings = Findings::default();
        let name = match Tape::scan(&data) {
            Ok(tape) => {
                document::note_flaws(&tape, &mut findings);
                let name = tape.root().map(|root| self.value(&event, root, &mut findings)).unwrap_or_default();
                self.adopt(index, &event, findings.into_unplaced_report(None, &tape));
                name
            }
            Err(broken) => {
                document::note_syntax(&broken.error, &RUN_8, &mut findings);
                self.adopt(index, &event, findings.into_unplaced_report(None, &broken.so_far));
                event.name.clone().unwrap_or_default()
            }
        };
        self.order(index, &event, &name);
        let data = String::from_utf8(data).ok()?;
        Some(StreamEvent { name, data })
    }

    /// Checks one event's data against its role; gives the event's name.
    fn value(&mut self, event: &Event, root: Value<'_, '_>, findings: &mut Findings) -> String {
        let name = event.name.clone().unwrap_or_else(|| name_inside(root, findings));
        let role = role(&name);
        if role == Role::Other {
            return name;
        }
        if role == Role::Terminal && root.kind() != Type::Object {
            wrong_type(root, "an object", &RUN_124, findings);
            return name;
        }
        self.same_request(root, findings);
        let mut fields = Fields::new(root, findings);
        match role {
            Role::Started => drop(read::started(&mut fields)),
            Role::Terminal => drop(read::terminal(&mut fields)),
            Role::Progress | Role::Other => {}
        }
        name
    }

    /// RUN-9: whatever was echoed first must be echoed again.
    fn same_request(&mut self, root: Value<'_, '_>, findings: &mut Findings) {
        let Some(value) = root.get("request_id") else { return };
        let Some(text) = value.text() else { return };
        let echoed = text.decode();
        match &self.request_id {
            Some(first) if *first != echoed => {
                complain(value, &RUN_9, "differs from that of an earlier event", findings);
            }
            Some(_) => {}
            None => self.request_id = Some(echoed.into_owned()),
        }
    }

    fn order(&mut self, index: usize, event: &Event, name: &str) {
        let role = role(name);
        if role == Role::Other {
            let meant = TERMINAL_NAMES.iter().find(|terminal| terminal.eq_ignore_ascii_case(name.trim()));
            self.misspelled = meant.copied().or(self.misspelled);
        }
        if index == 0 && role != Role::Started {
            self.note(&RUN_6, index, event.offset, "the first event is not `started`");
            let misspelled = name.trim().eq_ignore_ascii_case("started");
            self.hint_at_last(misspelled.then_some("Spell it exactly like this, with one space: event: started."));
        }
        if self.ended {
            let message = match role {
                Role::Terminal => "this is a second terminal event",
                Role::Started | Role::Progress | Role::Other => "this event follows the terminal event",
            };
            self.note(&RUN_6_2, index, event.offset, message);
        }
        self.ended |= role == Role::Terminal;
    }

    /// What can be said only at the end.
    fn whole(&mut self) {
        if let Err(error) = std::str::from_utf8(self.source) {
            // Bytes in names and data were found there; these are in a comment or a field nobody knows.
            if !self.findings.iter().any(|finding| finding.clause == &ALL_102) {
                let before = self.events.saturating_sub(1);
                self.note(&ALL_102, before, error.valid_up_to(), "these bytes are not UTF-8");
            }
        }
        if self.events == 0 {
            self.note(&RUN_105, 0, 0, "the stream has no event");
            self.hint_at_last(no_event_hint(self.source));
        } else if !self.ended {
            self.note(&RUN_6_2, self.events - 1, self.last_offset, "the stream ends without a terminal event");
            self.hint_at_last(
                self.misspelled.map(|name| format!("Spell it exactly like this, with one space: event: {name}.")),
            );
        }
    }

    fn note(&mut self, clause: &'static Clause, index: usize, offset: usize, message: &'static str) {
        let rest = self.source.get(offset..).unwrap_or_default();
        let line = rest.iter().take(LINE_BYTES_SHOWN).position(|byte| matches!(byte, b'\r' | b'\n'));
        let end = offset + line.unwrap_or(rest.len().min(LINE_BYTES_SHOWN));
        self.push(Finding {
            clause,
            pointer: format!("/{index}"),
            line: 0,
            column: 0,
            span: (offset, end),
            message: Cow::Borrowed(message),
            hint: Cow::Borrowed(clause.hint),
        });
    }

    /// Gives the finding noted last a hint more exact than its clause's own.
    fn hint_at_last(&mut self, hint: Option<impl Into<Cow<'static, str>>>) {
        if let (Some(finding), Some(hint)) = (self.findings.last_mut(), hint) {
            finding.hint = hint.into();
        }
    }

    /// Takes over what was found in one event's data: places in it become places in the stream.
    fn adopt(&mut self, index: usize, event: &Event, report: Report) {
        self.tally.add_unlisted(&report);
        for mut finding in report.findings {
            let (start, end) = finding.span;
            let last = end.max(start + 1) - 1;
            finding.span = (event.stream_offset(start), event.stream_offset(last) + 1);
            finding.pointer = format!("/{index}/data{}", finding.pointer);
            self.push(finding);
        }
    }

    fn push(&mut self, finding: Finding) {
        if self.tally.admit(finding.clause.level) {
            self.findings.push(finding);
        }
    }

    fn into_report(mut self) -> Report {
        self.whole();
        let mut report = self.tally.report(Some(Kind::RunStream), self.findings);
        report.locate_lines(self.source);
        report
    }
}

/// How much of a line is looked at for its end; a line may be as long as the stream.
const LINE_BYTES_SHOWN: usize = 256;

/// What something without a single event probably is.
fn no_event_hint(source: &[u8]) -> Option<&'static str> {
    let start = source.trim_ascii_start();
    let begins = |word: &str| start.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
    if begins("http/") {
        Some("Remove the HTTP head; curl prints it with -i.")
    } else if begins("event:") || begins("data:") {
        Some("Write the names of fields in lower case: event:, data:.")
    } else if begins("{") {
        Some("This is JSON, not a stream; each event has an event: line, a data: line and an empty line.")
    } else {
        None
    }
}

/// Without an `event:` line the data may say what it is.
fn name_inside(root: Value<'_, '_>, findings: &mut Findings) -> String {
    let inside = ["event", "type"].iter().find_map(|member| root.get(member)?.text());
    let place = Place::Value(root.index());
    let Some(name) = inside else {
        findings.note(&RUN_125, place, "the event has no `event:` line, and its data does not name it");
        return String::new();
    };
    let name = name.decode().into_owned();
    let message = "the event has no `event:` line; its data names it";
    match ["started", "progress"].iter().chain(TERMINAL_NAMES).find(|known| **known == name) {
        Some(known) => {
            findings.note_with_hint(&RUN_6_5, place, message, format!("Write above the data line: event: {known}."));
        }
        // Other names are the agent's own and not repeated.
        None => findings.note(&RUN_6_5, place, message),
    }
    name
}
