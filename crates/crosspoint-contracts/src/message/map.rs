//! The four messages as shapes.

mod code;
mod envelope;

pub(super) use code::error_code;
use code::{own_code, read_code, write_code};
use envelope::{BY_AGENT, BY_ORCHESTRATOR, TO_AGENT, TO_ORCHESTRATOR, envelope, read_priority};

use super::{context, failure};
use crate::content::{Json, Text};
use crate::job::{Canonical, Holds, Home, State};
use crate::json::Value;
use crate::kind::Kind;
use crate::map::{
    Codec, Fill, In, Made, Map, Member, Out, Shape, block, fixed, home, input, loose, made, output_text, own,
};

pub(crate) static MAP: Map = Map {
    key: &[Home::RequestId],
    shapes: &[
        &WORK_REQUEST,
        &WORK_STATUS,
        &SUCCESS,
        &FAILED,
        &ERROR,
        &LATER_SUCCESS,
        &LATER_FAILED,
        &LATER_CANCELLED,
        &LATER_ERROR,
    ],
    reading,
    writing,
};

/// MSG-16: what we originate has these objects, even if they are empty.
const EMPTY: Fill = Fill::Raw("{}");

const TASK_ID: Member = home("task_id", Home::TaskId, Codec::Uuid).required(Fill::RequestUuid);

static WORK_REQUEST: Shape = Shape {
    kind: Kind::WorkRequest,
    when: "",
    state: None,
    members: envelope!(
        "\"work_request\"",
        BY_ORCHESTRATOR,
        TO_AGENT,
        home("timestamp", Home::CreatedAt, Codec::Sent),
        &[
            TASK_ID,
            home("work_type", Home::Work, Codec::Named("\"work\"")).required(Fill::Raw("\"work\"")),
            input("parameters").recommended(EMPTY),
            block(
                "hints",
                &[
                    home("max_duration_seconds", Home::SecondsMax, Codec::Amount),
                    home("max_memory_mb", Home::MemoryMax, Codec::Amount),
                ],
            )
            .recommended(EMPTY),
        ],
    ),
    carrier: Some("x_custom_fields"),
    closed: false,
    loose: false,
};

const REPORTED_AT: Member = home("timestamp", Home::ReportedAt, Codec::Sent);

static WORK_STATUS: Shape = Shape {
    kind: Kind::WorkStatus,
    when: "",
    state: Some(State::Running),
    members: envelope!(
        "\"work_status\"",
        BY_AGENT,
        TO_ORCHESTRATOR,
        REPORTED_AT,
        &[
            TASK_ID,
            made("status", Made { write: write_status, read: read_status, homes: &[Home::State] }),
            home("progress_percent", Home::Percent, Codec::WholePercent).required(Fill::Raw("0")),
            block(
                "step",
                &[
                    home("number", Home::StepNumber, Codec::Same).required(Fill::Raw("0")),
                    home("name", Home::Step, Codec::Same).required(Fill::Raw("\"working\"")),
                    home("output", Home::StepOutput, Codec::Same),
                    home("output_chunk", Home::OutputChunk, Codec::Same),
                ],
            )
            .required(Fill::Raw("{}")),
        ]
    ),
    ..WORK_REQUEST
};

/// `paused` means waiting with a question (ALL-5). A pause without a question concerns only the agent.
fn write_status(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    let job = out.job();
    let status = match job.state()? {
        State::Waiting => "paused",
        State::Running if out.own_is("\"step_completed\"") => "step_completed",
        State::Running if out.own_is("\"paused\"") => "paused",
        State::Queued | State::Running | State::Completed | State::Failed | State::Cancelled => "running",
    };
    let asks = job.get(Home::Question).is_some();
    match job.state()? {
        State::Waiting if asks => out.take(Home::State),
        State::Running => {
            out.own_here();
        }
        // The status stands in for the state, which is carried.
        State::Queued | State::Waiting | State::Completed | State::Failed | State::Cancelled => {
            out.stands_in(Json::string(status));
        }
    }
    Some(Json::string(status))
}

fn read_status<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if found.is_stand_in(value) {
        return;
    }
    let is = |word: &str| value.text().is_some_and(|text| text == *word);
    if is("paused") && found.job.get(Home::Question).is_some() {
        return found.job.set_state(State::Waiting);
    }
    found.job.set_state(State::Running);
    if !is("running") {
        found.keep(value);
    }
}

const RESOURCES_USED: Member = block(
    "resources_used",
    &[
        home("duration_seconds", Home::Duration, Codec::WholeSeconds).required(Fill::Raw("0")),
        home("gpu_vram_mb", Home::GpuMemory, Codec::Same),
        home("cpu_time_ms", Home::CpuTime, Codec::Same),
    ],
)
.required(Fill::Raw("{}"));

/// Members of the later dialect.
const DURATION_MS: Member = loose("duration_ms", read_duration_ms, &[Home::Duration]);
const AGENT_ID: Member = loose("agent_id", read_agent_id, &[Home::Agent]);
const ERROR_MESSAGE: Member = loose("error_message", read_error_message, &[Home::Message]);

fn read_duration_ms<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if found.job.get(Home::Duration).is_some() || value.source().parse::<i64>().is_err() {
        return found.keep(value);
    }
    found.job.set(Home::Duration, Json::new(Codec::Milliseconds.read(value.source()).into_owned()));
}

fn read_agent_id<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    match value.text() {
        Some(_) => found.job.set(Home::Agent, Json::new(value.source())),
        None => found.keep(value),
    }
}

/// Where a failed result has a message for its failure, its output is only what was printed.
fn read_error_message<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    let failed = found.job.state() != Some(State::Completed);
    if value.text().is_none_or(Text::is_empty) || !failed {
        return found.keep(value);
    }
    if let Some(output) = found.job.get(Home::Message).cloned() {
        found.job.set(Home::Text, output);
    }
    found.job.set(Home::Message, Json::new(value.source()));
}

/// The shape of a result around a payload.
macro_rules! result {
    ($when:literal, $loose:literal, $state:expr, $payload:expr) => {
        Shape {
            loose: $loose,
            kind: Kind::WorkResult,
            when: $when,
            state: Some($state),
            members: envelope!("\"work_result\"", BY_AGENT, TO_ORCHESTRATOR, REPORTED_AT, $payload),
            ..WORK_REQUEST
        }
    };
}

const SUCCESS_STATUS: Member = fixed("status", "\"success\"");
const FAILED_STATUS: Member = fixed("status", "\"failed\"");
const NO_EXIT_CODE: Member = fixed("exit_code", "0");
const EXIT_CODE: Member = home("exit_code", Home::ExitCode, Codec::Same).follows(|_| Json::new("1"));
/// The output of a failed task is the only explanation of its failure.
const FAILED_OUTPUT: Member = home("output", Home::Message, Codec::Same).required(Fill::Sentence);

static SUCCESS: Shape = result!(
    "success",
    false,
    State::Completed,
    &[TASK_ID, SUCCESS_STATUS, NO_EXIT_CODE, output_text("output"), RESOURCES_USED]
);

static FAILED: Shape =
    result!("failed", false, State::Failed, &[TASK_ID, FAILED_STATUS, EXIT_CODE, FAILED_OUTPUT, RESOURCES_USED]);

/// The later dialect (MSG-16) is read and not written.
static LATER_SUCCESS: Shape = result!(
    "success, later dialect",
    true,
    State::Completed,
    &[
        TASK_ID,
        SUCCESS_STATUS,
        NO_EXIT_CODE,
        output_text("output"),
        RESOURCES_USED,
        DURATION_MS,
        AGENT_ID,
        ERROR_MESSAGE,
    ]
);

static LATER_FAILED: Shape = result!(
    "failed, later dialect",
    true,
    State::Failed,
    &[TASK_ID, FAILED_STATUS, EXIT_CODE, FAILED_OUTPUT, RESOURCES_USED, DURATION_MS, AGENT_ID, ERROR_MESSAGE,]
);

/// In v1.0 a cancelled job is an error.
static LATER_CANCELLED: Shape = result!(
    "cancelled, later dialect",
    true,
    State::Cancelled,
    &[
        TASK_ID,
        fixed("status", "\"cancelled\""),
        home("output", Home::Text, Codec::Same),
        RESOURCES_USED,
        DURATION_MS,
        AGENT_ID,
        ERROR_MESSAGE,
    ]
);

const ERROR_CODE: Member =
    made("error_code", Made { write: write_code, read: read_code, homes: &[Home::Failure, Home::Code] });
const ERROR_TEXT: Member = home("error_message", Home::Message, Codec::Same).required(Fill::Sentence);

static ERROR: Shape = Shape {
    kind: Kind::MessageError,
    when: "",
    state: None,
    members: envelope!(
        "\"error\"",
        BY_AGENT,
        TO_ORCHESTRATOR,
        REPORTED_AT,
        &[
            ERROR_CODE,
            ERROR_TEXT,
            made(
                "error_context",
                Made { write: context::write, read: context::read, homes: &[Home::Details, Home::TaskId] }
            ),
        ]
    ),
    ..WORK_REQUEST
};

static LATER_ERROR: Shape = Shape {
    kind: Kind::MessageError,
    when: "later dialect",
    loose: true,
    state: None,
    members: envelope!(
        "\"error\"",
        BY_AGENT,
        TO_ORCHESTRATOR,
        REPORTED_AT,
        &[ERROR_CODE, ERROR_TEXT, loose("context", context::read, &[Home::Details, Home::TaskId])]
    ),
    ..WORK_REQUEST
};

fn reading(kind: Kind, root: Value<'_, '_>) -> Option<&'static Shape> {
    let payload = root.get("payload");
    let has = |name: &str| payload.is_some_and(|payload| payload.get(name).is_some());
    if kind == Kind::WorkRequest {
        return Some(&WORK_REQUEST);
    }
    if kind == Kind::MessageError {
        return Some(if has("error_context") { &ERROR } else { &LATER_ERROR });
    }
    if kind == Kind::WorkStatus {
        // A heartbeat of an agent is about no job.
        return (!super::read::is_heartbeat(has)).then_some(&WORK_STATUS);
    }
    let status = payload?.get("status")?.text()?.decode();
    let later = has("duration_ms") || has("error_message");
    Some(match (&*status, later) {
        ("failed", false) => &FAILED,
        ("failed", true) => &LATER_FAILED,
        ("cancelled", _) => &LATER_CANCELLED,
        ("success", false) => &SUCCESS,
        _ => &LATER_SUCCESS,
    })
}

fn writing(job: &Canonical<'_>) -> Option<&'static Shape> {
    Some(match job.state() {
        None => &WORK_REQUEST,
        Some(State::Completed) => &SUCCESS,
        Some(State::Cancelled) => &ERROR,
        Some(State::Failed) => {
            let known = job.failure().and_then(failure::write).is_some();
            let was_error = job.origin == Kind::MessageError && own_code(job).is_some();
            if known || was_error { &ERROR } else { &FAILED }
        }
        Some(State::Queued | State::Running | State::Waiting) => &WORK_STATUS,
    })
}
