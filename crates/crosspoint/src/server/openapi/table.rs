//! Every operation, in the order of the router.
//!
//! A new endpoint needs its line in the router and its entry here: the tests compare the two, by path, method and the
//! handler's name.

use std::time::Duration;

use crosspoint_contracts::request::Door;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::job::Phase;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use serde_json::{Value, json};

use super::event::JobEvent;
use super::health::{Alive, NotReady, Ready};
use super::operation::{Operation, STATE, TRACE};
use super::shape::{Agent, AgentPage, CallerPage, Drain, Job, JobPage, NewJob, Reply, SetBreaker, Translated};
use super::word::Any;
use super::{bridge, message, pull, run, task, token, workflow, workflows};
use crate::server::access::Needs;
use crate::server::query::{LIST_DEFAULT, LIST_MAX};
use crate::verdict::DocumentReport;

/// The configured values that callers must know.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) wait_max: Duration,
}

pub(super) const RUNS: &str = "runs";
const JOBS: &str = "jobs";
pub(super) const AGENTS: &str = "agents";
const CALLERS: &str = "callers";
pub(super) const TOKENS: &str = "tokens";
const DOCUMENTS: &str = "documents";
pub(super) const TASKS: &str = "tasks";
pub(super) const BRIDGE: &str = "bridge";
pub(super) const ENVELOPES: &str = "envelopes";
pub(super) const MESSAGES: &str = "messages";
pub(super) const WORKFLOWS: &str = "workflows";
const SERVER: &str = "server";

/// The groups of operations.
pub(super) const TAGS: [(&str, &str); 12] = [
    (RUNS, "The door of the run contract: what comes in, goes out and is refused is a document of that contract."),
    (JOBS, "Work: submitted, followed, answered, stopped."),
    (AGENTS, "Those who do it, and how they are."),
    (CALLERS, "Those who are told later what became of their work."),
    (TOKENS, "What shows who asks: made, replaced, revoked."),
    (DOCUMENTS, "Documents of the contracts, judged and translated; nothing of them is kept."),
    (TASKS, "The task contract: where its callers come in."),
    (BRIDGE, "The bridge contract: where the requests come in that a driver finds in a directory."),
    (ENVELOPES, "The workflow contract: where an envelope is given to one agent."),
    (MESSAGES, "The message contract: work for its agents, and from its callers."),
    (WORKFLOWS, "Runs of whole workflows: jobs whose stages are jobs of their own."),
    (SERVER, "The server itself."),
];

/// Returns every operation. Those of a group that says nothing else are for those who administer the server.
pub(super) fn operations(facts: &Facts) -> Vec<Operation> {
    let needs = |needs: Needs, some: Vec<Operation>| some.into_iter().map(move |operation| operation.needs(needs));
    let mut all: Vec<Operation> = needs(Needs::Caller, run::operations()).collect();
    all.extend(needs(Needs::Caller, workflow::operations()));
    all.extend(message::operations(facts));
    all.extend(needs(Needs::Caller, jobs(facts)));
    all.extend(needs(Needs::Caller, one_job(facts)));
    all.extend(needs(Needs::Caller, workflows::operations()));
    all.extend(needs(Needs::Caller, bridge::operations(facts)));
    all.extend(callers());
    all.extend(agents());
    all.extend(needs(Needs::Agent, pull::operations(facts)));
    all.extend(token::operations());
    all.extend(documents());
    all.extend(needs(Needs::Caller, task::operations(facts)));
    all.extend(server());
    all
}

fn jobs(facts: &Facts) -> Vec<Operation> {
    let states = json!({ "type": "string", "enum": Phase::ALL.map(Phase::name) });
    let doors = json!({ "type": "string", "enum": Door::all().map(Door::name).collect::<Vec<_>>() });
    let location = json!({ "Location": { "description": "The path of the job.", "schema": { "type": "string" } } });
    let example = json!({ "work": "echo", "input": { "message": "hello" }, "priority": "high" });
    vec![
        Operation::post("/api/v1/jobs", "submit_job", JOBS, "Submit a job")
            .describe("When it is answered, the job is on disk. Sent again with the same `request_id` or `Idempotency-Key`, it is the same job.")
            .query("wait", WAIT, &seconds(facts))
            .header("Idempotency-Key", KEY, &key())
            .header("traceparent", TRACE, &json!({ "type": "string" }))
            .header("tracestate", STATE, &json!({ "type": "string" }))
            .body::<NewJob>("What is to be done.", example)
            .answers_with::<Job>(200, "The job has ended, as `outcome` says.", location.clone())
            .answers_with::<Job>(202, "The job is on disk, and goes on whether you wait or not.", location)
            .refuses(&[409, 429]),
        Operation::get("/api/v1/jobs", "list_jobs", JOBS, "List jobs, the youngest first")
            .describe("A page looks at a bounded number of jobs: it may hold fewer than `limit`, even none, and still have a `next`.")
            .query("state", "Only jobs in this state.", &states)
            .query("work", "Only jobs of this work.", &text())
            .query("agent", "Only jobs with this agent.", &text())
            .query("door", "Only jobs that came in here.", &doors)
            .query("before", "`next` of the page before.", &id())
            .query("limit", "How many at most.", &json!({ "type": "integer", "minimum": 1, "maximum": LIST_MAX, "default": LIST_DEFAULT }))
            .answers::<JobPage>(200, "Some jobs, without outcomes that are long.")
            .refuses(&[400, 404]),
    ]
}

fn one_job(facts: &Facts) -> Vec<Operation> {
    let of_job = |operation: Operation| operation.path("id", "The job's id.", &id()).refuses(&[404]);
    let number = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    vec![
        of_job(Operation::get("/api/v1/jobs/{id}", "show_job", JOBS, "Show a job"))
            .query("wait", WAIT, &seconds(facts))
            .answers::<Job>(200, "The job as it is, or as it ended within the wait.")
            .refuses(&[400]),
        of_job(Operation::get("/api/v1/jobs/{id}/events", "follow_job", JOBS, "Follow a job as server-sent events"))
            .describe("`id` is the event's number within the job, `event` its kind, `data` one JSON object. The stream ends after the outcome.")
            .query("after", "The number of the last event that you have.", &number)
            .query("follow", "`false` ends the stream with the last event that there is.", &json!({ "type": "boolean", "default": true }))
            .header("Last-Event-ID", "The same as `after`, and wins over it.", &number)
            .answers_events::<JobEvent>("What happens to the job; the schema is that of one event.")
            .refuses(&[400]),
        output(of_job(Operation::get("/api/v1/jobs/{id}/output", "show_output", JOBS, "Get all that was printed"))),
        of_job(Operation::get("/api/v1/jobs/{id}/document", "show_document", JOBS, "Show the document that a job came as"))
            .answers::<Any>(200, "The document, byte for byte."),
        of_job(Operation::post("/api/v1/jobs/{id}/cancel", "cancel_job", JOBS, "Stop a job"))
            .answers::<Job>(200, "The job, which is cancelled.")
            .refuses(&[409]),
        of_job(Operation::post("/api/v1/jobs/{id}/answer", "answer_job", JOBS, "Answer a job's question"))
            .body::<Reply>("The answer.", json!({ "input": "yes" }))
            .answers::<Job>(200, "The job, which goes on.")
            .refuses(&[409]),
        of_job(Operation::post("/api/v1/jobs/{id}/retry", "retry_job", JOBS, "Submit a job that has ended once more"))
            .header("Idempotency-Key", KEY, &key())
            .answers_with::<Job>(202, "A new job, whose `parent` is the old one.", json!({
                "Location": { "description": "The path of the new job.", "schema": { "type": "string" } },
            }))
            .refuses(&[400, 409, 429]),
    ]
}

fn output(operation: Operation) -> Operation {
    let number = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    let content_range = |description: &str, example: &str| json!({ "Content-Range": { "description": description, "schema": { "type": "string", "example": example } } });
    operation
        .describe("Everything that was printed or sent as step output, byte for byte; the output of each attempt follows that of the one before. A `Range` header asks for one range of bytes; several are passed over, and so is `If-Range`: what was printed never changes. If the connection breaks, ask again from the byte that you have come to.")
        .query("follow", "`true` goes on with what comes, until the job has ended.", &json!({ "type": "boolean", "default": false }))
        .query("from", "The number of the first byte that is wanted. It does not go with a Range header.", &number)
        .query("attempt", "Only the output of this attempt.", &json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }))
        .answers_bytes(200, "The bytes.", json!({}))
        .answers_bytes(206, "The bytes of the range.", content_range(
            "The range, and how many bytes there are in all: `*` while the job goes on. The end of a range that is followed is a very large number.",
            "bytes 0-1023/4096",
        ))
        .refuses(&[400, 416])
}

fn agents() -> Vec<Operation> {
    let of_agent = |operation: Operation| operation.path("name", "The agent's name.", &name()).refuses(&[404]);
    vec![
        Operation::get("/api/v1/agents", "list_agents", AGENTS, "List agents")
            .answers::<AgentPage>(200, "All of them, by name."),
        of_agent(Operation::get("/api/v1/agents/{name}", "show_agent", AGENTS, "Show an agent"))
            .answers::<Agent>(200, "The agent as it is."),
        pull::forget(),
        of_agent(Operation::post(
            "/api/v1/agents/{name}/drain",
            "drain_agent",
            AGENTS,
            "Give an agent no new work, or work again",
        ))
        .body_if_any::<Drain>("Nothing at all means yes.", json!({ "drained": false }))
        .answers::<Agent>(200, "The agent as it is now."),
        of_agent(Operation::post(
            "/api/v1/agents/{name}/breaker",
            "set_breaker",
            AGENTS,
            "Open or close an agent's breaker",
        ))
        .body::<SetBreaker>("How it is to be.", json!({ "state": "closed" }))
        .answers::<Agent>(200, "The agent as it is now."),
    ]
}

fn callers() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/callers", "list_callers", CALLERS, "List the callers that are told later")
            .describe("Those of the configuration, and others that are still owed outcomes.")
            .answers::<CallerPage>(200, "All of them, by name."),
    ]
}

fn documents() -> Vec<Operation> {
    let kinds = json!({ "type": "string", "enum": Kind::ALL.map(Kind::name) });
    let contracts = json!({ "type": "string", "enum": Contract::ALL.map(Contract::name) });
    let files: Vec<String> = Kind::ALL.iter().map(|kind| format!("{kind}.json")).collect();
    let types = json!({ "type": "array", "items": { "type": "string", "minLength": 1, "pattern": "\\S" } });
    let truth = json!({ "type": "boolean", "default": false });
    let run = json!({ "request_id": "r-1", "task_type": "LIT_RETRIEVAL", "inputs": { "query": "basil" } });
    vec![
        Operation::post("/api/v1/validate", "validate_document", DOCUMENTS, "Judge a document")
            .describe("What `crosspoint validate --format json` prints. A document that breaks its contract is answered with 200, and `valid` is false.")
            .query("kind", "What the document is, where that need not be detected.", &kinds)
            .query("inner", "What the text inside a bridge response must be.", &json!({ "type": "string", "enum": ["json"] }))
            .query("agent_type", "Agent types that messages may name, besides the five of the contract.", &types)
            .query("strict", "Warnings count as errors.", &truth)
            .document(run.clone())
            .needs(Needs::Either)
            .answers::<DocumentReport<'static>>(200, "What is wrong with it, and where."),
        Operation::post("/api/v1/translate", "translate_document", DOCUMENTS, "Write a document in another contract")
            .describe("What `crosspoint translate` does. A document that is not valid, or has no counterpart, is refused.")
            .query_required("to", "The contract it is to be written in.", &contracts)
            .query("kind", "What the document is, where that need not be detected.", &kinds)
            .query("agent", "The type of the agent in messages, where the document names none.", &text())
            .query("agent_type", "Agent types that messages may name, besides the five of the contract.", &types)
            .query("carry", "`false` leaves out what the other contract has no field for.", &json!({ "type": "boolean", "default": true }))
            .query("strict", "Refuse it if anything would be lost.", &truth)
            .document(run)
            .needs(Needs::Either)
            .answers::<Translated>(200, "What it became, and what was carried, lost and made up."),
        Operation::get("/schemas/{file}", "show_schema", DOCUMENTS, "Show the JSON Schema of a kind of document")
            .path("file", "The kind, and `.json`.", &json!({ "type": "string", "enum": files }))
            .needs(Needs::Nothing)
            .answers::<Any>(200, "The schema (2020-12).")
            .refuses(&[404]),
    ]
}

fn server() -> Vec<Operation> {
    vec![
        Operation::get("/openapi.json", "describe", SERVER, "This description")
            .needs(Needs::Nothing)
            .answers::<Any>(200, "An OpenAPI 3.1 document."),
        Operation::get("/metrics", "measure", SERVER, "All numbers, for Prometheus")
            .answers_text("text/plain", "The text format, version 0.0.4."),
        Operation::get("/health", "alive", SERVER, "Whether the process is there")
            .needs(Needs::Nothing)
            .answers::<Alive>(200, "It is."),
        Operation::get("/health/ready", "ready", SERVER, "Whether work is taken")
            .needs(Needs::Nothing)
            .answers::<Ready>(200, "It is.")
            .answers::<NotReady>(503, "It is not."),
    ]
}

const WAIT: &str = "Wait for the outcome up to so many seconds.";
const KEY: &str = "What makes a repeat the same request, in place of `request_id`.";

pub(super) fn seconds(facts: &Facts) -> Value {
    json!({ "type": "number", "minimum": 0, "maximum": facts.wait_max.as_secs_f64() })
}

pub(super) fn key() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX, "pattern": "^[!-~]([ -~]*[!-~])?$" })
}

pub(super) fn id() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

pub(super) fn name() -> Value {
    json!({ "type": "string", "minLength": 1, "example": "echo" })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}
