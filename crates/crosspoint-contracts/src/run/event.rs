//! One event of a stream: reads its data by its role, and finds what is wrong with it.
//!
//! The judge, the follower and the writer of streams all ask here about each event, so that they cannot differ. What
//! spans events is kept elsewhere: their order in [`Life`](super::Life), the id that they share in [`Echo`].

use std::fmt;

use super::clause::*;
use super::exchange::EXCHANGE;
use super::life::{PROGRESS, Role, STARTED, TERMINAL_NAMES};
use super::wire::{Progress, Started, Terminal};
use super::{jobs, read};
use crate::clause::Clause;
use crate::clause::all::ALL_102;
use crate::content::Raw;
use crate::document;
use crate::exchange::Lack;
use crate::fields::{Fields, complain, wrong_type};
use crate::job::Canonical;
use crate::json::{Levels, Tape, Type, Value};
use crate::needs::Form;
use crate::report::{Findings, Place, Report};
use crate::sse::Event;

/// One event of a stream.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// The name, from the `event:` line or from inside the data.
    pub name: String,
    /// The data: one JSON value.
    pub data: String,
}

impl StreamEvent {
    /// Returns the role of the event in the life of its stream.
    pub fn role(&self) -> Role {
        Role::of(&self.name)
    }

    /// Returns the event as a job, or what it says of one. Returns `None` where its data is not JSON.
    pub fn job(&self) -> Option<Canonical<'static>> {
        jobs::of_event(self)
    }

    /// Reads the data by the event's role. The result borrows from the event, because data over several lines is joined
    /// there.
    ///
    /// Returns `None` where the data has an error, which an event of a [`Stream`](super::Stream) never has.
    pub fn read(&self) -> Option<EventData<'_>> {
        let examined = examine(Some(&self.name), self.data.as_bytes(), &mut Echo::Unknown, Levels::Received);
        examined.data.filter(|_| examined.report.is_valid())
    }
}

impl fmt::Debug for StreamEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamEvent[{} bytes]", self.data.len())
    }
}

/// What an event says, typed.
#[derive(Debug)]
pub enum EventData<'s> {
    /// The run has begun.
    Started(Started<'s>),
    /// The run is under way.
    Progress(Progress<'s>),
    /// The run has ended.
    Terminal(Box<Terminal<'s>>),
    /// An event that only the agent knows.
    Other(Raw<'s>),
}

/// The request id that `started`, `progress` and terminal events must carry if they carry any (RUN-9).
#[derive(Debug)]
pub(super) enum Echo {
    /// No event has carried an id yet.
    Unknown,
    /// The id of the request.
    OfRequest(String),
    /// The id of the first event that carried one.
    OfEvent(String),
}

impl Echo {
    /// Whether an event may carry this id.
    pub(super) fn allows(&self, id: &str) -> bool {
        match self {
            Echo::Unknown => true,
            Echo::OfRequest(first) | Echo::OfEvent(first) => first == id,
        }
    }

    fn check(&mut self, root: Value<'_, '_>, findings: &mut Findings) {
        let Some(value) = root.get("request_id") else { return };
        let Some(text) = value.text() else { return };
        let echoed = text.decode();
        if self.allows(&echoed) {
            if matches!(self, Echo::Unknown) {
                *self = Echo::OfEvent(echoed.into_owned());
            }
            return;
        }
        let continued = match self {
            Echo::OfRequest(_) => "differs from that of the request",
            Echo::Unknown | Echo::OfEvent(_) => "differs from that of an earlier event",
        };
        complain(value, &RUN_9, continued, findings);
    }
}

/// The result of examining one event's data.
pub(super) struct Examined<'s> {
    /// The name, from the `event:` line or from inside the data.
    pub(super) name: String,
    /// What the event says, with placeholders where there are errors; `None` where it cannot be read at all.
    pub(super) data: Option<EventData<'s>>,
    /// What the data lacks that an outcome needs, if it is that of a terminal event (ALL-11).
    pub(super) lack: Option<Lack>,
    /// What is wrong with the data. Spans are places in the data; lines and columns are not computed.
    pub(super) report: Report,
}

/// Reads one event's data by its role and finds everything that is wrong with it.
pub(super) fn examine<'s>(name: Option<&str>, data: &'s [u8], echo: &mut Echo, levels: Levels) -> Examined<'s> {
    let mut findings = Findings::default();
    let tape = match Tape::scan_within(data, levels) {
        Ok(tape) => tape,
        Err(broken) => {
            document::note_syntax(&broken.error, &RUN_8, &mut findings);
            let report = findings.into_unplaced_report(None, &broken.so_far);
            return Examined { name: name.unwrap_or_default().to_owned(), data: None, lack: Some(Lack::Sense), report };
        }
    };
    document::note_flaws(&tape, &mut findings);
    let agreed = !findings.any_error();
    let Some(root) = tape.root() else {
        return Examined { name: String::new(), data: None, lack: Some(Lack::Sense), report: Report::default() };
    };
    let name = name.map_or_else(|| name_inside(root, &mut findings), ToOwned::to_owned);
    let data = event_data(Role::of(&name), root, echo, &mut findings);
    let lack = if agreed { EXCHANGE.needs.lack(root, Form::Object) } else { Some(Lack::Sense) };
    Examined { name, data, lack, report: findings.into_unplaced_report(None, &tape) }
}

fn event_data<'s>(role: Role, root: Value<'_, 's>, echo: &mut Echo, findings: &mut Findings) -> Option<EventData<'s>> {
    if role == Role::Terminal && root.kind() != Type::Object {
        wrong_type(root, "an object", &RUN_124, findings);
        return None;
    }
    // In an event that only the agent knows, `request_id` may mean anything.
    if role != Role::Other {
        echo.check(root, findings);
    }
    Some(match role {
        Role::Started => EventData::Started(read::started(&mut Fields::new(root, findings))),
        Role::Progress => EventData::Progress(read::progress(root)),
        Role::Terminal => EventData::Terminal(Box::new(read::terminal(&mut Fields::new(root, findings)))),
        Role::Other => EventData::Other(Raw::new(root.source())),
    })
}

/// Returns what is wrong with an event before its data is looked at.
pub(super) fn framing(event: &Event) -> impl Iterator<Item = (&'static Clause, &'static str)> + use<> {
    let unterminated = (!event.terminated).then_some((&RUN_8_3, "the last event has no empty line after it"));
    let broken_name = event.name_is_broken.then_some((&ALL_102, "the event's name is not UTF-8"));
    let no_data = event.data.is_none().then_some((&RUN_105, "the event has no data"));
    [unterminated, broken_name, no_data].into_iter().flatten()
}

/// Returns the name that the data gives, for an event without an `event:` line.
fn name_inside(root: Value<'_, '_>, findings: &mut Findings) -> String {
    let inside = ["event", "type"].iter().find_map(|member| root.get(member)?.text());
    let place = Place::Value(root.index());
    let Some(name) = inside else {
        findings.note(&RUN_125, place, "the event has no `event:` line, and its data does not name it");
        return String::new();
    };
    let name = name.decode().into_owned();
    let message = "the event has no `event:` line; its data names it";
    match [STARTED, PROGRESS].iter().chain(TERMINAL_NAMES).find(|known| **known == name) {
        Some(known) => {
            findings.note_with_hint(&RUN_6_5, place, message, format!("Write above the data line: event: {known}."));
        }
        // Other names are the agent's own, and are not repeated in the hint.
        None => findings.note(&RUN_6_5, place, message),
    }
    name
}
