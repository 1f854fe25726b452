//! The shapes of requests and answers. The comments on these types are the texts of the description.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use crosspoint_contracts::content::Nullable;
use schemars::JsonSchema;

use super::word::{
    Any, Attempts, BreakerName, BreakerWish, DoorName, FailureName, Given, Id, KindName, LevelName, OutputBytes,
    PresenceName, PriorityName, RepeatName, Seconds, StateName, StatusName, When,
};
use crosspoint_exchange::refusal::Found;

/// A new job. Members that are not known are kept with the document and mean nothing.
#[derive(JsonSchema)]
pub(super) struct NewJob {
    /// The name that routes the work to agents.
    work: Given,
    /// What the agent is given, passed on as it was written; `{}` where there is none.
    input: Option<Any>,
    /// Your id for it; sending it again gives the same job.
    request_id: Option<Nullable<Given>>,
    /// The one agent it must go to.
    agent: Option<Nullable<Given>>,
    /// Who goes first.
    priority: Option<Nullable<PriorityName>>,
    /// What you allow.
    limits: Option<Nullable<NewLimits>>,
}

/// What a caller allows.
#[derive(JsonSchema)]
struct NewLimits {
    /// From acceptance to outcome.
    seconds: Option<Nullable<Seconds>>,
    /// How much the agent may print.
    output_bytes: Option<Nullable<OutputBytes>>,
    /// How often it is tried in all; giving it says that repeating is wanted.
    attempts: Option<Nullable<Attempts>>,
}

/// The answer to a job's question.
#[derive(JsonSchema)]
pub(super) struct Reply {
    /// Any JSON.
    input: Any,
    /// The job's `question_id`, so that the answer is taken for this question and no other. With it, the same answer
    /// may be sent again while the job goes on.
    question_id: Option<Nullable<Given>>,
}

/// Whether an agent is to get no new work.
#[derive(JsonSchema)]
pub(super) struct Drain {
    /// `false` gives it work again.
    drained: bool,
}

/// How a breaker is to be.
#[derive(JsonSchema)]
pub(super) struct SetBreaker {
    /// Open until it is closed again, or closed.
    state: BreakerWish,
}

/// A job.
#[derive(JsonSchema)]
pub(super) struct Job {
    /// Its id, which never changes.
    id: Id,
    /// The job that this one came from.
    parent: Option<Id>,
    /// How it came from that job.
    origin: Option<Origin>,
    /// The caller's id for it; the job's own where the caller gave none.
    request_id: String,
    /// The name of the token by which it was submitted, for those who see the jobs of all callers.
    caller: Option<String>,
    /// Where it came in.
    door: DoorName,
    /// The name that routes it.
    work: String,
    /// The agent that has it or had it last, else the one it must go to.
    agent: Nullable<String>,
    /// Where in its life it is.
    state: StateName,
    /// How often it was handed to an agent.
    attempts: u32,
    /// Who goes first.
    priority: PriorityName,
    /// How far it is.
    progress: Progress,
    /// When it was accepted.
    created_at: When,
    /// When its state last changed.
    updated_at: When,
    /// Of which workflow it is a run, where it is one.
    workflow: Option<WorkflowRun>,
    /// Why it does not move, where it does not.
    stuck: Option<Stuck>,
    /// What a person is asked, while it or its stage waits for one.
    question: Option<Question>,
    /// Which question that is.
    question_id: Option<String>,
    /// How it ended, once it has.
    outcome: Option<Outcome>,
    /// Who has not been told its outcome yet, though it has ended.
    owed: Option<Owed>,
    /// The rules that were broken about it.
    violations: Option<Vec<Violation>>,
}

/// How a job came from another one: it repeats that job, or it is a stage of it.
#[derive(JsonSchema)]
#[serde(untagged)]
enum Origin {
    Retry {
        /// The job that this one repeats.
        retry_of: Id,
    },
    Child {
        /// The job that has this one done. When it ends, this one is cancelled.
        child_of: Id,
        /// What the stage is called there.
        stage: String,
    },
}

/// An outcome that a caller has not been told yet.
#[derive(JsonSchema)]
struct Owed {
    /// The caller.
    to: String,
    /// When the job ended.
    since: When,
    /// How telling this caller has failed, where it has.
    failing: Option<Failing>,
}

/// How telling a caller has failed since the last message that it took.
#[derive(JsonSchema)]
struct Failing {
    /// When it failed first.
    since: When,
    /// How often it failed.
    tries: u32,
    /// What happened last, for people.
    last: String,
    /// When it is tried next.
    next_at: When,
}

/// A caller that is told later.
#[derive(JsonSchema)]
struct Caller {
    name: String,
    /// The address at which it is told. Without it the caller pulls.
    callback: Option<String>,
    /// Whether it is in the configuration. What a caller is owed that is not there any more is kept, and not sent.
    configured: bool,
    /// How many jobs have ended whose outcome it has not been told.
    owed: u64,
    /// When the first of them ended.
    since: Option<When>,
    /// Why it is not told at its address, where it is not.
    failing: Option<Failing>,
}

/// All callers that are told later.
#[derive(JsonSchema)]
pub(super) struct CallerPage {
    callers: Vec<Caller>,
}

/// How far a job is.
#[derive(JsonSchema)]
struct Progress {
    /// 0 to 100.
    percent: Nullable<f64>,
    /// What is being done, in the agent's words.
    step: Nullable<String>,
}

/// The workflow that a job is a run of.
#[derive(JsonSchema)]
struct WorkflowRun {
    /// Its name.
    name: String,
    /// The feature that the run was begun with.
    feature: Option<Nullable<String>>,
    /// The repository.
    root: String,
    /// Whether the run works in a copy of the repository.
    dry_run: bool,
}

/// Why a job does not move.
#[derive(JsonSchema)]
struct Stuck {
    /// For people.
    reason: String,
    /// Since when.
    since: When,
    /// The stage of a workflow that does not move, where it is one.
    job: Option<Id>,
}

/// What a person is asked.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(super) struct Question {
    /// The question.
    prompt: String,
    /// A JSON Schema of the answer.
    schema: Option<Any>,
}

/// How a job ended.
#[derive(JsonSchema)]
pub(super) struct Outcome {
    /// Which of the three ways.
    status: StatusName,
    /// What the agent gave, as it was written; null where there is nothing, or too much for a list.
    outputs: Any,
    /// The text that it gave beside an object.
    text: Option<String>,
    /// Present if `text` is only the end of what was printed, or if a part of it never came. Where the text is all
    /// there is, this is in `outputs`, beside `output`.
    truncated: Option<Truncated>,
    /// In lists: how long the text would be, if a part of it never came.
    whole_bytes: Option<u64>,
    /// `lossy` if some of the bytes that were printed are no text. Where the text is all there is, this is in
    /// `outputs`.
    output_encoding: Option<String>,
    /// Named pieces of output.
    artifacts: Vec<Any>,
    /// Why it failed or was cancelled.
    failure: Option<FailureShown>,
    /// What else the agent said, as a document of its own contract.
    said: Option<Said>,
    /// In lists: how long the outcome is that was left out.
    bytes: Option<u64>,
}

/// Where the rest of a text is.
#[derive(JsonSchema)]
struct Truncated {
    /// How long the whole text is, or would be.
    bytes: u64,
    /// The path of all that was printed, or came.
    href: String,
}

/// What an agent said, as a document of its own contract. What stands in the outcome itself is left out of it.
#[derive(JsonSchema)]
pub(super) struct Said {
    /// What it is: `run.response`, `task.response`, `bridge.response`, or the data of an event of a `run.stream`.
    kind: String,
    document: Any,
}

/// Why work failed.
#[derive(JsonSchema)]
#[schemars(rename = "Failure")]
struct FailureShown {
    /// One of the twelve.
    code: FailureName,
    /// The agent's own words where it gave any.
    message: String,
    /// Whether sending the work again is safe.
    repeat: RepeatName,
    /// More, as the agent gave it.
    details: Option<Any>,
}

/// A rule that was broken about a job.
#[derive(JsonSchema)]
pub(super) struct Violation {
    at: When,
    /// The rule.
    clause: String,
    /// How much it matters.
    level: LevelName,
    /// What was broken about it.
    what: String,
}

/// Some jobs, the youngest first.
#[derive(JsonSchema)]
pub(super) struct JobPage {
    jobs: Vec<Job>,
    /// The job behind which the page after this one begins: give its id back as `before`. Null says there is none.
    next: Nullable<String>,
}

/// An agent.
#[derive(JsonSchema)]
pub(super) struct Agent {
    name: String,
    /// The contract it speaks.
    contract: String,
    /// Its type: of work that is addressed to a type it gets what is addressed to this one. Left out where it has none.
    #[schemars(rename = "type")]
    agent_type: Option<String>,
    /// The version of its contract that is spoken with it, where the contract has versions that are agreed on.
    protocol_version: Option<String>,
    /// The works it takes.
    work: Vec<String>,
    /// How many jobs it may have at a time.
    concurrency: u32,
    /// How many it has.
    running: u32,
    breaker: BreakerShown,
    /// Whether it gets no new work.
    drained: bool,
    /// Whether it is in the configuration. If not, it joined or registered.
    configured: bool,
    /// Of an agent that joined, and of a configured one whose presence is known: since when it is away; null while it
    /// is there.
    away_since: Option<Nullable<When>>,
    /// The last sign of life, if the agent sends any.
    heartbeat: Option<HeartbeatShown>,
    /// Since when the agent refuses the server's token, or wants one; left out while it does not. The operator mends it
    /// by `token_file` of the agent.
    token_refused_since: Option<When>,
    /// Where the server calls it; left out for an agent that has no address.
    address: Option<String>,
    /// Why the last attempt to connect to it failed; left out while connections are made.
    cannot_connect: Option<String>,
}

/// A sign of life of an agent.
#[derive(JsonSchema)]
#[schemars(rename = "Heartbeat")]
struct HeartbeatShown {
    /// When it came.
    at: When,
    /// Whether it takes work.
    status: PresenceName,
    /// What it has left, as it says; it is not used for routing.
    resources: Nullable<Any>,
}

/// The breaker of an agent.
#[derive(JsonSchema)]
#[schemars(rename = "Breaker")]
struct BreakerShown {
    state: BreakerName,
    /// Attempts in a row that met silence or no agent.
    failures: u32,
    /// Until when it is open; null where it is not, or until an operator closes it.
    until: Nullable<When>,
}

/// All agents.
#[derive(JsonSchema)]
pub(super) struct AgentPage {
    agents: Vec<Agent>,
}

/// A document in another contract.
#[derive(JsonSchema)]
pub(super) struct Translated {
    /// What it was.
    kind: KindName,
    /// What is loose about it.
    findings: Vec<Found<'static>>,
    /// What it became: one document, or one for each event of a stream.
    documents: Vec<WrittenDocument>,
    /// What the other contract has no field for and travels under `x_crosspoint`.
    carried: Vec<String>,
    /// What it has no field for and was left out, because carrying was turned off.
    lost: Vec<String>,
    /// Places of what was made up, because the other contract demands it.
    filled: Vec<String>,
    /// How many events of the stream have no counterpart.
    without: usize,
}

/// One document that was written.
#[derive(JsonSchema)]
struct WrittenDocument {
    kind: KindName,
    /// The document.
    document: Option<Any>,
    /// The events, where it is a stream.
    text: Option<String>,
}
