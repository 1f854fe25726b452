//! The lines of an export. Each is one JSON object with a `kind`. docs/operations.md describes them, and programs that
//! read exports depend on that.

use std::ops::Not;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::request::{Backoff, Key, Limits};
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::Breaker;
use crosspoint_engine::core::{Member, Standing};
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, State};
use crosspoint_engine::keys::Name;
use crosspoint_engine::policy::{Recovery, Repeats};
use crosspoint_engine::store::{AuditRow, Found};
use serde::Serialize;

use crate::server::view::{self, Beside};

/// Version of the format. The meaning of the lines changes only with this number.
const FORMAT: u32 = 1;

/// Every line except the `job` lines.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line<'l> {
    /// The first line.
    Store {
        format: u32,
        schema: i64,
        last_job: Option<u64>,
        exported_at: Time,
    },
    Agent {
        name: &'l str,
        drained: bool,
        breaker: &'static str,
        failures: u32,
        until: Option<Time>,
    },
    Member {
        name: &'l str,
        contract: &'l str,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_type: Option<&'l str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        concurrency: Option<u32>,
        work: &'l [Arc<str>],
        lease_seconds: f64,
        silence_seconds: Option<f64>,
        total_seconds: f64,
        output_bytes: u64,
        repeats: &'static str,
        recovery: &'static str,
        left_at: Option<Time>,
        #[serde(skip_serializing_if = "Option::is_none")]
        registration: Option<Bytes<'l>>,
    },
    Document {
        job: JobId,
        #[serde(flatten)]
        bytes: Bytes<'l>,
    },
    Event {
        job: JobId,
        n: u32,
        event: &'static str,
        data: Data<'l>,
    },
    Violation {
        job: JobId,
        #[serde(flatten)]
        found: &'l Found,
    },
    /// The job was removed while it was read: the lines about it before this one do not count.
    Gone {
        job: JobId,
    },
    /// Who did what.
    Audit {
        seq: i64,
        at: Time,
        who: &'l str,
        act: &'static str,
        job: Option<String>,
        object: Option<&'l str>,
    },
    /// The job could not be read, or not to its end. The same may hold for those after it. Among entries of the audit,
    /// the entry with this number could not be read.
    Unread {
        seq: u64,
    },
    /// The last line.
    End {
        #[serde(skip_serializing_if = "Option::is_none")]
        jobs: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        entries: Option<u64>,
        unread: u64,
    },
}

/// Text as it is, and other bytes in a form from which they can be restored exactly.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bytes<'b> {
    Text(&'b str),
    Base64(String),
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Data<'e> {
    Output {
        at: Time,
        attempt: u32,
        offset: u64,
        #[serde(flatten)]
        bytes: Bytes<'e>,
    },
    /// The outcome itself is in the line of the job.
    End {
        at: Time,
    },
    Other(view::Event<'e>),
}

/// What callers are not shown of a job, and what is needed to move it elsewhere.
#[derive(Serialize)]
struct Record<'j> {
    seq: u64,
    caller: &'j str,
    /// The request key: `null`, `{"request_id": ...}` or `{"key": ...}`.
    request_key: Option<KeyShown<'j>>,
    /// The keys and ids that repeats of the request came with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    further_names: Vec<NameShown<'j>>,
    pinned: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    addressed: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    echo: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notify: Option<&'j str>,
    /// Whether the recipient has not been told the outcome.
    #[serde(skip_serializing_if = "Not::not")]
    owed: bool,
    traceparent: Option<&'j str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'j str>,
    limits: LimitsShown,
    input: [u32; 2],
    events: u32,
    retries: u32,
    begun: bool,
    #[serde(skip_serializing_if = "Not::not")]
    stays: bool,
    started_at: Option<Time>,
    waited_seconds: f64,
    output_bytes: u64,
    questions_asked: Option<u32>,
    retry: Option<RetryShown>,
    answers: Vec<[&'j Body; 2]>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum KeyShown<'j> {
    RequestId(&'j str),
    Key(&'j str),
}

/// A key, or the caller's id at a door.
#[derive(Serialize)]
struct NameShown<'j> {
    #[serde(skip_serializing_if = "Option::is_none")]
    door: Option<&'static str>,
    #[serde(flatten)]
    name: KeyShown<'j>,
}

#[derive(Serialize)]
struct LimitsShown {
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_seconds: Option<f64>,
    silence_seconds: Option<f64>,
    output_bytes: Option<u64>,
    attempts: Option<u32>,
    backoff: Option<&'static str>,
    first_seconds: Option<f64>,
}

#[derive(Serialize)]
struct RetryShown {
    until: Time,
    after: &'static str,
}

impl<'l> Line<'l> {
    pub(super) fn store(schema: i64, last: Option<Seq>) -> Line<'l> {
        Line::Store {
            format: FORMAT,
            schema,
            last_job: last.map(|seq| seq.0),
            exported_at: crosspoint_engine::wall_clock::now(),
        }
    }

    pub(super) fn agent(name: &'l str, standing: &Standing) -> Line<'l> {
        let (failures, until) = match standing.breaker {
            Breaker::Closed { failures } => (failures, None),
            Breaker::Open { until } => (0, Some(until)),
            Breaker::HalfOpen => (0, None),
        };
        Line::Agent { name, drained: standing.drained, breaker: standing.breaker.name(), failures, until }
    }

    pub(super) fn member(member: &'l Member) -> Line<'l> {
        let (spec, policy) = (&member.spec, &member.spec.policy);
        Line::Member {
            name: &spec.name,
            contract: &spec.contract,
            agent_type: spec.agent_type.as_deref(),
            concurrency: (spec.concurrency > 0).then_some(spec.concurrency),
            work: &spec.works,
            lease_seconds: member.lease.as_secs_f64(),
            silence_seconds: policy.silence.map(|silence| silence.as_secs_f64()),
            total_seconds: policy.total.as_secs_f64(),
            output_bytes: policy.output_bytes_max,
            repeats: match policy.repeats {
                Repeats::Always => "always",
                Repeats::SameAgent => "same_agent",
                Repeats::BeforeStart => "before_start",
            },
            recovery: match policy.recovery {
                Recovery::Rerun => "rerun",
                Recovery::Resume => "resume",
                Recovery::ResumeOnce => "resume_once",
                Recovery::Fail => "fail",
            },
            left_at: member.left_at,
            registration: member.registration.as_ref().map(Bytes::of),
        }
    }

    pub(super) fn audit(row: &'l AuditRow) -> Line<'l> {
        let AuditRow { seq, entry } = row;
        let (act, object) = (entry.act.word(), entry.object.as_deref());
        let job = entry.job.map(|job| job.to_string());
        Line::Audit { seq: *seq, at: entry.at, who: &entry.who, act, job, object }
    }

    pub(super) fn document(job: JobId, document: &'l Block) -> Line<'l> {
        Line::Document { job, bytes: Bytes::of(document) }
    }

    pub(super) fn event(job: JobId, entry: &'l Entry) -> Line<'l> {
        let at = entry.at;
        let data = match &entry.what {
            What::Output { attempt, offset, block } => {
                Data::Output { at, attempt: *attempt, offset: *offset, bytes: Bytes::of(block) }
            }
            What::Ended(_) => Data::End { at },
            What::Accepted
            | What::Started { .. }
            | What::Progress(_)
            | What::Asked { .. }
            | What::Answered { .. }
            | What::Step { .. }
            | What::Retrying { .. }
            | What::Interrupted { .. } => Data::Other(view::Event { entry, violations: &[] }),
        };
        Line::Event { job, n: entry.n, event: entry.what.name(), data }
    }

    /// Returns the line without its line break.
    pub(super) fn bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self).map(on_one_line)
    }
}

impl<'b> Bytes<'b> {
    fn of(block: &'b Block) -> Bytes<'b> {
        std::str::from_utf8(&block.0).map_or_else(|_| Bytes::Base64(STANDARD.encode(&block.0)), Bytes::Text)
    }
}

/// Returns the job as the API shows it, with its whole outcome, and its record.
pub(super) fn job(job: &Job, further: &[Name], is_owed: bool) -> serde_json::Result<Vec<u8>> {
    let shown = view::job(job, &Beside::default());
    let record = serde_json::to_vec(&record(job, further, is_owed))?;
    Ok(on_one_line([&br#"{"kind":"job","job":"#[..], &shown, br#","record":"#, &record, b"}"].concat()))
}

fn record<'j>(job: &'j Job, further: &'j [Name], is_owed: bool) -> Record<'j> {
    let request = &job.request;
    let retry = match &job.state {
        State::Retrying { until, after } => Some(RetryShown { until: *until, after: after.name() }),
        State::Queued | State::Running(_) | State::Waiting { .. } | State::Poisoned | State::Ended(_) => None,
    };
    Record {
        seq: job.seq().0,
        caller: &request.caller,
        request_key: match &request.key {
            Key::None => None,
            Key::RequestId => Some(KeyShown::RequestId(&request.request_id)),
            Key::Other(key) => Some(KeyShown::Key(key)),
        },
        further_names: further.iter().map(name).collect(),
        pinned: request.pinned.as_deref(),
        addressed: request.addressed.as_deref(),
        echo: request.echo.as_deref(),
        notify: request.notify.as_deref(),
        owed: is_owed,
        traceparent: request.trace.as_deref().and_then(|trace| trace.lines().next()),
        tracestate: request.trace.as_deref().and_then(|trace| trace.lines().nth(1)),
        limits: limits(&request.limits),
        input: [request.input.start, request.input.end],
        events: job.events,
        retries: job.retries,
        begun: job.begun,
        stays: job.stays,
        started_at: job.started_at,
        waited_seconds: job.waited.as_secs_f64(),
        output_bytes: job.output_bytes,
        questions_asked: job.running().map(|running| running.asked),
        retry,
        answers: job.answers.iter().map(|answered| [answered.question.json(), &answered.answer]).collect(),
    }
}

fn name(name: &Name) -> NameShown<'_> {
    match name.door {
        None => NameShown { door: None, name: KeyShown::Key(&name.text) },
        Some(door) => NameShown { door: Some(door.name()), name: KeyShown::RequestId(&name.text) },
    }
}

fn limits(limits: &Limits) -> LimitsShown {
    let retry = limits.retry.as_ref();
    LimitsShown {
        seconds: limits.total.map(|total| total.as_secs_f64()),
        attempt_seconds: limits.attempt.map(|attempt| attempt.as_secs_f64()),
        silence_seconds: limits.silence.map(|silence| silence.as_secs_f64()),
        output_bytes: limits.output_bytes,
        attempts: retry.map(|retry| retry.attempts_max),
        backoff: retry.map(|retry| match retry.backoff {
            Backoff::Exponential => "exponential",
            Backoff::Linear => "linear",
            Backoff::Fixed => "fixed",
        }),
        first_seconds: retry.map(|retry| retry.first.as_secs_f64()),
    }
}

/// Replaces line breaks by spaces. JSON of callers and agents is written as it came, and may have line breaks between
/// its values. Strings contain none, so the meaning does not change.
fn on_one_line(mut json: Vec<u8>) -> Vec<u8> {
    for byte in &mut json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    json
}
