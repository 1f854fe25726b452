//! One line of the store: the answer to a request, or that work was begun which must not be begun again.

use std::borrow::Cow;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Reason, Status, Text, text_within};
use crosspoint_contracts::printed::Partial;
use crosspoint_contracts::reply::{Failed, Question};
use crosspoint_contracts::request::Door;
use crosspoint_contracts::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::seal::Sealed;
use crate::backend::Name;
use crate::questions::Answered;
use crate::record::{Asked, Record};
use crate::same::Likeness;

/// About how long the name of a member and what stands around it is, in bytes.
const MEMBER_BYTES: usize = 24;

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
    #[serde(borrow, skip_serializing)]
    outcome: Option<Ended<'l>>,
    /// What people have answered so far, of work that is begun again if it is interrupted.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    answered: Option<Vec<Said<'l>>>,
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
    /// The orchestrator that is to be told of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owed_to: Option<Box<str>>,
}

/// A question, and the answer that a person gave.
#[derive(Serialize, Deserialize)]
struct Said<'l> {
    #[serde(borrow)]
    question: Cow<'l, RawValue>,
    #[serde(borrow)]
    answer: Cow<'l, RawValue>,
}

/// The parts of an outcome. They are written by [`push_outcome`].
#[derive(Deserialize)]
struct Ended<'l> {
    status: Cow<'l, str>,
    failure: Option<Cow<'l, str>>,
    repeat: Option<Cow<'l, str>>,
    #[serde(borrow)]
    message: Option<&'l RawValue>,
    #[serde(borrow)]
    code: Option<&'l RawValue>,
    #[serde(borrow)]
    details: Option<&'l RawValue>,
    #[serde(borrow)]
    outputs: Option<&'l RawValue>,
    #[serde(borrow)]
    beside: Option<&'l RawValue>,
    /// Whether that text is not what was printed, because some bytes of it were no UTF-8.
    #[serde(default)]
    lossy: bool,
    #[serde(borrow)]
    artifacts: Option<&'l RawValue>,
    #[serde(borrow)]
    usage: Option<&'l RawValue>,
}

/// An answer that was found again.
pub(crate) struct Kept {
    pub(crate) likeness: Likeness,
    pub(crate) at: Time,
    pub(crate) outcome: Outcome,
    /// What people have answered, of work that was interrupted and is begun again.
    pub(crate) answered: Option<Vec<Answered>>,
    /// The names that its caller knows it by.
    pub(crate) names: Vec<Name>,
    request_id: Box<str>,
    job: Option<About>,
}

impl<'l> Line<'l> {
    /// Returns the line of a request that has an answer, under these names.
    pub(super) fn ended(job: &Record, names: &[Box<str>], at: Time, outcome: &Outcome) -> Sealed {
        let mut line = Line { job: Some(About::of(job)), ..Line::of(&job.asked, names, at) }.text();
        // The outcome is the last member.
        line.pop();
        push_outcome(&mut line, outcome);
        line.push(b'}');
        Sealed::of(&line)
    }

    /// Returns the line of work that was begun.
    pub(super) fn begun(job: &Record, names: &[Box<str>]) -> Sealed {
        Line { job: Some(About::of(job)), ..Line::of(&job.asked, names, crate::clock::now()) }.sealed()
    }

    /// Returns the line of work under way that was given these answers.
    pub(super) fn answered(job: &Record, names: &[Box<str>], answered: &[Answered]) -> Sealed {
        let said = answered.iter().filter_map(Said::of).collect();
        let about = Some(About::of(job));
        Line { job: about, answered: Some(said), ..Line::of(&job.asked, names, crate::clock::now()) }.sealed()
    }

    /// Returns the line of work that was not done after all.
    pub(super) fn undone(asked: &Asked, names: &[Box<str>]) -> Sealed {
        Line { undone: true, ..Line::of(asked, names, crate::clock::now()) }.sealed()
    }

    /// Returns the line that says that an outcome was told.
    pub(super) fn told(names: &[Box<str>]) -> Sealed {
        let line = Line {
            names: names.iter().map(|name| Cow::Borrowed(&**name)).collect(),
            likeness: "".into(),
            at: crate::clock::now().0,
            request_id: "".into(),
            job: None,
            outcome: None,
            answered: None,
            undone: false,
        };
        line.sealed()
    }

    fn of(asked: &'l Asked, names: &'l [Box<str>], at: Time) -> Line<'l> {
        Line {
            names: names.iter().map(|name| Cow::Borrowed(&**name)).collect(),
            likeness: asked.likeness().text().into(),
            at: at.0,
            request_id: (&*asked.request_id).into(),
            job: None,
            outcome: None,
            answered: None,
            undone: false,
        }
    }

    fn sealed(self) -> Sealed {
        Sealed::of(&self.text())
    }

    fn text(self) -> Vec<u8> {
        serde_json::to_vec(&self).unwrap_or_default()
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

    /// Returns the job whose outcome is in this line, and the orchestrator that is to be told of it.
    pub(super) fn owed(&self) -> Option<(Uuid, &str)> {
        let job = self.job.as_ref().filter(|_| self.outcome.is_some())?;
        Some((job.id.parse().ok()?, job.owed_to.as_deref()?))
    }

    pub(super) fn into_kept(self) -> Kept {
        let outcome = self.outcome.as_ref().and_then(Ended::outcome);
        let answered = self.answered.as_ref().filter(|_| self.outcome.is_none());
        Kept {
            answered: answered.map(|said| said.iter().map(Said::answered).collect()),
            likeness: Likeness::read(&self.likeness),
            at: Time(self.at),
            names: self.names().filter_map(Name::read).collect(),
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
            owed_to: asked.owed_to.as_deref().map(Into::into),
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
            owed_to: job.owed_to.as_deref().map(Into::into),
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

impl Said<'_> {
    fn of(answered: &Answered) -> Option<Said<'static>> {
        Some(Said { question: in_line(answered.question.json())?, answer: in_line(&answered.answer)? })
    }

    fn answered(&self) -> Answered {
        let body = |raw: &RawValue| Body::trusted(raw.get().to_owned());
        Answered { question: Question::read(body(&self.question)), answer: body(&self.answer) }
    }
}

/// Returns JSON for a line. A line break can only stand between its parts, and would end the line.
fn in_line(json: &Body) -> Option<Cow<'static, RawValue>> {
    RawValue::from_string(json.get().replace('\n', " ")).ok().map(Cow::Owned)
}

/// Writes an outcome as the next member of a line. What it holds is JSON already, and is not read for it.
fn push_outcome(line: &mut Vec<u8>, outcome: &Outcome) {
    let reason = outcome.reason.as_ref();
    let (beside, is_lossy) = match &outcome.text {
        Some(Text::Beside(text)) => (Some(text), false),
        Some(Text::Partial(partial)) => (Some(&partial.text), partial.is_lossy),
        Some(Text::Within(_) | Text::Printed(_)) | None => (None, false),
    };
    let words = [
        ("failure", reason.map(|reason| reason.failure.name())),
        ("repeat", reason.map(|reason| reason.repeat.name())),
    ];
    let parts = [
        ("message", reason.and_then(|reason| reason.message.as_ref())),
        ("code", reason.and_then(|reason| reason.code.as_ref())),
        ("details", reason.and_then(|reason| reason.details.as_ref())),
        ("outputs", outcome.outputs.as_ref()),
        ("beside", beside),
        ("artifacts", outcome.artifacts.as_ref()),
        ("usage", outcome.usage.as_ref()),
    ];
    let bytes: usize = parts.iter().filter_map(|(_, part)| Some(part.as_ref()?.get().len() + MEMBER_BYTES)).sum();
    line.reserve(bytes + 4 * MEMBER_BYTES);
    let word = |line: &mut Vec<u8>, before: &str, name: &str, word: &str| {
        [before, "\"", name, "\":\"", word, "\""].iter().for_each(|part| line.extend_from_slice(part.as_bytes()));
    };
    line.extend_from_slice(b",\"outcome\":{");
    word(line, "", "status", outcome.status.name());
    for (name, said) in words {
        said.into_iter().for_each(|said| word(line, ",", name, said));
    }
    for (name, part) in parts {
        if let Some(part) = part {
            [",\"", name, "\":"].iter().for_each(|part| line.extend_from_slice(part.as_bytes()));
            push_json(line, part.get());
        }
    }
    if is_lossy {
        line.extend_from_slice(b",\"lossy\":true");
    }
    line.push(b'}');
}

/// Appends JSON to a line. A line break can only stand between its parts, and would end the line.
pub(super) fn push_json(line: &mut Vec<u8>, json: &str) {
    let start = line.len();
    line.extend_from_slice(json.as_bytes());
    line[start..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
}

impl Ended<'_> {
    fn outcome(&self) -> Option<Outcome> {
        let body = |raw: &Option<&RawValue>| raw.map(|raw| Body::trusted(raw.get().to_owned()));
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
        let beside = body(&self.beside).map(|text| match self.lossy {
            true => Text::Partial(Box::new(Partial { text, truncated: None, is_lossy: true })),
            false => Text::Beside(text),
        });
        Some(Outcome {
            status: Status::ALL.into_iter().find(|status| status.name() == self.status)?,
            reason,
            text: beside.or(within),
            outputs,
            whole_bytes: None,
            artifacts: body(&self.artifacts),
            usage: body(&self.usage),
            document: None,
        })
    }
}
