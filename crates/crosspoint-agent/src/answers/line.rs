//! One line of the store: the answer to a request, or that work was begun which must not be begun again.

use std::borrow::Cow;
use std::sync::Arc;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Reason, Status, Text, text_within};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::record::{Asked, Job, Phase, Record};
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
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    outcome: Option<Ended<'l>>,
    /// Whether the work was not done after all, and may be begun again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undone: bool,
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
}

/// An answer that was found again.
pub(crate) struct Kept {
    likeness: Likeness,
    at: Time,
    request_id: Box<str>,
    outcome: Outcome,
}

impl<'l> Line<'l> {
    /// Returns the line of a request that has an answer.
    pub(super) fn ended(asked: &Asked, outcome: &Outcome) -> Vec<u8> {
        Line::write(asked, (Some(Ended::of(outcome)), false))
    }

    /// Returns the line of work that was begun.
    pub(super) fn begun(asked: &Asked) -> Vec<u8> {
        Line::write(asked, (None, false))
    }

    /// Returns the line of work that was not done after all.
    pub(super) fn undone(asked: &Asked) -> Vec<u8> {
        Line::write(asked, (None, true))
    }

    fn write(asked: &Asked, (outcome, undone): (Option<Ended<'_>>, bool)) -> Vec<u8> {
        let line = Line {
            names: asked.names.iter().map(|name| name.text().into()).collect(),
            likeness: asked.likeness.text().into(),
            at: crate::clock::now().0,
            request_id: (&*asked.request_id).into(),
            outcome,
            undone,
        };
        serde_json::to_vec(&line).unwrap_or_default()
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
            request_id: self.request_id.into(),
            outcome: outcome.unwrap_or_else(interrupted),
        }
    }
}

/// The outcome of work that was begun, is done at most once, and has no answer.
fn interrupted() -> Outcome {
    let message = "the agent ended while it did this work, which is done at most once";
    let failed = Failed::said(Failure::AgentFailed, Dispatched::Yes, message).coded("INTERRUPTED");
    Outcome::failed(failed, Repeat::Unknown)
}

impl Kept {
    /// Returns the ended job, and what the request for it was like.
    pub(crate) fn into_job(self, like: &Record) -> (Job, Likeness) {
        let asked = &like.asked;
        let asked = Asked {
            id: asked.id,
            door: asked.door,
            caller: asked.caller.clone(),
            request_id: self.request_id,
            names: asked.names.clone(),
            likeness: asked.likeness.clone(),
            work: asked.work.clone(),
            pinned: asked.pinned.clone(),
            echo: asked.echo.clone(),
            trace: asked.trace.clone(),
            deadline: None,
            is_asking_free: false,
            memory_bytes: None,
            document: asked.document.clone(),
            input: asked.input.clone(),
        };
        let phase = Phase::Ended { at: self.at, outcome: Arc::new(self.outcome) };
        let (job, _) = Job::new(Record { asked: Arc::new(asked), phase, started_at: Some(self.at), ..like.clone() });
        (job, self.likeness)
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
            usage: None,
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
