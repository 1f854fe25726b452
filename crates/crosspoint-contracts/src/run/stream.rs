//! Judging a whole stream: `started` first, `progress` as it comes, one terminal event, last.

use std::borrow::Cow;
use std::fmt;

use super::read;
use crate::clause::*;
use crate::document;
use crate::fields::{Fields, complain, wrong_type};
use crate::json::{Tape, Type, Value};
use crate::kind::Kind;
use crate::report::{FINDINGS_MAX, Finding, Findings, LineCounter, Place, Report};
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

/// Reads a stream that has ended.
pub(crate) fn read(source: &[u8]) -> (Report, Option<Stream>) {
    let mut events = Vec::new();
    let mut reader = Reader::new(Limits::unbounded());
    // Without limits neither call can fail.
    let _ = reader.push(source, &mut events).and_then(|()| reader.finish(&mut events));
    let mut judge = Judge { source, findings: Vec::new(), unlisted: 0, request_id: None, ended: false };
    let mut read = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        read.extend(judge.event(index, event));
    }
    judge.encoding();
    judge.whole(&events);
    let report = judge.into_report();
    let stream = report.is_valid().then_some(Stream { events: read });
    (report, stream)
}

struct Judge<'s> {
    source: &'s [u8],
    findings: Vec<Finding>,
    unlisted: usize,
    /// The first request id seen in the stream, as it was spelled.
    request_id: Option<String>,
    /// A terminal event was seen.
    ended: bool,
}

impl Judge<'_> {
    fn event(&mut self, index: usize, event: &Event) -> Option<StreamEvent> {
        if !event.terminated {
            self.note(&RUN_8_3, index, event.offset, "the last event has no empty line after it");
        }
        let Some(data) = &event.data else {
            self.note(&RUN_105, index, event.offset, "the event has no data");
            self.order(index, event, event.name.as_deref().unwrap_or_default());
            return None;
        };
        let mut findings = Findings::default();
        let name = match Tape::scan(data) {
            Ok(tape) => {
                document::note_flaws(&tape, &mut findings);
                let name = tape.root().map(|root| self.value(event, root, &mut findings)).unwrap_or_default();
                self.adopt(index, event, findings.into_report(None, &tape, data));
                name
            }
            Err(broken) => {
                document::note_syntax(&broken.error, &RUN_8, &mut findings);
                self.adopt(index, event, findings.into_report(None, &broken.so_far, data));
                event.name.clone().unwrap_or_default()
            }
        };
        self.order(index, event, &name);
        let data = String::from_utf8(data.clone()).ok()?;
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
            Role::Started => started(&mut fields),
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
        if index == 0 && role != Role::Started {
            self.note(&RUN_6, index, event.offset, "the first event is not `started`");
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

    /// Bytes that are not UTF-8 outside of data, in a name or a comment; those in data were found there.
    fn encoding(&mut self) {
        let Err(error) = std::str::from_utf8(self.source) else { return };
        if !self.findings.iter().any(|finding| finding.clause == &ALL_102) {
            self.note(&ALL_102, 0, error.valid_up_to(), "these bytes are not UTF-8");
        }
    }

    fn whole(&mut self, events: &[Event]) {
        if events.is_empty() {
            self.note(&RUN_105, 0, 0, "the stream has no event");
        } else if !self.ended {
            let last = events.len() - 1;
            self.note(&RUN_6_2, last, events[last].offset, "the stream ends without a terminal event");
        }
    }

    fn note(&mut self, clause: &'static Clause, index: usize, offset: usize, message: &'static str) {
        let line_end =
            self.source[offset.min(self.source.len())..].iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let end = line_end.map_or(self.source.len(), |length| offset + length);
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

    /// Takes over what was found in one event's data: places in it become places in the stream.
    fn adopt(&mut self, index: usize, event: &Event, report: Report) {
        self.unlisted += report.unlisted;
        for mut finding in report.findings {
            let (start, end) = finding.span;
            let last = end.max(start + 1) - 1;
            finding.span = (event.stream_offset(start), event.stream_offset(last) + 1);
            finding.pointer = format!("/{index}/data{}", finding.pointer);
            self.push(finding);
        }
    }

    fn push(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.unlisted += 1;
        }
    }

    fn into_report(mut self) -> Report {
        self.findings.sort_by_key(|finding| finding.span.0);
        let mut lines = LineCounter::new(self.source);
        for finding in &mut self.findings {
            (finding.line, finding.column) = lines.at(finding.span.0);
        }
        Report { kind: Some(Kind::RunStream), findings: self.findings, unlisted: self.unlisted }
    }
}

/// Without an `event:` line the data may say what it is.
fn name_inside(root: Value<'_, '_>, findings: &mut Findings) -> String {
    let inside = ["event", "type"].iter().find_map(|member| root.get(member)?.text());
    let (name, clause, message) = match inside {
        Some(name) => (name.decode(), &RUN_6_5, "the event has no `event:` line; its data names it"),
        None => (Cow::Borrowed(""), &RUN_125, "the event has no `event:` line, and its data does not name it"),
    };
    findings.note(clause, Place::Value(root.index()), message);
    name.into_owned()
}

fn started(fields: &mut Fields<'_, '_, '_>) {
    for (member, clause) in [("request_id", &RUN_110), ("task_type", &RUN_111)] {
        let good = fields.peek(member).and_then(Value::text).is_some_and(|text| !text.is_empty());
        if good {
            continue;
        }
        match fields.peek(member) {
            Some(value) => wrong_type(value, "a non-empty string", clause, fields.findings),
            None => fields.missing(member, clause),
        }
    }
}
