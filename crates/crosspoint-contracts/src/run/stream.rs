//! Judges a whole stream: `started` first, `progress` as it comes, one terminal event, last.

use std::borrow::Cow;

use super::clause::RUN_105;
use super::event::{Echo, StreamEvent, examine, framing};
use super::life::{Breach, Life, Role, STARTED, TERMINAL_NAMES};
use crate::clause::Clause;
use crate::clause::all::ALL_102;
use crate::document::Extent;
use crate::json::Levels;
use crate::kind::Kind;
use crate::report::{Finding, Report, Tally, Wrong};
use crate::sse::{Event, Limits, Reader};

/// A stream without errors.
#[derive(Debug)]
pub struct Stream {
    /// The events in the order in which they came. The last is the terminal one.
    pub events: Vec<StreamEvent>,
}

/// Bytes that are given to the event reader at a time, so that only the events of one piece are in memory twice.
const PIECE_BYTES: usize = 64 << 10;

/// Reads a stream that has ended.
pub(crate) fn read(source: &[u8], extent: Extent) -> (Report, Option<Stream>) {
    let mut judge = Judge::new(source, extent);
    let mut reader = Reader::new(Limits::unbounded());
    let mut pending = Vec::new();
    let mut events = Vec::new();
    for piece in source.chunks(PIECE_BYTES) {
        // Without limits, reading cannot fail.
        let _ = reader.push(piece, &mut pending);
        events.extend(pending.drain(..).filter_map(|event| judge.event(event)));
    }
    let _ = reader.finish(&mut pending);
    events.extend(pending.drain(..).filter_map(|event| judge.event(event)));
    let report = judge.into_report();
    let stream = report.is_valid().then_some(Stream { events });
    (report, stream)
}

/// Whether bytes look like a stream of events rather than JSON.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    ["event:", "data:", "id:", "retry:", ":"].iter().any(|field| bytes.starts_with(field.as_bytes()))
}

struct Judge<'s> {
    source: &'s [u8],
    findings: Vec<Finding>,
    tally: Tally,
    /// The number of events so far, and where the last one begins.
    events: usize,
    last_offset: usize,
    /// The request id that the events share.
    echo: Echo,
    /// The state of the stream after the events so far.
    life: Life,
    /// The right spelling of a terminal name that came with its case wrong.
    misspelled: Option<&'static str>,
    extent: Extent,
}

impl<'s> Judge<'s> {
    fn new(source: &'s [u8], extent: Extent) -> Judge<'s> {
        Judge {
            source,
            findings: Vec::new(),
            tally: Tally::default(),
            events: 0,
            last_offset: 0,
            echo: Echo::Unknown,
            life: Life::New,
            misspelled: None,
            extent,
        }
    }

    fn event(&mut self, mut event: Event) -> Option<StreamEvent> {
        let index = self.events;
        self.events += 1;
        self.last_offset = event.offset;
        for (clause, message) in framing(&event) {
            self.note(clause, index, event.offset, message);
        }
        let Some(data) = event.data.take() else {
            self.order(index, &event, event.name.as_deref().unwrap_or_default());
            return None;
        };
        let examined = examine(event.name.as_deref(), &data, &mut self.echo, Levels::Received);
        let name = examined.name;
        self.adopt(index, &event, examined.report);
        self.order(index, &event, &name);
        let data = String::from_utf8(data).ok()?;
        Some(StreamEvent { name, data })
    }

    fn order(&mut self, index: usize, event: &Event, name: &str) {
        let role = Role::of(name);
        if role == Role::Other {
            let meant = TERMINAL_NAMES.iter().find(|terminal| terminal.eq_ignore_ascii_case(name.trim()));
            self.misspelled = meant.copied().or(self.misspelled);
        }
        let (life, breach) = self.life.step(role);
        self.life = life;
        let Some(breach) = breach.filter(|breach| self.counts(*breach)) else { return };
        self.note(breach.clause(), index, event.offset, breach.message());
        if breach == Breach::NotStartedFirst && name.trim().eq_ignore_ascii_case(STARTED) {
            self.hint_at_last(Some("Spell it exactly like this, with one space: event: started."));
        }
    }

    /// Whether a breach counts. A part of a stream may begin anywhere and end anywhere.
    fn counts(&self, breach: Breach) -> bool {
        match breach {
            Breach::NotStartedFirst | Breach::NoTerminal => self.extent == Extent::Whole,
            Breach::SecondTerminal | Breach::AfterTerminal => true,
        }
    }

    /// Notes what can only be said at the end.
    fn whole(&mut self) {
        if let Err(error) = std::str::from_utf8(self.source) {
            // Bytes in names and data were reported there. These are in a comment or in an unknown field.
            if !self.findings.iter().any(|finding| finding.clause == &ALL_102) {
                let before = self.events.saturating_sub(1);
                self.note(&ALL_102, before, error.valid_up_to(), "these bytes are not UTF-8");
            }
        }
        if self.events == 0 {
            self.note(&RUN_105, 0, 0, "the stream has no event");
            self.hint_at_last(no_event_hint(self.source));
        } else if let Some(breach) = self.life.end().filter(|breach| self.counts(*breach)) {
            self.note(breach.clause(), self.events - 1, self.last_offset, breach.message());
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
            level: clause.level,
            pointer: format!("/{index}"),
            line: 0,
            column: 0,
            span: (offset, end),
            message: Cow::Borrowed(message),
            hint: Cow::Borrowed(clause.hint),
            wrong: Wrong::Value,
        });
    }

    /// Gives the last finding a more exact hint than its clause's own.
    fn hint_at_last(&mut self, hint: Option<impl Into<Cow<'static, str>>>) {
        if let (Some(finding), Some(hint)) = (self.findings.last_mut(), hint) {
            finding.hint = hint.into();
        }
    }

    /// Adds what was found in one event's data: places in the data become places in the stream.
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
        if self.tally.admit(finding.level) {
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

/// Most bytes of a line that are searched for its end. A line may be as long as the stream.
const LINE_BYTES_SHOWN: usize = 256;

/// Returns a hint at what a source without a single event probably is.
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
