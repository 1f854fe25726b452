//! Request and response as shapes.

use super::failure;
use crate::artifact::{Form, Names};
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Holds, Home, State};
use crate::json::Value;
use crate::kind::{Contract, Kind};
use crate::map::{
    Codec, Codes, Fill, In, Made, Map, Member, Out, Shape, artifacts, block, code, fixed, home, input, loose, made,
    output_object, own,
};

pub(crate) static MAP: Map =
    Map { key: &[Home::RequestId], shapes: &[&REQUEST, &COMPLETED, &FAILED, &CANCELLED, &UNDERWAY], reading, writing };

const ID: Member = home("id", Home::RequestId, Codec::Named("\"unnamed\"")).required(Fill::Id);

static REQUEST: Shape = Shape {
    kind: Kind::TaskRequest,
    when: "",
    state: None,
    members: &[
        ID,
        home("type", Home::Work, Codec::Named("\"work\"")).required(Fill::Raw("\"work\"")),
        input("payload").required(Fill::Raw("{}")),
        block(
            "routing",
            &[
                home("source", Home::Source, Codec::Same),
                home("target", Home::Target, Codec::Same),
                home("delegationChain", Home::DelegationChain, Codec::Same),
            ],
        ),
        block(
            "observability",
            &[
                home("traceId", Home::Trace, Codec::Same),
                home("spanId", Home::Span, Codec::Same),
                home("baggage", Home::Baggage, Codec::Same),
            ],
        ),
        home("retryPolicy", Home::RetryPolicy, Codec::Same),
        block(
            "context",
            &[
                home("conversationId", Home::Conversation, Codec::Same),
                home("parentTaskId", Home::Parent, Codec::Same),
                home("user", Home::User, Codec::Same),
                home("timestamp", Home::CreatedAt, Codec::Same),
                home("priority", Home::Priority, Codec::Same),
            ],
        ),
    ],
    carrier: Some("context"),
    closed: false,
    loose: false,
};

const ARTIFACTS: Member = artifacts(
    "artifacts",
    Form::Objects(Names {
        contract: Contract::Task,
        name: "name",
        media_type: Some("type"),
        operation: None,
        fits: None,
    }),
);

/// A finished task says when it finished; the contract recommends metadata.
const METADATA: Member = block(
    "metadata",
    &[
        home("startedAt", Home::StartedAt, Codec::Same),
        home("completedAt", Home::ReportedAt, Codec::Same).recommended(Fill::Now),
        home("duration_ms", Home::Duration, Codec::Milliseconds),
        home("agent", Home::Agent, Codec::Same),
        home("retryCount", Home::Retries, Codec::Same),
    ],
);

const QUESTION: Member = home("inputRequest", Home::Question, Codec::Same);

static COMPLETED: Shape = Shape {
    kind: Kind::TaskResponse,
    when: "completed",
    state: Some(State::Completed),
    members: &[ID, fixed("status", "\"completed\""), output_object("result"), ARTIFACTS, QUESTION, METADATA],
    carrier: Some("metadata"),
    closed: false,
    loose: false,
};

static CODES: Codes = Codes {
    write: |failure| failure::write(failure).0,
    read: failure::read,
    read_beside: Some(|code, job| {
        let own = job.get(Home::Recoverable).map(Json::get);
        failure::read_error(code, own.unwrap_or(recoverable(job)) == "true")
    }),
};

static FAILED: Shape = Shape {
    when: "failed",
    state: None,
    members: &[
        ID,
        fixed("status", "\"failed\""),
        block(
            "error",
            &[
                code("code", &CODES),
                home("message", Home::Message, Codec::Same).required(Fill::Sentence),
                home("details", Home::Details, Codec::Same).recommended(Fill::Raw("{}")),
                made(
                    "recoverable",
                    Made { write: write_recoverable, read: read_recoverable, homes: &[Home::Recoverable] },
                ),
            ],
        )
        .or_text(Home::Message),
        // What came of it before it failed. A failed task has no place for it, so it is carried (ALL-11).
        loose("result", read_half_result, &[Home::Outputs]),
        ARTIFACTS,
        QUESTION,
        METADATA,
    ],
    ..COMPLETED
};

/// Reads what came of a task before it failed.
fn read_half_result<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    found.output_object(value);
}

/// Returns the value that follows from the failure, for use where the agent did not say something else.
fn recoverable(job: &Canonical<'_>) -> &'static str {
    let failure = job.failure().unwrap_or(Failure::AgentFailed);
    if failure::write(failure).1 { "true" } else { "false" }
}

fn write_recoverable(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    out.take(Home::Recoverable);
    let own = out.job().get(Home::Recoverable).cloned().map(Json::into_owned);
    own.or_else(|| Some(Json::new(recoverable(out.job()))))
}

/// Reads `recoverable`, which tells two failures apart that share a code.
fn read_recoverable<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if value.boolean().is_none() {
        return found.keep(value);
    }
    let bare = found.job.get(Home::Code).is_none() && found.job.failure() == Some(Failure::AgentFailed);
    // For a code that stands in for another, the carried failure counts.
    if bare && !found.has_stand_in("/error/code") {
        let code = failure::write(Failure::AgentFailed).0;
        found.job.set_failure(failure::read_error(code, value.boolean() == Some(true)));
    }
    found.job.clear(Home::Recoverable);
    if recoverable(&found.job) != value.source() {
        found.job.set(Home::Recoverable, Json::new(value.source()));
    }
}

static CANCELLED: Shape = Shape {
    when: "cancelled",
    state: Some(State::Cancelled),
    members: &[ID, fixed("status", "\"cancelled\""), ARTIFACTS, QUESTION, METADATA],
    ..COMPLETED
};

static UNDERWAY: Shape = Shape {
    when: "not ended",
    state: Some(State::Running),
    members: &[
        ID,
        made("status", Made { write: write_status, read: read_status, homes: &[Home::State] }),
        ARTIFACTS,
        QUESTION,
        block(
            "metadata",
            &[
                home("startedAt", Home::StartedAt, Codec::Same),
                own("completedAt", Holds::Time),
                home("duration_ms", Home::Duration, Codec::Milliseconds),
                home("agent", Home::Agent, Codec::Same),
                home("retryCount", Home::Retries, Codec::Same),
            ],
        ),
    ],
    ..COMPLETED
};

fn write_status(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    out.take(Home::State);
    Some(Json::string(match out.job().state()? {
        State::Queued => "pending",
        State::Waiting => "input_required",
        State::Running | State::Completed | State::Failed | State::Cancelled => "in_progress",
    }))
}

fn read_status(found: &mut In<'_>, value: Value<'_, '_>) {
    let status = value.text().map(|text| text.decode().into_owned()).unwrap_or_default();
    found.job.set_state(match &*status {
        "pending" => State::Queued,
        "input_required" => State::Waiting,
        _ => State::Running,
    });
}

fn reading(kind: Kind, root: Value<'_, '_>) -> Option<&'static Shape> {
    if kind == Kind::TaskRequest {
        return Some(&REQUEST);
    }
    let status = root.get("status")?.text()?.decode();
    Some(match &*status {
        "completed" => &COMPLETED,
        "failed" => &FAILED,
        "cancelled" => &CANCELLED,
        _ => &UNDERWAY,
    })
}

fn writing(job: &Canonical<'_>) -> Option<&'static Shape> {
    Some(match job.state() {
        None => &REQUEST,
        Some(State::Completed) => &COMPLETED,
        Some(State::Failed) => &FAILED,
        Some(State::Cancelled) => &CANCELLED,
        Some(State::Queued | State::Running | State::Waiting) => &UNDERWAY,
    })
}
