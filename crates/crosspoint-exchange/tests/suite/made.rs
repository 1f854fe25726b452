//! Documents and jobs that the tests are made of.

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::request::{Door, NewJob, Priority};
use crosspoint_contracts::time::Time;
use crosspoint_contracts::{Contract, Kind, Options, read};
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::incoming;
use crosspoint_exchange::outgoing::{self, AgentOptions, Assignment, Outgoing};
use crosspoint_exchange::snapshot::{Snapshot, State};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const REQUEST: &str = "550e8400-e29b-41d4-a716-446655440003";
pub(crate) const TASK: &str = "550e8400-e29b-41d4-a716-446655440004";
pub(crate) const TRACE: &str = "550E8400-e29b-41d4-a716-446655440002";
pub(crate) const JOB: &str = "01987a5d-ac96-774b-bcce-b302099a8057";

/// 2027-01-15, 08:00:00.
pub(crate) const NOW: Time = Time(1_800_000_000_000_000);

pub(crate) fn job_id() -> Uuid {
    JOB.parse().expect("a UUID")
}

/// A request of the message contract, from an agent that asks for work.
pub(crate) fn work_request() -> Value {
    json!({
        "protocol_version": "1.0",
        "message_id": "550e8400-e29b-41d4-a716-446655440001",
        "from_agent": "research",
        "to_agent": "infra",
        "timestamp": "2026-01-19T04:21:04Z",
        "trace_id": TRACE,
        "request_id": REQUEST,
        "type": "work_request",
        "payload": {"task_id": TASK, "work_type": "deploy"}
    })
}

/// Reads a request at the door of its contract.
pub(crate) fn came(contract: Contract, document: &Value, headers: Headers) -> NewJob {
    let bytes = Bytes::from(document.to_string());
    incoming::read(contract, &bytes, headers).unwrap_or_else(|report| panic!("{report:?} in {document}")).new
}

/// A job of the message door that runs. Its parts are replaced where a test is about them.
pub(crate) fn snapshot<'j>(new: &'j NewJob, state: State<'j>) -> Snapshot<'j> {
    Snapshot {
        id: job_id(),
        request_id: new.request_id.as_deref().unwrap_or_default(),
        work: &new.work,
        door: new.door,
        pinned: new.agent.as_deref(),
        agent: Some("infra-1"),
        agent_type: None,
        echo: new.echo.as_deref(),
        state,
        progress: None,
        began: None,
        progress_at: Time::default(),
        events: 3,
        answers: 0,
        attempts: 2,
        retries: 1,
        started_at: Some(NOW),
        updated_at: Time(NOW.0 + 1_000_000),
    }
}

/// Checks that a document is one of this kind without any fault, and returns it.
pub(crate) fn faultless(text: &str, kind: Kind) -> Value {
    faultless_among(text, kind, &[])
}

pub(crate) fn faultless_among(text: &str, kind: Kind, agent_types: &[&str]) -> Value {
    let report = read(text.as_bytes(), &Options { kind: Some(kind), agent_types, ..Options::default() }).report;
    assert!(report.findings.is_empty(), "{report:?} in {text}");
    serde_json::from_str(text).expect("JSON")
}

/// What a caller of the message contract is told.
pub(crate) fn told(job: &Snapshot<'_>, kind: Kind) -> Value {
    faultless(&answer::document(job, Contract::Message, &Beside::default()), kind)
}

pub(crate) fn options(contract: Contract) -> AgentOptions {
    AgentOptions {
        contract,
        agent: "infra-1".into(),
        server: "crosspoint".into(),
        mode: None,
        carry: true,
        agent_type: None,
        agent_types: [].into(),
    }
}

/// One attempt of a job.
pub(crate) fn assignment<'a>(new: &'a NewJob, document: &'a Block, attempt: u32) -> Assignment<'a> {
    Assignment {
        id: job_id(),
        attempt,
        door: new.door,
        request_id: new.request_id.as_deref().unwrap_or_default(),
        work: &new.work,
        priority: Priority::Normal,
        seconds_max: new.limits.total,
        time_left: None,
        trace: new.trace.as_deref(),
        accepted_at: NOW,
        document,
        input: (new.door == Door::Native).then(|| document.0.slice(new.input.clone())),
        message_id: Uuid::from_u128(u128::from(attempt)),
        now: Time(NOW.0 + i64::from(attempt) * 1_000_000),
        answer: None,
    }
}

pub(crate) fn sent(new: &NewJob, attempt: u32, options: &AgentOptions) -> Outgoing {
    let document = new.document.clone();
    outgoing::request(&assignment(new, &document, attempt), options).unwrap_or_else(|failed| panic!("{failed:?}"))
}
