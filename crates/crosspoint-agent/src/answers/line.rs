//! One line of the store: the answer to a request, or that work was begun which must not be begun again.

use std::borrow::Cow;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Reason, Status, Text, text_within};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::request::Door;
use crosspoint_contracts::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::record::{Asked, Record};
use crate::same::{Likeness, hex};

/// How many hexadecimal digits of its digest stand before a line.
const SEAL_BYTES: usize = 16;

/// What is stored of one request.
#[derive(Serialize, Deserialize)]
pub(super) struct Line<'l> {
    #[serde(borrow)]
    names: Vec<Cow<'l, str>>,
    likeness: Cow<'l, str>,
    at: i64,
    request_id: Cow<'l, str>,
    /// What callers that ask for the job are told beside its outcome. Lines of the first version have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<About>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    outcome: Option<Ended<'l>>,
    /// Whether the work was not done after all, and may be begun again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undone: bool,
}

/// What is known of a job.
#[derive(Serialize, Deserialize)]
struct About {
    id: Box<str>,
    door: Box<str>,
    caller: Box<str>,
    work: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    echo: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<i64>,
}

/// The parts of an outcome.
#[derive(Serialize, Deserialize)]
struct Ended<'l> {
    status: Cow<'l, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Cow<'l, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Cow<'l, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'l, RawValue>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    code: Option<Cow<'l, RawValue>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    details: Option<Cow<'l, RawValue>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    outputs: Option<Cow<'l, RawValue>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    beside: Option<Cow<'l, RawValue>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    artifacts: Option<Cow<'l, RawValue>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    usage: Option<Cow<'l, RawValue>>,
}

/// An answer that was found again.
pub(crate) struct Kept {
    pub(crate) likeness: Likeness,
    pub(crate) at: Time,
    pub(crate) outcome: Outcome,
    request_id: Box<str>,
    job: Option<About>,
}

impl<'l> Line<'l> {
    /// Returns the line of a request that has an answer.
    pub(super) fn ended(job: &Record, at: Time, outcome: &Outcome) -> Vec<u8> {
        let line = Line::of(&job.asked, at);
        line.text(Some(About::of(job)), Some(Ended::of(outcome)))
    }

    /// Returns the line of work that was begun.
    pub(super) fn begun(job: &Record) -> Vec<u8> {
        Line::of(&job.asked, crate::clock::now()).text(Some(About::of(job)), None)
    }

    /// Returns the line of work that was not done after all.
    pub(super) fn undone(asked: &Asked) -> Vec<u8> {
        Line { undone: true, ..Line::of(asked, crate::clock::now()) }.text(None, None)
    }

    fn of(asked: &'l Asked, at: Time) -> Line<'l> {
        Line {
            names: super::names(asked).map(|name| name.text().into()).collect(),
            likeness: asked.likeness().text().into(),
            at: at.0,
            request_id: (&*asked.request_id).into(),
            job: None,
            outcome: None,
            undone: false,
        }
    }

    fn text(self, job: Option<About>, outcome: Option<Ended<'l>>) -> Vec<u8> {
        serde_json::to_vec(&Line { job, outcome, ..self }).unwrap_or_default()
    }

    pub(super) fn read(line: &'l [u8]) -> Option<Line<'l>> {
        serde_json::from_slice(line).ok()
    }

    pub(super) fn is_undone(&self) -> bool {
        self.undone
    }

    pub(super) fn at(&self) -> Time {
        Time(self.at)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    pub(super) fn into_kept(self) -> Kept {
        let outcome = self.outcome.as_ref().and_then(Ended::outcome);
        Kept {
            likeness: Likeness::read(&self.likeness),
            at: Time(self.at),
            outcome: outcome.unwrap_or_else(interrupted),
            request_id: self.request_id.into(),
            job: self.job,
        }
    }
}

/// The outcome of work that was begun, is done at most once, and has no answer.
fn interrupted() -> Outcome {
    let message = "the agent ended while it did this work, which is done at most once";
    let failed = Failed::said(Failure::AgentFailed, Dispatched::Yes, message).coded("INTERRUPTED");
    Outcome::failed(failed, Repeat::Unknown)
}

impl About {
    fn of(job: &Record) -> About {
        let asked = &*job.asked;
        About {
            id: asked.id.to_string().into(),
            door: asked.door.name().into(),
            caller: (&*asked.caller).into(),
            work: (&*asked.work).into(),
            pinned: asked.pinned.as_deref().map(Into::into),
            echo: asked.echo.clone(),
            trace: asked.trace.clone(),
            started_at: job.started_at.map(|at| at.0),
        }
    }
}

impl Kept {
    /// Returns when the work was begun.
    pub(crate) fn started_at(&self) -> Option<Time> {
        match &self.job {
            Some(job) => job.started_at.map(Time),
            None => Some(self.at),
        }
    }

    /// Returns what was asked for, without the document; `None` if the line does not say it.
    pub(crate) fn asked(&self) -> Option<Asked> {
        let job = self.job.as_ref()?;
        Some(Asked {
            id: job.id.parse().ok()?,
            door: Door::from_name(&job.door)?,
            caller: (&*job.caller).into(),
            request_id: self.request_id.clone(),
            names: Vec::new(),
            likeness: self.likeness.clone().into(),
            work: (&*job.work).into(),
            pinned: job.pinned.as_deref().map(Into::into),
            echo: job.echo.clone(),
            trace: job.trace.clone(),
            deadline: None,
            is_asking_free: false,
            memory_bytes: None,
            document: Block(Bytes::new()),
            input: Body::trusted("{}"),
        })
    }

    /// Returns what was asked for. What the line does not say is as in this request, which came again.
    pub(crate) fn asked_again(&self, again: &Asked) -> Asked {
        let again =
            Asked { request_id: self.request_id.clone(), likeness: self.likeness.clone().into(), ..again.clone() };
        match self.asked() {
            Some(asked) => Asked { document: again.document, input: again.input, ..asked },
            None => again,
        }
    }
}

impl<'l> Ended<'l> {
    fn of(outcome: &Outcome) -> Ended<'static> {
        let raw = |body: Option<&Body>| body.and_then(|body| RawValue::from_string(body.get().to_owned()).ok());
        let raw = |body: Option<&Body>| raw(body).map(Cow::Owned);
        let reason = outcome.reason.as_ref();
        let beside = match &outcome.text {
            Some(Text::Beside(text)) => Some(text),
            Some(Text::Within(_) | Text::Printed(_) | Text::Partial(_)) | None => None,
        };
        Ended {
            status: outcome.status.name().into(),
            failure: reason.map(|reason| reason.failure.name().into()),
            repeat: reason.map(|reason| reason.repeat.name().into()),
            message: raw(reason.and_then(|reason| reason.message.as_ref())),
            code: raw(reason.and_then(|reason| reason.code.as_ref())),
            details: raw(reason.and_then(|reason| reason.details.as_ref())),
            outputs: raw(outcome.outputs.as_ref()),
            beside: raw(beside),
            artifacts: raw(outcome.artifacts.as_ref()),
            usage: raw(outcome.usage.as_ref()),
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        let body = |raw: &Option<Cow<'_, RawValue>>| raw.as_ref().map(|raw| Body::trusted(raw.get().to_owned()));
        let reason = match &self.failure {
            Some(failure) => Some(Reason {
                failure: Failure::from_name(failure)?,
                repeat: Repeat::from_name(self.repeat.as_deref()?)?,
                message: body(&self.message),
                code: body(&self.code),
                details: body(&self.details),
            }),
            None => None,
        };
        let outputs = body(&self.outputs);
        let within = outputs.as_ref().and_then(text_within).map(Text::Within);
        Some(Outcome {
            status: Status::ALL.into_iter().find(|status| status.name() == self.status)?,
            reason,
            text: body(&self.beside).map(Text::Beside).or(within),
            outputs,
            whole_bytes: None,
            artifacts: body(&self.artifacts),
            usage: body(&self.usage),
            document: None,
        })
    }
}

/// Returns a line as it stands in the file.
pub(super) fn sealed(line: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(SEAL_BYTES + line.len() + 2);
    sealed.extend_from_slice(seal(line).as_bytes());
    sealed.push(b' ');
    sealed.extend_from_slice(line);
    sealed.push(b'\n');
    sealed
}

/// Returns what a line of the file holds, if it is whole.
pub(super) fn is_whole(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (found, rest) = line.split_at_checked(SEAL_BYTES)?;
    let rest = rest.strip_prefix(b" ")?;
    (found == seal(rest).as_bytes()).then_some(rest)
}

fn seal(line: &[u8]) -> String {
    hex(&Sha256::digest(line)[..SEAL_BYTES / 2])
}
