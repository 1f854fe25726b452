//! What happens to a job and is stored: its events, in order.

use std::borrow::Cow;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::reply::{Progress, Question};

use crate::job::Ending;
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
        /// What is asked.
        question: Question,
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
    Ended(std::sync::Arc<Ending>),
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
            What::Ended(ended) => ended.status.name(),
        }
    }
}
