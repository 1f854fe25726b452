//! What an answer of an agent says about a task: decided from status, type and body alone.

use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::exchange::Lack;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::task::clause::{TASK_2_4, TASK_4, TASK_4_5, TASK_112, TASK_121};
use crosspoint_engine::job::Request;
use crosspoint_exchange::reply::{self, Meaning, Reply};
use crosspoint_exchange::words;
use crosspoint_http::call::Media;
use crosspoint_http::long;
use reqwest::StatusCode;

use crate::link::record::{Note, found, note};
use crate::link::status::{self, is_absent};

/// What a caller is told if no more is known of an answer.
pub(super) const UNREADABLE: &str = Lack::Sense.sentence();

/// What the agent was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// To take the task.
    Post,
    /// How the task stands.
    Look,
    /// To take an answer.
    Input,
}

/// A complete answer.
pub(super) struct Whole {
    pub(super) status: StatusCode,
    pub(super) media: Media,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

/// What an answer says.
pub(super) enum TaskAnswer {
    /// How the task stands.
    Stands(Meaning),
    /// The agent does not know the task. It says so in the words of its contract, or something answers that the path is
    /// unknown.
    Unknown { in_its_words: bool, failed: Box<Failed> },
    /// The agent knows the id with other content.
    Conflict,
    /// The agent refuses, and why.
    Refused(Box<Failed>),
    /// Nothing about this task: the agent is in trouble, or busy. This is the failure if nothing more is said.
    Nothing(Box<Failed>),
    /// Something that cannot be read, or is about another task; as it came.
    Broken { why: &'static str, answer: Bytes },
}

/// Clauses whose breach does no harm: what they recommend is missing.
const RECOMMENDED: [&Clause; 2] = [&TASK_2_4, &TASK_112];

/// Reads an answer about the task of a request.
pub(super) fn read(asked: CallKind, answer: &Whole, request: &Request) -> (TaskAnswer, Vec<Note>) {
    let status = answer.status;
    let read = long::look(answer.body.len(), || reply::read(Kind::TaskResponse, &answer.body));
    let (document, lack, mut notes) = match read {
        Ok(reply) => {
            (Some((is_about(&reply, request, status), reply.meaning)), Lack::Sense, found(reply.report, &RECOMMENDED))
        }
        Err(unreadable) => (None, unreadable.lack, found(unreadable.report, &RECOMMENDED)),
    };
    let in_its_words = document.is_some();
    let task_answer = match (asked, document) {
        // A refusal may come before the id was read.
        (CallKind::Post, Some((_, Meaning::Ended(Err(failed))))) if !status.is_success() => {
            posted_in_vain(answer, Some(*failed))
        }
        // A complete document counts more than its status.
        (_, Some((true, meaning))) if status.is_success() || status.is_server_error() => TaskAnswer::Stands(meaning),
        (_, Some((false, _))) if status.is_success() => {
            notes.push(note(&TASK_121, "an answer is about another task"));
            broken("The agent answered about another task.", answer)
        }
        (_, None) if status.is_success() => broken(lack.sentence(), answer),
        (_, _) => {
            // A proxy in front of the agent refuses in words of its own, which breaks no rule of the agent's contract.
            notes.clear();
            if asked == CallKind::Post { posted_in_vain(answer, None) } else { asked_in_vain(answer, in_its_words) }
        }
    };
    if let TaskAnswer::Stands(_) = task_answer {
        notes.extend(beside(answer));
    }
    if status.is_redirection() {
        notes.push(note(&TASK_4_5, "an answer points elsewhere, and that is not followed"));
    }
    (task_answer, notes)
}

fn broken(why: &'static str, answer: &Whole) -> TaskAnswer {
    TaskAnswer::Broken { why, answer: answer.body.clone() }
}

/// Returns what is wrong with status or media type of a document that counts.
fn beside(answer: &Whole) -> Option<Note> {
    if !answer.status.is_success() {
        Some(note(&TASK_4, format!("the task came with HTTP {}", answer.status.as_u16())))
    } else if answer.media != Media::Json {
        Some(note(&TASK_4, "an answer is not marked as application/json"))
    } else {
        None
    }
}

/// Judges a post that created no task, unless the agent broke down over it. `failed` is what the agent says about that
/// in its contract.
fn posted_in_vain(answer: &Whole, failed: Option<Failed>) -> TaskAnswer {
    let (status, retry_after) = (answer.status, answer.retry_after);
    if status == StatusCode::CONFLICT {
        return TaskAnswer::Conflict;
    }
    let Some(meaning) = status::meaning(status) else { return broken(UNREADABLE, answer) };
    match failed {
        // The agent's own words stay, whatever the status makes of them.
        Some(own) if status::is_at_the_gate(status) => {
            let (failure, dispatched) = (meaning.failure, meaning.dispatched);
            TaskAnswer::Refused(Box::new(Failed { failure, dispatched, ..own }.asking_for(retry_after)))
        }
        Some(own) if status.is_client_error() => {
            TaskAnswer::Refused(Box::new(Failed { dispatched: Dispatched::No, ..own }))
        }
        Some(own) => TaskAnswer::Stands(Meaning::Ended(Err(Box::new(own)))),
        // The agent may have the task all the same.
        None if meaning.dispatched == Dispatched::Yes => TaskAnswer::Nothing(without_document(answer, meaning)),
        None => TaskAnswer::Refused(without_document(answer, meaning)),
    }
}

/// Judges an answer about a task that is with the agent, as far as is known: the answer changes little.
fn asked_in_vain(answer: &Whole, in_its_words: bool) -> TaskAnswer {
    let status = answer.status;
    if status == StatusCode::GONE || is_absent(status) {
        let failed = forgotten();
        // Words that are no document are for the caller (ALL-11).
        let failed = if in_its_words { failed } else { words::beside(failed, &answer.body) };
        return TaskAnswer::Unknown { in_its_words, failed: Box::new(failed) };
    }
    match status::meaning(status) {
        Some(meaning) if matches!(meaning.failure, Failure::Unauthenticated | Failure::Invalid) => {
            TaskAnswer::Refused(without_document(answer, meaning))
        }
        Some(meaning) => TaskAnswer::Nothing(without_document(answer, meaning)),
        None => broken(UNREADABLE, answer),
    }
}

/// Returns what a status says where there is no document, with whatever came in its place.
fn without_document(answer: &Whole, meaning: status::Meaning) -> Box<Failed> {
    Box::new(meaning.failed(&answer.body, answer.retry_after))
}

fn forgotten() -> Failed {
    Failed::said(Failure::Unavailable, Dispatched::Yes, "The agent does not know the task that it was given.")
}

/// Whether an answer is about this task. An agent that hands back what was carried gives the caller's own id with it.
/// One that gives no id answers what it was asked (ALL-11).
fn is_about(reply: &Reply, request: &Request, status: StatusCode) -> bool {
    // In front of an agent that is in trouble, a proxy says in like words that the request failed, not the task.
    let without = status.is_success();
    reply.request_id.as_ref().map_or(without, |id| *id == request.id.to_string() || **id == *request.request_id)
}
