//! The part of the API for agents that joined: its shapes and its operations.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use crosspoint_contracts::content::Nullable;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::operation::Operation;
use super::shape::Agent;
use super::table::{AGENTS, Facts, seconds};
use super::word::{
    Above, Any, Concurrency, Count, FailureName, Given, HeardName, Id, LeaseSeconds, OutputBytes, RepeatName, Room,
    Rule, Session, True, WorkSeconds,
};

/// Who joins, and for what.
#[derive(JsonSchema)]
struct Joining {
    session: Session,
    /// The works that it takes.
    #[schemars(length(min = 1, max = 1_000))]
    work: Vec<Given>,
    /// How many jobs it has at a time; 1 where it does not say.
    concurrency: Option<Nullable<Concurrency>>,
    /// So long after its last call it is taken for dead; 15 where it does not say.
    lease_seconds: Option<Nullable<LeaseSeconds>>,
    /// How long it may say nothing about a job.
    silence_seconds: Option<Nullable<WorkSeconds>>,
    /// How long a job may take.
    total_seconds: Option<Nullable<WorkSeconds>>,
    /// Whether work that may have begun may begin again.
    repeatable: Option<Nullable<bool>>,
    /// How much it may print about a job.
    output_bytes: Option<Nullable<OutputBytes>>,
}

/// A call for work.
#[derive(JsonSchema)]
struct Taking {
    session: Session,
    /// For how many more jobs it has room.
    room: Option<Nullable<Room>>,
    /// All that it holds: every job that it was given and whose end it has not reported, or has not been told that the
    /// report was taken.
    #[schemars(length(max = 10_000))]
    holding: Option<Nullable<Vec<Holding>>>,
    /// What it has to say first, as for `report`: what it is given is what is there after that.
    #[schemars(length(max = 1_000))]
    reports: Option<Nullable<Vec<Report>>>,
}

/// A job that it holds.
#[derive(JsonSchema)]
struct Holding {
    id: Id,
    attempt: Above,
    /// How many answers it has.
    answers: Option<Nullable<Count>>,
}

/// What there is to do.
#[derive(JsonSchema)]
struct Orders {
    /// New jobs, and those that it was given before and did not list.
    jobs: Vec<Order>,
    /// What it listed and the server no longer wants.
    stop: Vec<Stop>,
    /// Answers that it does not have.
    answers: Vec<Answer>,
    /// What became of each of its reports, where it made some.
    reports: Option<Vec<HeardName>>,
}

/// A job for it.
#[derive(JsonSchema)]
struct Order {
    id: Id,
    /// Which attempt; reports name it.
    attempt: u32,
    work: String,
    /// The caller's id for it.
    request_id: String,
    /// Where in a trace the attempt belongs, as W3C Trace Context spells it.
    traceparent: String,
    /// What tracing systems on the way have noted, where they have.
    tracestate: Option<String>,
    /// Where its output begins.
    output_offset: u64,
    /// What it is given.
    input: Any,
}

/// An attempt that is over.
#[derive(JsonSchema)]
struct Stop {
    id: Id,
    attempt: u32,
}

/// The answer to one of its questions.
#[derive(JsonSchema)]
struct Answer {
    id: Id,
    attempt: u32,
    /// Which of its questions, from 1.
    n: u32,
    input: Any,
}

/// What it has to say.
#[derive(JsonSchema)]
struct Reports {
    session: Session,
    #[schemars(length(max = 1_000))]
    reports: Vec<Report>,
}

/// What it has to say about one job: exactly one of `heard`, `progress`, `violation`, `ask`, `declined`, `result`
/// and `failure`.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Report {
    Heard(Alive),
    Progress(Progressed),
    Violation(Broke),
    Ask(Asked),
    Declined(Declined),
    Result(Done),
    Failure(Undone),
}

/// It is alive.
#[derive(JsonSchema)]
#[schemars(rename = "HeardReport")]
struct Alive {
    id: Id,
    attempt: Above,
    /// Its value means nothing.
    heard: Any,
}

/// It goes on.
#[derive(JsonSchema)]
#[schemars(rename = "ProgressReport")]
struct Progressed {
    id: Id,
    attempt: Above,
    progress: HowFar,
}

/// A rule was broken; nothing else changes.
#[derive(JsonSchema)]
#[schemars(rename = "ViolationReport")]
struct Broke {
    id: Id,
    attempt: Above,
    /// Which rule, in a few words; the job shows it under `violations`.
    violation: Rule,
}

/// It needs a person.
#[derive(JsonSchema)]
#[schemars(rename = "AskReport")]
struct Asked {
    id: Id,
    attempt: Above,
    ask: Ask,
    /// The number of the question within the attempt, from 1.
    n: Above,
}

/// It is given back: nothing of it was begun.
#[derive(JsonSchema)]
#[schemars(rename = "DeclinedReport")]
struct Declined {
    id: Id,
    attempt: Above,
    declined: True,
}

/// It is done.
#[derive(JsonSchema)]
#[schemars(rename = "ResultReport")]
struct Done {
    id: Id,
    attempt: Above,
    result: What,
}

/// It is not done.
#[derive(JsonSchema)]
#[schemars(rename = "FailureReport")]
struct Undone {
    id: Id,
    attempt: Above,
    failure: Why,
}

/// How far it is.
#[derive(JsonSchema)]
struct HowFar {
    percent: Option<Nullable<f64>>,
    step: Option<Nullable<String>>,
}

/// A question for a person.
#[derive(JsonSchema)]
struct Ask {
    prompt: String,
    /// What the answer should look like.
    schema: Option<Any>,
}

/// What came of it: outputs, or what was sent as output.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum What {
    Outputs(WhatOutputs),
    Printed(WhatPrinted),
}

/// Outputs, and the text beside them, where there is one.
#[derive(JsonSchema)]
struct WhatOutputs {
    outputs: Any,
    /// A short text beside the outputs.
    text: Option<Nullable<String>>,
    /// The text beside the outputs, if it was sent as output.
    printed: Option<Nullable<PrintedPart>>,
    artifacts: Option<Nullable<Vec<Any>>>,
}

/// A text that was sent as output, and nothing else.
#[derive(JsonSchema)]
struct WhatPrinted {
    printed: PrintedPart,
    artifacts: Option<Nullable<Vec<Any>>>,
}

/// Which bytes of the attempt's output are its text. All of them must have been taken.
#[derive(JsonSchema)]
struct PrintedPart {
    /// The first of them; 0 if it is not given.
    from: Option<Nullable<OutputBytes>>,
    /// How many they are.
    bytes: OutputBytes,
}

/// Why nothing came of it.
#[derive(JsonSchema)]
struct Why {
    code: FailureName,
    message: Option<Nullable<String>>,
    details: Option<Nullable<serde_json::Map<String, Value>>>,
    /// `false` says that the work never began.
    dispatched: Option<Nullable<bool>>,
    /// Whether sending the work again is safe, where the worker knows it.
    repeat: Option<Nullable<RepeatName>>,
    /// What came of it all the same; any JSON but null.
    outputs: Option<Any>,
    /// Named pieces of output.
    artifacts: Option<Nullable<Vec<Any>>>,
}

/// What became of the reports, in their order. They are on disk.
#[derive(JsonSchema)]
struct Heard {
    reports: Vec<HeardName>,
}

/// What became of the output. It is on disk.
#[derive(JsonSchema)]
struct Stored {
    output: HeardName,
}

/// Who leaves.
#[derive(JsonSchema)]
struct Leaving {
    session: Session,
}

const SESSION: &str = "5f0c6c1e-8d0a-4c2e-9d8b-0a4f3f2f9b11";
const JOB: &str = "01a1e2d0-641e-7000-8000-0005a7fde28e";

/// The operations, in the order of the router.
pub(super) fn operations(facts: &Facts) -> Vec<Operation> {
    let name = json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX, "pattern": "^[ -~]+$", "example": "shout" });
    let of_agent = |operation: Operation| operation.path("name", "The agent's name.", &name);
    let post = |path, id, summary| of_agent(Operation::post(path, id, AGENTS, summary));
    let report = json!({ "session": SESSION, "reports": [{ "id": JOB, "attempt": 1, "result": { "outputs": {} } }] });
    vec![
        post("/api/v1/agents/{name}/join", "join_agent", "Join as an agent")
            .describe("Safe to repeat. All who are there under one name share its work, and must have joined with the same work and limits.")
            .body::<Joining>("Who joins, and for what.", json!({ "session": SESSION, "work": ["shout"], "concurrency": 4 }))
            .answers::<Agent>(200, "The agent.")
            .refuses(&[409, 429]),
        post("/api/v1/agents/{name}/take", "take_jobs", "Take work, and say what you hold")
            .describe("What follows is worked out from the list alone, so an answer that is lost costs nothing. One call at a time for each session: a new one ends the one before.")
            .query("wait", "Wait for something to do up to so many seconds, but no longer than a third of the lease.", &seconds(facts))
            .body::<Taking>("Room for more, and all that it holds.", json!({ "session": SESSION, "room": 4, "holding": [{ "id": JOB, "attempt": 1, "answers": 0 }] }))
            .answers::<Orders>(200, "What there is to do; all of it empty where there is nothing.")
            .refuses(&[409]),
        post("/api/v1/agents/{name}/report", "report_jobs", "Say what became of jobs")
            .describe("Safe to repeat. A mistake anywhere refuses all of it.")
            .body::<Reports>("What it has to say.", report)
            .answers::<Heard>(200, "What became of each: `taken`, or `gone` where the job goes on without this attempt or has ended.")
            .refuses(&[409]),
        post("/api/v1/agents/{name}/output", "store_output", "Store a block of output")
            .describe("Offsets count from the beginning of the job's output, so a block that is sent again is recognised.")
            .query_required("session", "The session.", &json!({ "type": "string", "format": "uuid" }))
            .query_required("job", "The job's id.", &json!({ "type": "string", "format": "uuid" }))
            .query_required("attempt", "Which attempt.", &json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }))
            .query_required("offset", "Where the block begins.", &json!({ "type": "integer", "minimum": 0, "maximum": crosspoint_engine::policy::OUTPUT_BYTES_MAX }))
            .bytes("At most 1 MiB.")
            .answers::<Stored>(200, "`taken`, or `gone` where the job goes on without this attempt or has ended.")
            .refuses(&[409]),
        post("/api/v1/agents/{name}/leave", "leave_agent", "Leave, and give back what you hold")
            .body::<Leaving>("Who leaves.", json!({ "session": SESSION }))
            .answers::<Agent>(200, "The agent as it is now.")
            .refuses(&[404]),
    ]
}

pub(super) fn forget() -> Operation {
    Operation::new(
        "DELETE",
        "/api/v1/agents/{name}",
        "forget_agent",
        AGENTS,
        "Forget an agent that joined and will not come back",
    )
    .path("name", "The agent's name.", &json!({ "type": "string", "minLength": 1, "example": "shout" }))
    .answers::<Agent>(200, "The agent as it was.")
    .refuses(&[404, 409])
}
