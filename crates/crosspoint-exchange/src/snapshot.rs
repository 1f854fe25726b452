//! A job at one moment, as far as its caller may know it.

use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::job;
use crosspoint_contracts::outcome::{Outcome, Status};
use crosspoint_contracts::reply::{AgentDocument, Progress, Question};
use crosspoint_contracts::request::Door;
use crosspoint_contracts::time::Time;
use uuid::Uuid;

use crate::echo::Echo;

/// A job at one moment. It borrows from the backend's own record of the job, so making one costs next to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'j> {
    /// The job's own id.
    pub id: Uuid,
    /// The caller's id for the job.
    pub request_id: &'j str,
    /// The work that was asked for.
    pub work: &'j str,
    /// The door that the job came through.
    pub door: Door,
    /// The agent that the caller named.
    pub pinned: Option<&'j str>,
    /// The agent that has the job, or had it last.
    pub agent: Option<&'j str>,
    /// The type of that agent, if it has one.
    pub agent_type: Option<&'j str>,
    /// What every answer repeats of the request.
    pub echo: Option<&'j str>,
    /// The state that the job is in.
    pub state: State<'j>,
    /// The latest progress.
    pub progress: Option<&'j Progress>,
    /// What the agent said when it began, if it said more than that.
    pub began: Option<&'j AgentDocument>,
    /// When the progress was made.
    pub progress_at: Time,
    /// How many events the job has had.
    pub events: u32,
    /// How many of its questions were answered.
    pub answers: usize,
    /// How many attempts were made.
    pub attempts: u32,
    /// How many of the attempts were repeats after a failure.
    pub retries: u32,
    /// When the job was first handed to an agent.
    pub started_at: Option<Time>,
    /// When the state last changed.
    pub updated_at: Time,
}

/// The state of a job, for its caller.
#[derive(Clone, Copy, Debug)]
pub enum State<'j> {
    /// No agent has the job yet.
    Queued,
    /// An agent has the job.
    Running,
    /// The job goes on, but no agent has it: it waits for its next attempt, or for an operator (ALL-13).
    Between,
    /// The job waits for a person's answer.
    Waiting {
        /// What the person is asked.
        question: &'j Question,
        /// The attempt that asks, and the number of its question: two questions differ in it.
        number: (u32, u32),
    },
    /// The job has its outcome.
    Ended(Ended<'j>),
}

/// How a job ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'j> {
    /// When the job ended.
    pub at: Time,
    /// The outcome.
    pub outcome: &'j Outcome,
    /// Whether the outcome was stored by a version that did not check for content that readers disagree on (ALL-11).
    pub is_unjudged: bool,
    /// Whether the same request gets this outcome again. Otherwise the work is done again.
    pub is_kept: bool,
}

impl State<'_> {
    /// Returns the state in the words that all contracts share.
    pub fn contract_state(&self) -> job::State {
        match self {
            State::Queued => job::State::Queued,
            State::Running | State::Between => job::State::Running,
            State::Waiting { .. } => job::State::Waiting,
            State::Ended(ended) => match ended.outcome.status {
                Status::Completed => job::State::Completed,
                Status::Failed => job::State::Failed,
                Status::Cancelled => job::State::Cancelled,
            },
        }
    }
}

impl<'j> Snapshot<'j> {
    /// Whether every answer repeats this of the request.
    pub fn echoes(&self, home: job::Home, value: &str) -> bool {
        self.echo.is_some() && Echo::read(self.echo).has(home, value)
    }

    /// Whether answers name the type of the agent, because the request was not addressed to one.
    pub fn lacks_sender(&self) -> bool {
        self.echo.is_some_and(Echo::has_recipient)
    }

    /// Whether the job goes on and no agent has it.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// Returns how the job ended, once it has.
    pub fn ended(&self) -> Option<Ended<'j>> {
        match self.state {
            State::Ended(ended) => Some(ended),
            State::Queued | State::Running | State::Between | State::Waiting { .. } => None,
        }
    }

    /// Returns why the job failed, once it has.
    pub fn failure(&self) -> Option<Failure> {
        self.ended().and_then(|ended| ended.outcome.failure())
    }

    /// Returns how long the outcome is, in bytes; 0 before there is one.
    pub fn outcome_bytes(&self) -> usize {
        self.ended().map_or(0, |ended| ended.outcome.bytes())
    }
}
