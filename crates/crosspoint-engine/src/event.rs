//! The events of a job: what happens to it and is stored, in order.

use std::borrow::Cow;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_contracts::time::Time;

use crate::job::Ending;

/// One event of a job. The first event has number 1, and the outcome is the last event.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The event's number within the job.
    pub n: u32,
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub what: What,
}

/// What an event says.
#[derive(Clone, Debug)]
pub enum What {
    /// The job is on disk.
    Accepted,
    /// The job was given to an agent.
    Started {
        /// The number of the attempt.
        attempt: u32,
        /// The agent's name.
        agent: Box<str>,
    },
    /// The agent reported progress.
    Progress(Progress),
    /// The agent printed something.
    Output {
        /// The attempt that printed it. The offsets of each attempt begin at 0.
        attempt: u32,
        /// Where in the attempt's output the block begins, in bytes.
        offset: u64,
        /// The bytes.
        block: Block,
    },
    /// The agent asks a person.
    Asked {
        /// The question.
        question: Question,
    },
    /// A person answered.
    Answered {
        /// The person's answer: any JSON.
        answer: Body,
    },
    /// The agent does its work in steps and has finished one. Steps are stored whole and one by one, unlike progress:
    /// the agent finds them again when its attempt is taken up.
    Step {
        /// What the agent says of the step: any JSON.
        step: Body,
    },
    /// An attempt failed, and another one follows.
    Retrying {
        /// The attempt that failed.
        attempt: u32,
        /// Why the attempt failed.
        failure: Failure,
        /// When the next attempt is due.
        until: Time,
    },
    /// An attempt was cut short by the orchestrator's own end, or never reached its agent because the agent had gone.
    /// Another attempt follows.
    Interrupted {
        /// The attempt that was cut short.
        attempt: u32,
    },
    /// The job ended.
    Ended(std::sync::Arc<Ending>),
}

/// A broken rule. It is stored beside the job and not among its events, because no event follows an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The id of the clause that was broken.
    pub clause: &'static str,
    /// How much it matters.
    pub level: Level,
    /// How it was broken, without content of callers or agents.
    pub what: Cow<'static, str>,
}

impl What {
    /// Returns the event's name in a stream.
    pub fn name(&self) -> &'static str {
        match self {
            What::Accepted => "accepted",
            What::Started { .. } => "started",
            What::Progress(_) => "progress",
            What::Output { .. } => "output",
            What::Asked { .. } => "question",
            What::Answered { .. } => "answer",
            What::Step { .. } => "step",
            What::Retrying { .. } => "retrying",
            What::Interrupted { .. } => "interrupted",
            What::Ended(ended) => ended.status.name(),
        }
    }
}
