//! What an exchange in the message contract means.

use std::ops::Range;

use super::chunk::{self, Chunk};
use super::clause::MSG_10_2;
use super::version::{self, SPOKEN};
use crate::content::RawObject;
use crate::document::Document;
use crate::exchange::{
    Asked, Blocks, Exchange, Fact, Holds, Known, Mark, Needs, Part, Pieces, Place, Refusing, Seconds, Unspoken,
    Wording, plain_conflict,
};
use crate::failure::Failure;
use crate::job::{Home, State};
use crate::kind::Kind;
use crate::report::Finding;

/// MSG-6.2: how much longer an attempt may take than its request says, in seconds.
const GRACE_SECONDS: u32 = 30;

/// The type of the side that hands work on.
const ORCHESTRATOR: &str = "orchestrator";

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::WorkRequest,
    response: Kind::WorkResult,
    asked,
    id: "request_id",
    work: "payload/work_type",
    names: &[("/request_id", Home::RequestId), ("/payload/work_type", Home::Work)],
    work_may_name_agent: false,
    ids_are_unique: false,
    input: None,
    input_at: "/payload/parameters",
    // MSG-17.2, MSG-18.2: an answer is about the same task and trace, and goes the other way.
    echoes: &[
        (Home::TaskId, Home::TaskId),
        (Home::Trace, Home::Trace),
        (Home::Source, Home::Target),
        (Home::Target, Home::Source),
    ],
    types: &["from_agent", "to_agent"],
    seconds_default: None,
    seconds: Seconds::EachAttempt { grace_seconds: GRACE_SECONDS },
    // MSG-123: the trace is the same on every attempt, even where the caller gave none.
    request_has: &[Home::Trace],
    needs: Needs {
        // MSG-17: the task counts more than the request, because deployed agents renew ids.
        ids: &["payload/task_id", "payload/error_context/task_id", "payload/context/task_id", "request_id"],
        marks: &[
            Mark::word("type", "error", State::Failed),
            Mark::word("type", "work_status", State::Running),
            Mark::word("payload/status", "success", State::Completed),
            Mark::word("payload/status", "completed", State::Completed),
            Mark::word("payload/status", "failed", State::Failed),
            Mark::word("payload/status", "cancelled", State::Cancelled),
            // Where the type is missing, the payload tells.
            Mark::word("payload/status", "running", State::Running),
            Mark::word("payload/status", "step_completed", State::Running),
            Mark::word("payload/status", "paused", State::Running),
            Mark::there("payload/error_code", State::Failed),
        ],
        outputs: &["payload/output"],
    },
    parts: &[Part { path: &["payload", "output"], holds: Holds::Output, stand_in: "\"\"" }],
    gives_text: true,
    text_limit: None,
    // MSG-9.6.
    pieces: Some(Pieces { split, place, tail: chunk::tail }),
    code: &["payload", "error_code"],
    response_has: &[Known::ReportedAt, Known::Seconds],
    details_have,
    // ALL-5: carried in `x_custom_fields.x_crosspoint` of a paused status.
    question: Place::Home(Home::Question),
    warnings: Place::Carried("warnings"),
    cancelled_is_error: true,
    http_status,
    refusing: Refusing {
        malformed,
        empty_id: None,
        too_long: None,
        too_large: None,
        unknown_work: Wording::at("/payload/work_type"),
        unknown_agent: Wording::at("/x_custom_fields/x_crosspoint/target"),
        not_its_work: Wording::at("/payload/work_type"),
        wrong_type: Wording {
            clause: Some("MSG-18"),
            text: Some((
                "no agent of the type in `to_agent` takes this work",
                "address another type, or GET /api/v1/agents for who takes what",
            )),
            ..Wording::at("/to_agent")
        },
        unspoken: Some(Unspoken { member: "protocol_version", words: unspoken }),
        conflict: plain_conflict,
        names_fields: true,
        carries: true,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::WorkRequest(message) = document else { return None };
    let to = message.to_agent.get();
    Some(Asked {
        id: Some(message.request_id.get()),
        input: message.payload.parameters.map(RawObject::get),
        addressed: Some(to.clone()).filter(|to| to != ORCHESTRATOR),
        recipient: Some(to),
    })
}

/// MSG-4.2: the context of an error has the fields of its row.
fn details_have(failure: Failure) -> &'static [(&'static str, Fact)] {
    match failure {
        Failure::Timeout => &[("attempted_retries", Fact::Retries), ("last_attempt", Fact::LastAttempt)],
        Failure::Unavailable => &[("agent_id", Fact::Agent), ("last_heartbeat", Fact::LastHeartbeat)],
        Failure::Invalid => &[("validation_error", Fact::Message), ("field_name", Fact::Field)],
        Failure::Unauthenticated => &[("agent_id", Fact::Agent), ("token_status", Fact::TokenStatus)],
        Failure::ResourceLimit => {
            &[("limit_name", Fact::LimitName), ("available", Fact::Available), ("required", Fact::Required)]
        }
        Failure::Unsupported => &[("work_type_requested", Fact::Work), ("supported_types", Fact::Works)],
        Failure::AgentFailed
        | Failure::Cancelled
        | Failure::Delegation
        | Failure::Conflict
        | Failure::BrokenContract
        | Failure::Internal => &[],
    }
}

fn split(text: &str, start: usize) -> Option<Blocks<'_>> {
    let blocks = chunk::split_after(text, start)?;
    Some(blocks.map(|(chunk, block)| (chunk.to_string(), block)).collect())
}

fn place(range: Range<usize>) -> String {
    Chunk { start: range.start as u64, end: range.end as u64, total: None }.to_string()
}

/// MSG-10.3: a message in another version is unsupported, whatever else is wrong with it.
fn malformed(finding: &Finding) -> (Failure, Option<&'static str>) {
    let is_version = finding.clause.id == MSG_10_2.id;
    (if is_version { Failure::Unsupported } else { Failure::Invalid }, None)
}

fn unspoken(theirs: Option<&str>) -> String {
    match theirs {
        Some(theirs) => version::NoCommonVersion::of(SPOKEN, &[theirs]).to_string(),
        None => format!("no common protocol version: we speak \"{}\"; the other side gives none as a text", SPOKEN[0]),
    }
}

/// MSG-13, MSG-17: an answer on the same connection is a success of HTTP, however the work went. Only a refused token
/// has a status of its own.
fn http_status(failure: Failure) -> u16 {
    if failure == Failure::Unauthenticated { 401 } else { 200 }
}
