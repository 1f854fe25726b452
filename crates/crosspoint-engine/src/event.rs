//! What happens to a job and is stored: its events, in order.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crosspoint_contracts::failure::Failure;

use crate::content::{Block, Body};
use crate::job::{Outcome, Progress};
use crate::time::Time;

/// One event of a job. The first is number 1, and the outcome is the last.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number within the job.
    pub n: u32,
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// It is on disk.
    Accepted,
    /// An agent was given it.
    Started {
        /// Which attempt that is.
        attempt: u32,
        /// Which agent.
        agent: Box<str>,
    },
    /// It goes on.
    Progress(Progress),
    /// It printed something.
    Output {
        /// By which attempt: a new one begins at 0 again.
        attempt: u32,
        /// Where in the attempt's output the block begins, in bytes.
        offset: u64,
        /// The bytes.
        block: Block,
    },
    /// It needs a person.
    Asked {
        /// What is asked: `{prompt, schema?}`.
        question: Body,
    },
    /// A person answered.
    Answered {
        /// What they said: any JSON.
        answer: Body,
    },
    /// An attempt failed, and there will be another.
    Retrying {
        /// The attempt that failed.
        attempt: u32,
        /// Why.
        failure: Failure,
        /// When the next is due.
        until: Time,
    },
    /// An attempt was cut short by our own end, or never reached an agent that had gone; and there will be another.
    Interrupted {
        /// The attempt.
        attempt: u32,
    },
    /// It ended.
    Ended(std::sync::Arc<Outcome>),
}

/// Something that should not have happened, and was not applied: kept beside the job, because nothing follows an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken.
    pub clause: &'static str,
    /// What was broken about it, without content.
    pub what: Cow<'static, str>,
}

impl What {
    /// The name of the event in a stream.
    pub fn name(&self) -> &'static str {
        match self {
            What::Accepted => "accepted",
            What::Started { .. } => "started",
            What::Progress(_) => "progress",
            What::Output { .. } => "output",
            What::Asked { .. } => "question",
            What::Answered { .. } => "answer",
            What::Retrying { .. } => "retrying",
            What::Interrupted { .. } => "interrupted",
            What::Ended(outcome) => outcome.status.name(),
        }
    }
}

/// An event as callers see it: the `data` of a stream's event.
impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &self.at)?;
        match &self.what {
            What::Accepted => {}
            What::Started { attempt, agent } => {
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("agent", agent)?;
            }
            What::Progress(progress) => {
                map.serialize_entry("percent", &progress.percent)?;
                map.serialize_entry("step", &progress.step)?;
                if let Some(said) = &progress.said {
                    map.serialize_entry("said", said)?;
                }
            }
            What::Output { attempt, offset, block } => {
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("offset", offset)?;
                let text = String::from_utf8_lossy(&block.0);
                map.serialize_entry("text", &text)?;
                if let Cow::Owned(_) = text {
                    // The text has lost something, so the bytes are there too.
                    map.serialize_entry("base64", &STANDARD.encode(&block.0))?;
                }
            }
            What::Asked { question } => map.serialize_entry("question", question)?,
            What::Answered { answer } => map.serialize_entry("answer", answer)?,
            What::Retrying { attempt, failure, until } => {
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("failure", failure.name())?;
                map.serialize_entry("until", until)?;
            }
            What::Interrupted { attempt } => map.serialize_entry("attempt", attempt)?,
            What::Ended(outcome) => map.serialize_entry("outcome", &outcome.body)?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_no_text_is_shown_with_its_bytes() {
        let shown = |block: &'static [u8]| {
            let what = What::Output { attempt: 1, offset: 0, block: Block(block.into()) };
            serde_json::to_value(Entry { n: 1, at: Time::default(), what }).expect("it is JSON")
        };
        assert_eq!(shown("grüße".as_bytes())["text"], "grüße");
        assert!(shown("grüße".as_bytes())["base64"].is_null());
        let binary = shown(b"a\xff");
        assert_eq!((&binary["text"], &binary["base64"]), (&"a\u{fffd}".into(), &"Yf8=".into()));
    }
}
