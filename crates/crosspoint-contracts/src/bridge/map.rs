//! The two files as shapes.

use super::failure;
use super::wire::Status;
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Holds, Home, State};
use crate::json::Value;
use crate::kind::{Contract, Kind};
use crate::map::{
    Codec, Codes, Fill, In, Made, Map, Member, Shape, block, code, fixed, home, made, output_text, own, prompt,
    prompt_context,
};

pub(crate) static MAP: Map =
    Map { key: &[Home::RequestId], shapes: &[&REQUEST, &SUCCESS, &ERROR, &TIMEOUT, &ERROR_TIMEOUT], reading, writing };

const VERSION: Member = fixed("version", "\"1.0\"");
const REQUEST_ID: Member = home("request_id", Home::RequestId, Codec::Same).required(Fill::Id);

static REQUEST: Shape = Shape {
    kind: Kind::BridgeRequest,
    when: "",
    state: None,
    members: &[
        REQUEST_ID,
        VERSION,
        home("phase", Home::Phase, Codec::Same),
        home("phase_name", Home::Stage, Codec::Same),
        home("agent_name", Home::Work, Codec::Same).required(Fill::Raw("\"work\"")),
        prompt("prompt"),
        home("timeout_seconds", Home::SecondsMax, Codec::Amount),
        home("created_at", Home::CreatedAt, Codec::WithOffset),
        home("model", Home::Model, Codec::Same),
        prompt_context("context"),
    ],
    carrier: Some("context"),
    closed: false,
    loose: false,
};

const CREATED_AT: Member = home("created_at", Home::ReportedAt, Codec::WithOffset).required(Fill::Now);
const DURATION: Member = home("duration_seconds", Home::Duration, Codec::Amount).required(Fill::Raw("0.0"));
const METADATA: Member = block("metadata", &[]).required(Fill::Raw("{}"));
const ERROR_MESSAGE: Member =
    home("error_message", Home::Message, Codec::Named("\"The work failed.\"")).required(Fill::Sentence);

/// The shape of a response. Responses differ in the status and the three members that go with it.
macro_rules! response {
    ($when:literal, $state:expr, [$status:expr, $response:expr, $message:expr, $type:expr]) => {
        Shape {
            kind: Kind::BridgeResponse,
            when: $when,
            state: $state,
            members: &[REQUEST_ID, VERSION, $status, $response, $message, $type, CREATED_AT, DURATION, METADATA],
            carrier: Some("metadata"),
            closed: true,
            loose: false,
        }
    };
}

/// A failure has no response. What an agent gave all the same is kept, and carried to callers (ALL-11).
const NO_RESPONSE: Member =
    made("response", Made { write: |_| Some(Json::new("null")), read: read_stray, homes: &[Home::Text] });

fn read_stray<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if !value.is_null() {
        found.output_text(value);
    }
}

static SUCCESS: Shape = response!(
    "success",
    Some(State::Completed),
    [
        fixed("status", "\"success\""),
        output_text("response"),
        fixed("error_message", "null"),
        fixed("error_type", "null")
    ]
);

static ERROR_CODES: Codes =
    Codes { write: |failure| failure::write(failure).1, read: failure::read, read_beside: None };

static ERROR: Shape = response!(
    "error",
    None,
    [fixed("status", "\"error\""), NO_RESPONSE, ERROR_MESSAGE, code("error_type", &ERROR_CODES)]
);

/// With the status timeout, every error type means a timeout.
static TIMEOUT_CODES: Codes = Codes { write: |_| "timeout", read: |_| Failure::Timeout, read_beside: None };

static TIMEOUT: Shape = response!(
    "timeout",
    None,
    [fixed("status", "\"timeout\""), NO_RESPONSE, ERROR_MESSAGE, code("error_type", &TIMEOUT_CODES)]
);

/// An error of the type timeout, as the contract's document prints it. It keeps its status.
static ERROR_TIMEOUT: Shape = response!(
    "error of type timeout",
    None,
    [own("status", Holds::Word(&["error"])), NO_RESPONSE, ERROR_MESSAGE, code("error_type", &TIMEOUT_CODES)]
);

fn reading(kind: Kind, root: Value<'_, '_>) -> Option<&'static Shape> {
    if kind == Kind::BridgeRequest {
        return Some(&REQUEST);
    }
    let is = |member: &str, word: &str| root.get(member).and_then(Value::text).is_some_and(|text| text == *word);
    Some(if is("status", Status::Success.word()) {
        &SUCCESS
    } else if is("status", Status::Timeout.word()) {
        &TIMEOUT
    } else if is("error_type", "timeout") {
        &ERROR_TIMEOUT
    } else {
        &ERROR
    })
}

fn writing(job: &Canonical<'_>) -> Option<&'static Shape> {
    match job.state() {
        None => Some(&REQUEST),
        Some(State::Completed) => Some(&SUCCESS),
        Some(State::Failed) if job.failure() == Some(Failure::Timeout) => {
            let printed =
                job.own_at(Contract::Bridge, "/status").is_some_and(|(_, own)| own.value.get() == "\"error\"");
            Some(if printed && job.get(Home::Code).is_none() { &ERROR_TIMEOUT } else { &TIMEOUT })
        }
        Some(State::Failed | State::Cancelled) => Some(&ERROR),
        // The requester sleeps until there is an answer, so there is no document for work that has not ended.
        Some(State::Queued | State::Running | State::Waiting) => None,
    }
}
