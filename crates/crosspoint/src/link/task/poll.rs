//! What an answer of an agent says about a task: decided from status, type and body alone.

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::task::clause::{TASK_2_4, TASK_4, TASK_4_5, TASK_112, TASK_121};
use crosspoint_engine::job::Request;
use crosspoint_exchange::reply::{self, Meaning, Reply};
use crosspoint_http::call::Media;
use crosspoint_http::long;
use reqwest::StatusCode;

use crate::link::record::{Note, found, note};
use crate::link::status::{self, is_absent};

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
    pub(super) body: Bytes,
}

/// What an answer says.
pub(super) enum TaskAnswer {
    /// How the task stands.
    Stands(Meaning),
    /// The agent does not know the task. It says so in the words of its contract, or something answers that the path is
    /// unknown.
    Unknown { in_its_words: bool },
    /// The agent knows the id with other content.
    Conflict,
    /// The agent refuses, and why.
    Refused(Box<Failed>),
    /// Nothing about this task: the agent is in trouble, or busy. This is the failure if nothing more is said.
    Nothing(Failure),
    /// Something that cannot be read, or is about another task; as it came.
    Broken(Bytes),
}

/// Clauses whose breach does no harm: what they recommend is missing.
const RECOMMENDED: [&Clause; 2] = [&TASK_2_4, &TASK_112];

/// Reads an answer about the task of a request.
pub(super) fn read(asked: CallKind, answer: &Whole, request: &Request) -> (TaskAnswer, Vec<Note>) {
    let status = answer.status;
    let (document, mut notes) = match long::look(answer.body.len(), || reply::read(Kind::TaskResponse, &answer.body)) {
        Ok(reply) => (Some((is_about(&reply, request), reply.meaning)), found(reply.report, &RECOMMENDED)),
        Err(unreadable) => (None, found(unreadable.report, &RECOMMENDED)),
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
            TaskAnswer::Broken(answer.body.clone())
        }
        (_, None) if status.is_success() => TaskAnswer::Broken(answer.body.clone()),
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
    let status = answer.status;
    let meaning = status::meaning(status);
    let own = |otherwise: Failure| failed.as_ref().map_or(otherwise, |failed| failed.failure);
    let not_begun = |failure: Failure, message: &str| Failed::said(failure, Dispatched::No, message);
    let refused = match meaning {
        _ if status == StatusCode::CONFLICT => return TaskAnswer::Conflict,
        Some(meaning) if meaning.dispatched == Dispatched::No => meaning.failed(),
        Some(_) | None if is_absent(status) => {
            not_begun(own(Failure::Unsupported), "The agent takes no tasks at its address.")
        }
        Some(_) | None if status.is_client_error() => {
            let message = format!("The agent refused the request with HTTP {}.", status.as_u16());
            not_begun(own(Failure::Invalid), &message)
        }
        Some(_) | None if status.is_server_error() => {
            return match failed {
                Some(failed) => TaskAnswer::Stands(Meaning::Ended(Err(Box::new(failed)))),
                None => TaskAnswer::Nothing(trouble(status)),
            };
        }
        Some(_) | None => return TaskAnswer::Broken(answer.body.clone()),
    };
    // The agent's own words stay, whatever the status makes of them.
    let (failure, dispatched) = (refused.failure, refused.dispatched);
    TaskAnswer::Refused(Box::new(failed.map_or(refused, |own| Failed { failure, dispatched, ..own })))
}

/// Judges an answer about a task that is with the agent, as far as is known: the answer changes little.
fn asked_in_vain(answer: &Whole, in_its_words: bool) -> TaskAnswer {
    match answer.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let message = "The agent does not accept our token any more.";
            TaskAnswer::Refused(Box::new(Failed::said(Failure::Unauthenticated, Dispatched::Yes, message)))
        }
        StatusCode::GONE => TaskAnswer::Unknown { in_its_words },
        status if is_absent(status) => TaskAnswer::Unknown { in_its_words },
        status if status.is_server_error() || status::meaning(status).is_some() => TaskAnswer::Nothing(trouble(status)),
        _ => TaskAnswer::Broken(answer.body.clone()),
    }
}

/// The failure for an answer that says nothing about the task.
fn trouble(status: StatusCode) -> Failure {
    status::meaning(status).map_or(Failure::BrokenContract, |meaning| meaning.failure)
}

/// Whether an answer is about this task. An agent that hands back what was carried gives the caller's own id with it.
/// One that gives no id answers what it was asked (ALL-11).
fn is_about(reply: &Reply, request: &Request) -> bool {
    reply.request_id.as_ref().is_none_or(|id| *id == request.id.to_string() || **id == *request.request_id)
}
