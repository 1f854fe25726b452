//! The vocabulary of agents: their output, why they failed, how far they are, what they ask, what they print.
//!
//! A program's supervisor, a link to an agent of a contract and a function that is an agent all use these types, and
//! none of them needs to know which part of the program keeps jobs. What agents print is a
//! [`Block`](crate::content::Block).

use core::time::Duration;
use std::borrow::Cow;

use crate::content::Body;
use crate::failure::{Dispatched, Failure, Repeat};
use crate::json::{Tape, Type, push_quoted};
use crate::kind::Kind;
use crate::outcome::{Text, text_within};

/// The result of an agent that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Success {
    /// The output: an object, a text, any JSON.
    pub outputs: Option<Body>,
    /// The text within the outputs or beside them.
    pub text: Option<Text>,
    /// How long the text would be in bytes, if a part of it never came; `None` where it is whole.
    pub whole_bytes: Option<u64>,
    /// A JSON array of artifacts.
    pub artifacts: Option<Body>,
    /// The resources that the work used: a JSON object of the homes that hold them.
    pub usage: Option<Body>,
    /// The agent's own document, for everything else that it said.
    pub document: Option<AgentDocument>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The failure, from the closed list.
    pub failure: Failure,
    /// Whether the agent may have begun.
    pub dispatched: Dispatched,
    /// One sentence, as a JSON string. Without it the failure's own sentence is used.
    pub message: Option<Body>,
    /// A code that is more exact than the failure, as a JSON string.
    pub code: Option<Body>,
    /// What else is known, as a JSON object: the agent's own code and details, an exit code, the answer that could not
    /// be read.
    pub details: Option<Body>,
    /// What the agent gave all the same. Boxed, because hardly any failure has it.
    pub given: Option<Box<Given>>,
    /// How the agent was lost, if it was.
    pub lost: Option<Lost>,
    /// Whether the caller may send the request again, where more is known than the closed list can say. After
    /// [`Repeat::Never`] no other attempt is made either.
    pub repeat: Option<Repeat>,
    /// The shortest time until the next attempt that the agent asks for, in seconds: `Retry-After` over HTTP. 0 if it
    /// asks for none.
    pub retry_after_seconds: u32,
    /// The agent's own document, for everything else that it said.
    pub document: Option<Box<AgentDocument>>,
}

/// How an agent was lost in the middle of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The work died with its agent: it may have begun, but certainly does not go on.
    Died,
    /// The agent dropped the connection after it had taken the request. Such an attempt counts against the agent only
    /// if its health check fails too (MSG-7).
    Dropped,
}

/// What an agent gave with a failure. It is kept like what a success gives (ALL-11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The output: an object, a text, any JSON.
    pub outputs: Option<Body>,
    /// The text within the outputs or beside them.
    pub text: Option<Text>,
    /// How long the text would be in bytes, if a part of it never came; `None` where it is whole.
    pub whole_bytes: Option<u64>,
    /// A JSON array of artifacts.
    pub artifacts: Option<Body>,
}

impl Given {
    /// Returns it for a failure, if it is anything.
    pub fn if_any(self) -> Option<Box<Given>> {
        (self != Given::default()).then(|| Box::new(self))
    }
}

/// How far a job is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// How far the work is, from 0 to 100.
    pub percent: Option<f64>,
    /// What is being done, in the agent's words, as a JSON string.
    pub step: Option<Body>,
    /// The agent's own document, with all that it said.
    pub document: Option<AgentDocument>,
    /// The agent's own document about its start, in the report that brings it.
    pub began: Option<AgentDocument>,
}

/// A question of an agent to a person: a JSON object with `prompt`, and `schema` where the answer must have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(Body);

/// What an agent said, as a document of its own contract. It is kept beside what was understood of it, for callers that
/// understand more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDocument {
    /// The kind of the document.
    pub kind: Kind,
    /// The document, without what is kept elsewhere.
    pub document: Body,
}

impl Success {
    /// Returns the result of an agent that gave only these outputs.
    pub fn of(outputs: Body) -> Success {
        let text = text_within(&outputs).map(Text::Within);
        Success { outputs: Some(outputs), text, ..Success::default() }
    }

    /// Returns what a program printed, as `{"output": text}` (ALL-8).
    pub fn printed(text: &str) -> Success {
        const BEFORE: &str = "{\"output\":";
        // The text may be long, so it is written once.
        let mut outputs = String::with_capacity(BEFORE.len() + text.len() + 16);
        outputs.push_str(BEFORE);
        push_quoted(&mut outputs, text);
        let within = BEFORE.len()..outputs.len();
        outputs.push('}');
        Success { outputs: Some(Body::trusted(outputs)), text: Some(Text::Within(within)), ..Success::default() }
    }
}

impl Failed {
    /// Whether the work died with its agent.
    pub fn has_died(&self) -> bool {
        self.lost == Some(Lost::Died)
    }

    /// Returns a failure of which no more is known.
    pub fn of(failure: Failure, dispatched: Dispatched) -> Failed {
        Failed {
            failure,
            dispatched,
            message: None,
            code: None,
            details: None,
            given: None,
            lost: None,
            repeat: None,
            retry_after_seconds: 0,
            document: None,
        }
    }

    /// Returns a failure with a message of our own.
    pub fn said(failure: Failure, dispatched: Dispatched, message: &str) -> Failed {
        Failed { message: Some(Body::of(&message)), ..Failed::of(failure, dispatched) }
    }

    /// Returns the failure of work that died with its agent.
    pub fn dead(message: &str) -> Failed {
        Failed { lost: Some(Lost::Died), ..Failed::said(Failure::Unavailable, Dispatched::Yes, message) }
    }

    /// Returns the failure of an attempt whose connection the agent dropped after it had taken the request.
    pub fn dropped(message: &str) -> Failed {
        Failed { lost: Some(Lost::Dropped), ..Failed::said(Failure::Unavailable, Dispatched::Yes, message) }
    }

    /// Adds how long the agent wants to be left alone, in whole seconds.
    #[must_use]
    pub fn asking_for(self, pause: Option<Duration>) -> Failed {
        let pause = pause.unwrap_or_default();
        let seconds = pause.as_secs().saturating_add(u64::from(pause.subsec_nanos() > 0));
        Failed { retry_after_seconds: u32::try_from(seconds).unwrap_or(u32::MAX), ..self }
    }

    /// Returns the failure as the job's caller is told it. An agent's `unauthenticated` is about the orchestrator's
    /// token, which the caller can do nothing about: to the caller the agent is unavailable, and a repeat would be
    /// refused again (RUN-5).
    #[must_use]
    pub fn by_agent(self) -> Failed {
        if self.failure != Failure::Unauthenticated {
            return self;
        }
        Failed { failure: Failure::Unavailable, repeat: Some(Repeat::Never), ..self }
    }

    /// Adds a code that is more exact than the failure.
    #[must_use]
    pub fn coded(self, code: &str) -> Failed {
        let details = Body::of(&serde_json::json!({ "code": code }));
        Failed { code: Some(Body::of(&code)), details: Some(details), ..self }
    }
}

impl Question {
    /// Wraps a question that was read before: an object with a `prompt`.
    pub fn read(object: Body) -> Question {
        Question(object)
    }

    /// Returns a question without a schema. The prompt is a JSON string.
    pub fn of(prompt: &str) -> Question {
        Question(Body::trusted(["{\"prompt\":", prompt, "}"].concat()))
    }

    /// Returns the object, as the agent wrote it.
    pub fn json(&self) -> &Body {
        &self.0
    }

    /// Returns the object as callers get it, with a schema that is an object (TASK-2.5). JSON Schema has two schemas
    /// that are not objects, and each is replaced by an object that means the same. Any other value is no schema and
    /// becomes `{}`, because it would help no caller to answer.
    pub fn for_callers(&self) -> Cow<'_, str> {
        let question = self.0.get();
        let with_object = || {
            let tape = Tape::scan(question.as_bytes()).ok()?;
            let schema = tape.root()?.get("schema").filter(|schema| schema.kind() != Type::Object)?;
            let (start, end) = schema.span();
            let object = if schema.boolean() == Some(false) { "{\"not\":{}}" } else { "{}" };
            Some([&question[..start], object, &question[end..]].concat())
        };
        with_object().map_or(Cow::Borrowed(question), Cow::Owned)
    }
}

impl serde::Serialize for Question {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl serde::Serialize for AgentDocument {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("kind", self.kind.name())?;
        map.serialize_entry("document", &self.document)?;
        map.end()
    }
}
