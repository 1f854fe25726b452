//! What a message of an agent, or its answer to a pushed one, means for an attempt: pure.

use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::message::About;
use crosspoint_contracts::message::clause::{MSG_17, MSG_17_2};
use crosspoint_contracts::reply::{Failed, Progress};
use crosspoint_contracts::time::Time;
use crosspoint_contracts::{Kind, Report};
use crosspoint_engine::id::JobId;
use crosspoint_exchange::reply::{self, Meaning};
use crosspoint_http::long;
use reqwest::StatusCode;

use crate::link::record::{Note, found, note};
use crate::link::status;

/// Clauses whose breach does no harm.
const RECOMMENDED: [&Clause; 0] = [];

/// Where the question of a pause stands.
const QUESTION: [&str; 3] = ["x_custom_fields", "x_crosspoint", "question"];

/// The head and body of an answer to a pushed message.
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

/// What an answer to a pushed message is judged to be.
pub(super) struct Judged {
    pub(super) verdict: PushVerdict,
    /// What the answer is about, so that it need not be looked at again.
    pub(super) about: About,
    pub(super) notes: Vec<Note>,
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
    /// How far the work is that needs a person.
    pub(super) progress: Option<Progress>,
    pub(super) notes: Vec<Note>,
}

/// A message that no outcome can be made of.
pub(super) struct Unreadable {
    pub(super) failed: Failed,
    pub(super) notes: Vec<Note>,
    /// What is wrong with it, for its author.
    pub(super) report: Report,
}

/// Judges the answer to a pushed message (MSG-17). `types` are the types of agents that the operator added.
pub(super) fn of_answer(answer: &Answered, types: &[Box<str>]) -> Judged {
    let about = long::look(answer.body.len(), || About::of(&answer.body));
    let (verdict, notes) = judged(answer, about.kind.filter(|kind| *kind != Kind::WorkRequest), types);
    Judged { verdict, about, notes }
}

fn judged(answer: &Answered, kind: Option<Kind>, types: &[Box<str>]) -> (PushVerdict, Vec<Note>) {
    let status = answer.status;
    if status.is_success() {
        return match kind {
            Some(kind) => (PushVerdict::Said(kind), Vec::new()),
            None if answer.body.iter().all(u8::is_ascii_whitespace) => (PushVerdict::Accepted, Vec::new()),
            None => (PushVerdict::Accepted, vec![note(&MSG_17, "the answer to a work_request is no message")]),
        };
    }
    let own = kind.and_then(|kind| read(kind, &answer.body, types).ok()).and_then(|read| match read.meaning {
        Meaning::Ended(Err(failed)) => Some((*failed, read.notes)),
        Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) | Meaning::Ended(Ok(_)) => None,
    });
    let meaning = status::meaning(status);
    match (own, meaning) {
        (Some((own, notes)), Some(meaning)) => (PushVerdict::Refused(Box::new(weighed(answer, own, &meaning))), notes),
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
fn weighed(answer: &Answered, own: Failed, meaning: &status::Meaning) -> Failed {
    let failure = if own.failure == Failure::AgentFailed { meaning.failure } else { own.failure };
    let is_refused = answer.status.is_client_error() || meaning.dispatched == Dispatched::No;
    let dispatched = if is_refused { Dispatched::No } else { Dispatched::Yes };
    Failed { failure, dispatched, ..own }.asking_for(answer.retry_after)
}

/// Reads a message about an attempt. `types` are the types of agents that the operator added.
pub(super) fn read(kind: Kind, document: &Bytes, types: &[Box<str>]) -> Result<Read, Box<Unreadable>> {
    match long::look(document.len(), || reply::read_of(kind, document, types)) {
        Ok(reply) => {
            let notes = found(reply.report, &RECOMMENDED);
            Ok(Read { meaning: reply.meaning, progress: reply.progress, notes })
        }
        Err(unreadable) => {
            let failed = reply::unreadable(unreadable.lack.sentence(), document);
            let report = unreadable.report;
            Err(Box::new(Unreadable { failed, notes: found(report.clone(), &RECOMMENDED), report }))
        }
    }
}

/// Returns what a pause means: it asks a person if it has a question (ALL-5), also where the agent does not say what
/// kind of document the members beside the question come from.
pub(super) fn paused(read: Read, document: &Bytes) -> Read {
    let Read { meaning: Meaning::Running(progress), notes, .. } = read else { return read };
    let question = || {
        let tape = Tape::scan(document).ok()?;
        let question = QUESTION.iter().try_fold(tape.root()?, |value, name| value.get(name))?;
        reply::question_of(document, &Json::new(question.source()))
    };
    match question() {
        Some(question) => {
            let progress = Some(Progress { document: None, ..progress });
            Read { meaning: Meaning::Waiting(Some(question)), progress, notes }
        }
        None => Read { meaning: Meaning::Running(progress), progress: None, notes },
    }
}

/// Returns the failure of work whose agent has stopped saying anything at all (MSG-12.3). It says when the agent last
/// sent a heartbeat, as its contract wants it (MSG-4.2).
pub(super) fn silent(last_heartbeat: Option<Time>) -> Failed {
    let message = "The agent has sent no heartbeat for as long as it may.";
    let details = Body::of(&serde_json::json!({ "last_heartbeat": last_heartbeat.map(|at| at.to_string()) }));
    Failed { details: Some(details), ..Failed::said(Failure::Unavailable, Dispatched::Yes, message) }
}

/// Returns the failure of work whose agent answered the request with something that is no message (MSG-17), and then
/// was silent. The caller need not look for the cause elsewhere.
pub(super) fn misanswered(silence: Duration) -> Failed {
    let message = format!(
        "The agent answered the request with a body that is no message, and gave no sign of life for {} s \
         (silence_seconds).",
        silence.as_secs_f64()
    );
    Failed::said(Failure::Timeout, Dispatched::Yes, &message)
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

/// Returns how a message names the job.
pub(super) fn naming(about: &About, job: JobId) -> Naming {
    let is_it = |id: &String| id.parse::<uuid::Uuid>().is_ok_and(|id| id == job.uuid());
    match (about.task_id.as_ref().map(is_it), about.request_id.as_ref().map(is_it)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_gone_says_when_its_last_heartbeat_was() {
        let details = |at| silent(at).details.expect("there are some").get().to_owned();
        assert_eq!(details(Some(Time(1_000_000))), r#"{"last_heartbeat":"1970-01-01T00:00:01.000Z"}"#);
        assert_eq!(details(None), r#"{"last_heartbeat":null}"#);
    }

    /// MSG-1.4: the operator may add types, and an agent of such a type breaks no rule by naming it.
    #[test]
    fn an_agent_of_a_type_that_the_operator_added_breaks_no_rule() {
        let id = "550e8400-e29b-41d4-a716-446655440003";
        let body = Bytes::from(format!(
            r#"{{"protocol_version":"1.0","message_id":"{id}","from_agent":"painter","to_agent":"orchestrator","timestamp":"2026-01-19T04:21:04Z","trace_id":"{id}","request_id":"{id}","type":"work_result","payload":{{"task_id":"{id}","status":"success","exit_code":0,"output":"","resources_used":{{"duration_seconds":0,"gpu_vram_mb":0,"cpu_time_ms":0}}}}}}"#
        ));
        for (types, notes) in [(vec!["painter".into()], 0), (Vec::new(), 1)] {
            let read = read(Kind::WorkResult, &body, &types).unwrap_or_else(|_| panic!("it can be read"));
            assert_eq!(read.notes.len(), notes, "with {types:?}");
        }
    }
}
