//! What a message of an agent, or its answer to a pushed one, means for an attempt: pure.

use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::json::{Tape, Value};
use crosspoint_contracts::message::About;
use crosspoint_contracts::message::clause::{MSG_17, MSG_17_2};
use crosspoint_contracts::reply::Failed;
use crosspoint_engine::id::JobId;
use crosspoint_exchange::reply::{self, Meaning};
use crosspoint_http::long;
use reqwest::StatusCode;

use crate::link::record::{Note, found, note};
use crate::link::status;

/// Clauses whose breach does no harm.
const RECOMMENDED: [&Clause; 0] = [];

/// The head and body of an answer to a pushed message.
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

/// What an answer to a pushed message says.
pub(super) enum PushVerdict {
    /// The agent has the work.
    Accepted,
    /// The agent says how the work stands.
    Said(Kind),
    /// The agent refuses the work, or broke down over it.
    Refused(Box<Failed>),
}

/// What a message means.
pub(super) struct Read {
    pub(super) meaning: Meaning,
    /// Whether the agent pauses, which stops the clock (MSG-6.3).
    pub(super) is_paused: bool,
    pub(super) notes: Vec<Note>,
}

/// A message that no outcome can be made of.
pub(super) struct Unreadable {
    pub(super) failed: Failed,
    pub(super) notes: Vec<Note>,
}

/// Judges the answer to a pushed message (MSG-17).
pub(super) fn of_answer(answer: &Answered, agent_types: &[Box<str>]) -> (PushVerdict, Vec<Note>) {
    let (status, kind) = (answer.status, About::of(&answer.body).kind.filter(|kind| *kind != Kind::WorkRequest));
    if status.is_success() {
        return match kind {
            Some(kind) => (PushVerdict::Said(kind), Vec::new()),
            None if answer.body.iter().all(u8::is_ascii_whitespace) => (PushVerdict::Accepted, Vec::new()),
            None => (PushVerdict::Accepted, vec![note(&MSG_17, "the answer to a work_request is no message")]),
        };
    }
    let own = kind.and_then(|kind| read(kind, &answer.body, agent_types).ok()).and_then(|read| match read.meaning {
        Meaning::Ended(Err(failed)) => Some((*failed, read.notes)),
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) | Meaning::Ended(Ok(_)) => None,
    });
    let meaning = status::meaning(status);
    match (own, meaning) {
        (Some((own, notes)), Some(meaning)) => (PushVerdict::Refused(Box::new(weighed(answer, own, meaning))), notes),
        // Whatever its status is, the document says how the work ended.
        (Some(_), None) | (None, None) if kind.is_some() => {
            (PushVerdict::Said(kind.unwrap_or(Kind::WorkResult)), Vec::new())
        }
        (_, Some(meaning)) => {
            (PushVerdict::Refused(Box::new(meaning.failed(&answer.body, answer.retry_after))), Vec::new())
        }
        (_, None) => {
            let failed = reply::unreadable("The agent's answer could not be read.", &answer.body);
            (PushVerdict::Refused(Box::new(failed)), vec![note(&MSG_17, "the answer to a work_request is no success")])
        }
    }
}

/// Returns the failure of a refusal with an error in it: what the error says, and that the work has not begun where the
/// status says so.
fn weighed(answer: &Answered, own: Failed, meaning: status::Meaning) -> Failed {
    let failure = if own.failure == Failure::AgentFailed { meaning.failure } else { own.failure };
    let is_refused = answer.status.is_client_error() || meaning.dispatched == Dispatched::No;
    let dispatched = if is_refused { Dispatched::No } else { Dispatched::Yes };
    Failed { failure, dispatched, ..own }.asking_for(answer.retry_after)
}

/// Reads a message about an attempt, from an agent that may have a type that the operator added.
pub(super) fn read(kind: Kind, document: &Bytes, agent_types: &[Box<str>]) -> Result<Read, Box<Unreadable>> {
    match long::look(document.len(), || reply::read_of(kind, document, agent_types)) {
        Ok(reply) => {
            let notes = found(reply.report, &RECOMMENDED);
            Ok(Read { meaning: reply.meaning, is_paused: is_paused(document), notes })
        }
        Err(unreadable) => {
            let failed = reply::unreadable(unreadable.lack.sentence(), document);
            Err(Box::new(Unreadable { failed, notes: found(unreadable.report, &RECOMMENDED) }))
        }
    }
}

fn is_paused(document: &[u8]) -> bool {
    let tape = Tape::scan(document).ok();
    let status = tape.as_ref().and_then(Tape::root).and_then(|root| root.get("payload")?.get("status")?.text());
    status.is_some_and(|status| status == *"paused")
}

/// How a message names the work that it is about (MSG-17.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// It names this job, or nothing.
    Right,
    /// It names this job by one of its ids, and the other is another.
    Renewed,
    /// It names another job.
    Foreign,
}

/// Where a message has the id of its task, the most telling place first. Only errors have a context.
const TASK_IDS: [&str; 3] = ["payload/task_id", "payload/error_context/task_id", "payload/context/task_id"];

/// Returns how a message names the job.
pub(super) fn naming(document: &[u8], job: JobId) -> Naming {
    let Ok(tape) = Tape::scan(document) else { return Naming::Right };
    let Some(root) = tape.root() else { return Naming::Right };
    let id = |path: &&str| Some(path.split('/').try_fold(root, Value::get)?.text()?.decode().into_owned());
    let (task, request) = (TASK_IDS.iter().find_map(id), id(&"request_id"));
    let is_it = |id: &String| id.parse::<uuid::Uuid>().is_ok_and(|id| id == job.uuid());
    match (task.as_ref().map(is_it), request.as_ref().map(is_it)) {
        (Some(true) | None, Some(true) | None) => Naming::Right,
        (Some(true), Some(false)) | (Some(false), Some(true)) => Naming::Renewed,
        (Some(false), Some(false) | None) | (None, Some(false)) => Naming::Foreign,
    }
}

impl Naming {
    /// Returns what is wrong with it.
    pub(super) fn note(self) -> Option<Note> {
        match self {
            Naming::Right => None,
            Naming::Renewed => Some(note(&MSG_17_2, "a reply has another `request_id` or `task_id` than its request")),
            Naming::Foreign => Some(note(&MSG_17_2, "an answer is about another task")),
        }
    }
}
