//! What a message is about, as far as that can be told without judging it.
//!
//! Everything comes to one place: requests of callers, replies and heartbeats of agents, and errors of both. Before a
//! message is read as one of these it must be known which it is, who sent it, and which work it belongs to. Deployed
//! agents renew ids, so the task counts more than the request (MSG-17.2).

use super::heartbeat::is_sign;
use super::version::{NoCommonVersion, SPOKEN, pick};
use crate::json::{Tape, Text, Value};
use crate::kind::Kind;
use crate::nearest::nearest;

/// What a message is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What the message is. `None` if neither its type nor its payload tells.
    pub kind: Option<Kind>,
    /// Whether it is a sign of life of an agent, about no work.
    pub is_heartbeat: bool,
    /// Whether its sender says that the work is paused (MSG-6.3).
    pub is_paused: bool,
    /// The ids that its work may be known by: the task's, and then the request's.
    pub ids: Vec<String>,
    /// The id of its task, as it is written.
    pub task_id: Option<String>,
    /// The id of its request, as it is written.
    pub request_id: Option<String>,
    /// The version that it is written in, if it says so.
    pub version: Option<String>,
    /// The type of its sender, if it says so.
    pub from_agent: Option<String>,
    /// The name of the agent that sent it, which a heartbeat has, and a result of the later dialect.
    pub agent_id: Option<String>,
    /// Optional members that a request lacks, while it has a member of nearly that name, which is not used.
    pub misspelled: Vec<&'static str>,
}

impl About {
    /// Looks at a message, which may be broken.
    pub fn of(message: &[u8]) -> About {
        let scanned = Tape::scan(message);
        let root = match &scanned {
            Ok(tape) => tape.root(),
            Err(broken) => broken.so_far.root(),
        };
        let Some(root) = root else { return About::default() };
        let [kind, payload, request_id, version, from_agent] =
            members(Some(root), ["type", "payload", "request_id", "protocol_version", "from_agent"]);
        let [task_id, context, later_context, status, agent_id] =
            members(payload, ["task_id", "error_context", "context", "status", "agent_id"]);
        let [own, later] = [context, later_context].map(|context| context.and_then(|context| context.get("task_id")));
        // Where the id of the task stands, the most telling first. Only errors have a context.
        let task_ids = [task_id, own, later];
        let text = |value: Option<Value<'_, '_>>| {
            // A text that was cut off in the middle is not what its sender wrote.
            let is_whole = scanned.is_ok() || Tape::scan(value?.source().as_bytes()).is_ok();
            Some(value?.text()?.decode().into_owned()).filter(|_| is_whole)
        };
        let name = |value| text(value).filter(|name| !name.is_empty());
        let kind = kind_of(kind, payload);
        About {
            kind,
            is_heartbeat: kind == Some(Kind::WorkStatus) && payload.is_some_and(is_sign),
            is_paused: status.and_then(Value::text).is_some_and(|status| status == *"paused"),
            ids: task_ids.into_iter().chain([request_id]).filter_map(name).collect(),
            task_id: task_ids.into_iter().find_map(text),
            request_id: text(request_id),
            version: name(version),
            from_agent: name(from_agent),
            agent_id: name(agent_id),
            misspelled: payload.filter(|_| kind == Some(Kind::WorkRequest)).map(misspelled).unwrap_or_default(),
        }
    }

    /// Returns why a message in its version cannot be read here (MSG-10.3). `None` if it can, or names no version.
    pub fn unspoken(&self) -> Option<NoCommonVersion> {
        pick(SPOKEN, &[self.version.as_deref()?]).err()
    }
}

/// The members of a request's payload. Those that it may lack come last.
const REQUEST_MEMBERS: [&str; 4] = ["task_id", "work_type", "parameters", "hints"];

/// Longest name that is looked at as a misspelled one, in bytes.
const MISSPELLED_BYTES_MAX: usize = 32;

/// Returns the optional members that a request lacks, while it has one of nearly that name.
fn misspelled(payload: Value<'_, '_>) -> Vec<&'static str> {
    let is_unknown = |name: &Text<'_>| !REQUEST_MEMBERS.iter().any(|known| *name == **known);
    let is_short = |name: &Text<'_>| name.raw().len() <= MISSPELLED_BYTES_MAX;
    let unknown = payload.members().map(|(name, _)| name).filter(is_unknown).filter(is_short);
    let unknown: Vec<_> = unknown.take(UNKNOWN_MAX).map(Text::decode).collect();
    let is_meant = |member: &&str| unknown.iter().any(|name| nearest(name, &[*member]).is_some());
    let lacks = |member: &&str| payload.get(member).is_none();
    REQUEST_MEMBERS[2..].iter().copied().filter(|_| !unknown.is_empty()).filter(lacks).filter(is_meant).collect()
}

/// Most unknown members that are looked at.
const UNKNOWN_MAX: usize = 16;

/// Returns the members of these names, in one pass.
fn members<'t, 's, const N: usize>(object: Option<Value<'t, 's>>, names: [&str; N]) -> [Option<Value<'t, 's>>; N] {
    let mut found = [None; N];
    for (name, value) in object.into_iter().flat_map(Value::members) {
        if let Some(at) = names.iter().position(|known| name == **known) {
            found[at] = found[at].or(Some(value));
        }
    }
    found
}

/// The members of a payload that only one kind has.
const SIGNS: [(&str, Kind); 6] = [
    ("error_code", Kind::MessageError),
    ("work_type", Kind::WorkRequest),
    ("progress_percent", Kind::WorkStatus),
    ("step", Kind::WorkStatus),
    ("exit_code", Kind::WorkResult),
    ("output", Kind::WorkResult),
];

fn kind_of(named: Option<Value<'_, '_>>, payload: Option<Value<'_, '_>>) -> Option<Kind> {
    let named = named.and_then(Value::text).map(Text::decode);
    let known = match named.as_deref() {
        Some("work_request") => Some(Kind::WorkRequest),
        Some("work_status") => Some(Kind::WorkStatus),
        Some("work_result") => Some(Kind::WorkResult),
        Some("error") => Some(Kind::MessageError),
        Some(_) | None => None,
    };
    known.or_else(|| SIGNS.iter().find(|(name, _)| payload.is_some_and(|it| it.get(name).is_some())).map(|it| it.1))
}
