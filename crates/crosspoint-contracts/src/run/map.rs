//! Request, response and events as shapes.

use super::exchange::EXCHANGE;
use super::failure;
use super::read::{PERCENT_NAMES, TIME_LIMITS};
use crate::artifact::Form;
use crate::content::Json;
use crate::job::{Canonical, Holds, Home, State};
use crate::json::{Type, Value};
use crate::kind::{Contract, Kind};
use crate::map::{
    Codec, Codes, Fill, In, Made, Map, Member, Out, Shape, alias, artifacts, block, code, fixed, home, input, made,
    output_object, own,
};

pub(crate) static MAP: Map = Map {
    // One trace id may cover several stages.
    key: &[Home::RequestId, Home::Work, Home::Stage],
    shapes: &[&REQUEST, &SUCCESS, &SUCCESS_DATA, &ERROR, &ERROR_DATA, &STARTED, &PROGRESS],
    reading,
    writing,
};

const REQUEST_ID: Member = home("request_id", Home::RequestId, Codec::Named("\"unnamed\"")).required(Fill::Id);
const TASK_TYPE: Member = home("task_type", Home::Work, Codec::Named("\"work\""));

static REQUEST: Shape = Shape {
    kind: Kind::RunRequest,
    when: "",
    state: None,
    members: &[
        REQUEST_ID,
        home("task_type", Home::Work, Codec::Named("\"work\"")).required(Fill::Raw("\"work\"")),
        home("workflow_id", Home::Workflow, Codec::Same),
        home("stage_id", Home::Stage, Codec::Same),
        home("user_id", Home::User, Codec::Same),
        home("mode", Home::Mode, Codec::Same),
        home("risk_tier", Home::RiskTier, Codec::Same),
        home("domain_id", Home::Domain, Codec::Same),
        input("inputs"),
        block(
            "budgets",
            &[
                home("max_seconds", Home::SecondsMax, Codec::Same).open().named(TIME_LIMITS),
                alias("timeout_seconds", Home::SecondsMax, Codec::Same).named(TIME_LIMITS),
                alias("timeout_ms", Home::SecondsMax, Codec::Milliseconds).named(TIME_LIMITS),
                alias("max_time_ms", Home::SecondsMax, Codec::Milliseconds).named(TIME_LIMITS),
                home("max_memory_mb", Home::MemoryMax, Codec::Same).open(),
            ],
        ),
    ],
    carrier: None,
    closed: false,
    loose: false,
};

const OK: Member = made("ok", Made { write: write_ok, read: keep, homes: &[Home::State] });
const ARTIFACTS: Member = artifacts("artifacts", Form::Names).recommended(Fill::Raw("[]"));
const PROVENANCE: Member = own("provenance", Holds::Object).recommended(Fill::Raw("{}"));
const USAGE: Member = block(
    "usage",
    &[
        home("duration_seconds", Home::Duration, Codec::Same).open(),
        home("gpu_vram_mb", Home::GpuMemory, Codec::Same).open(),
        home("cpu_time_ms", Home::CpuTime, Codec::Same).open(),
    ],
)
.recommended(Fill::Raw("{}"));
const WARNINGS: Member = own("warnings", Holds::Array).recommended(Fill::Raw("[]"));
const GROUNDING: Member = own("grounding", Holds::Object);
const SUCCESS_MARK: Member = made("success", Made { write: write_success, read: keep, homes: &[Home::State] });

/// The shape of a response. Responses differ in status, output and error.
macro_rules! response {
    ($when:literal, $loose:literal, $state:expr, [$status:expr, $output:expr, $error:expr]) => {
        Shape {
            kind: Kind::RunResponse,
            when: $when,
            state: Some($state),
            members: &[
                REQUEST_ID,
                TASK_TYPE,
                $status,
                OK,
                SUCCESS_MARK,
                $output,
                $error,
                ARTIFACTS,
                PROVENANCE,
                USAGE,
                WARNINGS,
                GROUNDING,
            ],
            carrier: None,
            closed: false,
            loose: $loose,
        }
    };
}

const STATUS: Member = made("status", Made { write: write_status, read: read_status, homes: &[Home::State] });
/// A success may have an error, with a warning; it says nothing of the job.
const STRAY_ERROR: Member = own("error", Holds::Object);

static SUCCESS: Shape = response!("ok", false, State::Completed, [STATUS, output_object("outputs"), STRAY_ERROR]);

/// `data` in place of `outputs` is read and not written.
static SUCCESS_DATA: Shape =
    response!("ok, with data for outputs", true, State::Completed, [STATUS, output_object("data"), STRAY_ERROR]);

static CODES: Codes = Codes { write: |failure| failure::write(failure).0, read: failure::read, read_beside: None };

const FAILED_STATUS: Member = fixed("status", "\"error\"");
static REASON_MEMBERS: [Member; 3] = [
    code("code", &CODES),
    home("message", Home::Message, Codec::Same).required(Fill::Sentence),
    home("details", Home::Details, Codec::Same),
];
const REASON: Member = block("error", &REASON_MEMBERS).or_text(Home::Message);

/// What an agent gives with a failure is kept like what it gives with a success. Usually it gives nothing.
const FAILED_OUTPUTS: Made = Made { write: write_failed_outputs, read: read_failed_outputs, homes: &[Home::Outputs] };

static ERROR: Shape =
    response!("error", false, State::Failed, [FAILED_STATUS, made("outputs", FAILED_OUTPUTS), REASON]);

/// `data` in place of `outputs` is read and not written.
static ERROR_DATA: Shape = response!(
    "error, with data for outputs",
    true,
    State::Failed,
    [FAILED_STATUS, made("data", FAILED_OUTPUTS), REASON]
);

fn write_failed_outputs(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    // An empty object may have come in another spelling. Whatever is no object is carried.
    let is_object = out.own().is_some_and(|own| own.starts_with('{'));
    let own = if is_object { out.own_here().map(|own| Json::new(own.to_owned())) } else { None };
    own.or_else(|| out.output_object().map(|outputs| Json::new(outputs.into_owned()))).or_else(|| Some(Json::new("{}")))
}

fn read_failed_outputs<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    match value.members().next() {
        Some(_) => found.output_object(value),
        None if value.source() == "{}" => {}
        None => found.keep(value),
    }
}

/// `started` says only what the run is.
static STARTED: Shape = Shape {
    kind: Kind::RunStream,
    when: "started",
    state: Some(State::Running),
    members: &[REQUEST_ID, TASK_TYPE],
    carrier: None,
    closed: false,
    loose: false,
};

static PROGRESS: Shape = Shape {
    when: "progress",
    members: &[
        home("request_id", Home::RequestId, Codec::Named("\"unnamed\"")).open(),
        home("task_type", Home::Work, Codec::Named("\"work\"")).open(),
        home("percent", Home::Percent, Codec::Same).open().named(PERCENT_NAMES),
        alias("progress", Home::Percent, Codec::Same).named(PERCENT_NAMES),
        alias("pct", Home::Percent, Codec::Same).named(PERCENT_NAMES),
        home("step", Home::Step, Codec::Same).open(),
    ],
    ..STARTED
};

/// Where the name of an event is kept. It is no pointer, so no member of the data can have this place.
pub(crate) const EVENT: &str = "event";

/// Both words are canonical. The one that came is kept.
fn write_status(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    if let Some(misfit) = misfit(out, |own| own.starts_with('"')) {
        return Some(misfit);
    }
    let success = out.own_is("\"success\"");
    if success {
        out.own_here();
    }
    Some(Json::string(if success { "success" } else { "ok" }))
}

fn read_status<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if value.source() != "\"ok\"" {
        found.keep(value);
    }
}

/// Returns a mark that is no mark, for a document that goes back as it was. A caller gets only marks that count.
fn misfit(out: &mut Out<'_, '_>, fits: fn(&str) -> bool) -> Option<Json<'static>> {
    let goes_back = out.leaves_out();
    let own = out.own().filter(|own| goes_back && !fits(own))?.to_owned();
    out.own_here();
    Some(Json::new(own))
}

/// Writes `ok` with the meaning of the status, if the document had it before or if we originate the document.
fn write_ok(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    if let Some(misfit) = misfit(out, is_truth) {
        return Some(misfit);
    }
    let mark = Json::new(if out.job().state() == Some(State::Completed) { "true" } else { "false" });
    if out.own_here().is_none() {
        if out.leaves_out() {
            return None;
        }
        out.stands_in(mark.clone());
    }
    Some(mark)
}

fn write_success(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    if let Some(misfit) = misfit(out, is_truth) {
        return Some(misfit);
    }
    let mark = Json::new(if out.job().state() == Some(State::Completed) { "true" } else { "false" });
    out.own().filter(|own| is_truth(own))?;
    out.own_here();
    Some(mark)
}

fn is_truth(own: &str) -> bool {
    matches!(own, "true" | "false")
}

fn keep<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if !found.is_stand_in(value) {
        found.keep(value);
    }
}

fn reading(kind: Kind, root: Value<'_, '_>) -> Option<&'static Shape> {
    if kind == Kind::RunRequest {
        return Some(&REQUEST);
    }
    let failed = EXCHANGE.needs.state(root) == Some(State::Failed);
    let is_object = |name: &str| root.get(name).is_some_and(|value| value.kind() == Type::Object);
    let misnamed = !is_object("outputs") && is_object("data");
    Some(match (failed, misnamed) {
        (true, true) => &ERROR_DATA,
        (true, false) => &ERROR,
        (false, true) => &SUCCESS_DATA,
        (false, false) => &SUCCESS,
    })
}

/// Returns the shape of an event's data, by the event's name.
pub(crate) fn event_shape(name: &str) -> &'static Shape {
    if name == "started" { &STARTED } else { &PROGRESS }
}

fn writing(job: &Canonical<'_>) -> Option<&'static Shape> {
    Some(match job.state() {
        None => &REQUEST,
        Some(State::Completed) => &SUCCESS,
        Some(State::Failed | State::Cancelled) => &ERROR,
        Some(State::Queued | State::Running | State::Waiting) => {
            let started = job.own_at(Contract::Run, EVENT).is_some_and(|(_, own)| own.value.get() == "\"started\"");
            if started { &STARTED } else { &PROGRESS }
        }
    })
}
