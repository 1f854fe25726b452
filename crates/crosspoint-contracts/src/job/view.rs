//! Typed views of a job, for code that acts on it.

use std::borrow::Cow;
use std::fmt;

use super::{Canonical, Home, State};
use crate::content::Json;
use crate::failure::Failure;
use crate::json::{Tape, Value};
use crate::map;

/// What an agent is given.
#[derive(Clone, Copy, Debug)]
pub enum Input<'j> {
    /// An object.
    Object(&'j Json<'j>),
    /// A text, and the object that goes with it.
    Prompt(&'j Json<'j>, Option<&'j Json<'j>>),
    /// The document has no input.
    None,
}

/// How a job ended: with an object, a text or both as output; or why it failed.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'j> {
    /// The work succeeded.
    Completed {
        /// The agent's output as an object.
        outputs: Option<&'j Json<'j>>,
        /// The agent's output as a text.
        text: Option<&'j Json<'j>>,
    },
    /// The work failed.
    Failed {
        /// Why, from the closed list.
        failure: Failure,
        /// The agent's own code, where it says more.
        code: Option<&'j Json<'j>>,
        /// The agent's own message.
        message: Option<&'j Json<'j>>,
    },
    /// The work was cancelled.
    Cancelled,
}

/// What happened to a job, according to one document.
#[derive(Clone, Copy, Debug)]
pub enum Event<'j> {
    /// A caller asks for the work.
    Requested,
    /// The work was accepted and waits for its turn.
    Queued,
    /// The work is being done.
    Progress {
        /// How far the work is, from 0 to 100.
        percent: Option<&'j Json<'j>>,
        /// What is being done.
        step: Option<&'j Json<'j>>,
        /// What the step printed.
        output: Option<&'j Json<'j>>,
    },
    /// The work waits for a person.
    Waiting {
        /// The question to the person.
        question: Option<&'j Json<'j>>,
    },
    /// The work has ended. Nothing follows.
    Ended(Outcome<'j>),
}

/// How many times and when a caller wants work to be tried again (TASK-7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Most attempts in all, including the first.
    pub attempts_max: Option<f64>,
    /// How the pauses grow.
    pub growth: Growth,
    /// The first pause, in milliseconds.
    pub first_millis: Option<f64>,
}

/// How the pauses between attempts grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Each pause is twice as long as the last.
    Exponential,
    /// Each pause is longer than the last by the length of the first.
    Linear,
    /// All pauses have the same length.
    Fixed,
}

/// What makes a repeat the same job, within one caller.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey(Vec<Option<String>>);

// A part of the key may say whom the work is about, so only its size is shown.
impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.0.iter().flatten().map(String::len).sum();
        write!(f, "RequestKey[{bytes} bytes]")
    }
}

impl<'s> Canonical<'s> {
    /// Returns the name that routes the work to agents.
    pub fn work(&self) -> Option<Cow<'_, str>> {
        self.get(Home::Work)?.text()
    }

    /// Returns what the agent is given.
    pub fn input(&self) -> Input<'_> {
        match (self.get(Home::Prompt), self.get(Home::Input)) {
            (Some(prompt), _) => Input::Prompt(prompt, self.get(Home::PromptContext)),
            (None, Some(object)) => Input::Object(object),
            (None, None) => Input::None,
        }
    }

    /// Returns how many times and when the work is to be tried again, where the caller says so.
    pub fn retry_policy(&self) -> Option<RetryPolicy> {
        let policy = self.get(Home::RetryPolicy)?;
        let tape = Tape::scan(policy.get().as_bytes()).ok()?;
        let root = tape.root()?;
        let number = |name: &str| root.get(name).and_then(Value::float).filter(|number| *number >= 0.0);
        let growth = root.get("backoffType").and_then(Value::text).map(|name| name.decode().into_owned());
        Some(RetryPolicy {
            attempts_max: number("maxAttempts"),
            growth: match growth.as_deref() {
                Some("linear") => Growth::Linear,
                Some("fixed") => Growth::Fixed,
                Some(_) | None => Growth::Exponential,
            },
            first_millis: number("initialDelay"),
        })
    }

    /// Returns what the document tells of the job.
    pub fn event(&self) -> Event<'_> {
        match self.state() {
            None => Event::Requested,
            Some(State::Queued) => Event::Queued,
            Some(State::Running) => Event::Progress {
                percent: self.get(Home::Percent),
                step: self.get(Home::Step),
                output: self.get(Home::StepOutput),
            },
            Some(State::Waiting) => Event::Waiting { question: self.get(Home::Question) },
            Some(State::Completed) => {
                Event::Ended(Outcome::Completed { outputs: self.get(Home::Outputs), text: self.get(Home::Text) })
            }
            Some(State::Failed) => Event::Ended(Outcome::Failed {
                failure: self.failure().unwrap_or(Failure::AgentFailed),
                code: self.get(Home::Code),
                message: self.get(Home::Message),
            }),
            Some(State::Cancelled) => Event::Ended(Outcome::Cancelled),
        }
    }

    /// Returns what makes a repeat of this request the same job, or `None` where its contract has no request key
    /// (ALL-1).
    pub fn request_key(&self) -> Option<RequestKey> {
        let homes = map::of(self.origin.contract()).key;
        let part = |home: &Home| self.get(*home).and_then(|value| Some(value.text()?.into_owned()));
        (!homes.is_empty()).then(|| RequestKey(homes.iter().map(part).collect()))
    }
}
