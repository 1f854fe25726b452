//! One job: its request, its state, and everything that is known about it from acceptance to its one outcome.

mod clock;
mod known;
mod name;
mod question;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::{AgentDocument, Progress, Question};
use crosspoint_contracts::request::{Door, Key, Limits, Priority};
use crosspoint_contracts::time::Time;
use uuid::Uuid;

pub use self::question::QuestionId;

use crate::id::{JobId, Seq};

/// A job. Cloning copies the parts that change and shares the rest.
#[derive(Clone, Debug)]
pub struct Job {
    /// What the caller asked for. It never changes.
    pub request: Arc<Request>,
    /// The state that the job is in.
    pub state: State,
    /// When the state last changed.
    pub updated_at: Time,
    /// The agent that has the job, or had it last.
    pub agent: Option<Arc<str>>,
    /// How many attempts were made: how often the job was handed to an agent.
    pub attempts: u32,
    /// The agents that had the job before the present one, in order, each with the number of its last attempt.
    pub had: Arc<Vec<(u32, Arc<str>)>>,
    /// How many of the attempts were repeats after a failure. An attempt that was cut short by the orchestrator's own
    /// end does not count.
    pub retries: u32,
    /// Whether an agent may have begun the work in an attempt that is over.
    pub begun: bool,
    /// Whether all further attempts go to the agent that the job is with: no other agent knows whether the work was
    /// done. See [`Repeats::SameAgent`](crate::policy::Repeats::SameAgent).
    pub stays: bool,
    /// How many attempts in a row were cut short by an unclean end of the orchestrator (ALL-13).
    pub cut_short: u32,
    /// When the job was set aside, because its changes cannot be written to the store.
    pub aside: Option<Time>,
    /// When the job was first handed to an agent.
    pub started_at: Option<Time>,
    /// How long the job has waited for people, in all. The agent's total clock stands still during that time.
    pub waited: Duration,
    /// How many microseconds since acceptance do not count: jumps of the clock, and the time in which no orchestrator
    /// ran.
    pub skew_micros: i64,
    /// The latest progress that was committed.
    pub progress: Option<Arc<Progress>>,
    /// What the agent said when it began the present attempt, if it said more than that.
    pub began: Option<Arc<AgentDocument>>,
    /// Progress that came too soon after the last progress event to become an event of its own (ALL-9).
    pub pending: Option<Arc<Progress>>,
    /// When progress last became an event.
    pub progress_at: Time,
    /// How many bytes of output the present attempt has given.
    pub output_bytes: u64,
    /// The questions that people have answered, in the order in which an attempt asks them.
    pub answers: Arc<Vec<Answered>>,
    /// What the link of the present attempt wants to know when the attempt is taken up after a restart. It is dropped
    /// when the attempt ends.
    pub memory: Option<Block>,
    /// How many events the job has had.
    pub events: u32,
}

/// What a caller asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id that the engine gave the job.
    pub id: JobId,
    /// The job that this one came from; `None` if a caller asked for it.
    pub origin: Option<Origin>,
    /// The door that the request came through.
    pub door: Door,
    /// The caller that the job belongs to. Request keys of different callers are kept apart. Without tokens all callers
    /// are the same caller, `""`.
    pub caller: Arc<str>,
    /// The caller's own id for the job, or the job's id where the caller gave none.
    pub request_id: Box<str>,
    /// What makes a repeated request the same job.
    pub key: Key,
    /// The kind of work, by which the job is routed.
    pub work: Arc<str>,
    /// The agent that the job must go to, where the caller named one.
    pub pinned: Option<Arc<str>>,
    /// The type of agent that the request is addressed to. Agents without a type take it too.
    pub addressed: Option<Arc<str>>,
    /// Which jobs go first.
    pub priority: Priority,
    /// The limits that the caller set.
    pub limits: Limits,
    /// The job's place in a trace, as W3C Trace Context spells it: `traceparent`, and on a second line `tracestate` if
    /// there is one.
    pub trace: Option<Box<str>>,
    /// What every answer repeats of the caller's document: a JSON object, which the engine does not look into.
    pub echo: Option<Box<str>>,
    /// The name of the recipient that is to be told the outcome. It is owed that until it was told.
    pub notify: Option<Arc<str>>,
    /// When the job was accepted.
    pub accepted_at: Time,
    /// Where in the document the input is. An empty range says that there is no input, which means `{}`. The range is
    /// not used where the contract builds its input from several members.
    pub input: Range<u32>,
}

/// How a job came from another job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It does the work of a job that has ended once more.
    RetryOf(Uuid),
    /// An attempt of another job has it done, as a stage of its own work. It ends when that job ends.
    ChildOf {
        /// The job that has it done.
        parent: Uuid,
        /// What the stage is called there.
        stage: Box<str>,
    },
}

impl Origin {
    /// Returns the id of the other job.
    pub fn job(&self) -> Uuid {
        match self {
            Origin::RetryOf(job) | Origin::ChildOf { parent: job, .. } => *job,
        }
    }

    /// Returns the name of the stage, if the job is a stage of another.
    pub fn stage(&self) -> Option<&str> {
        match self {
            Origin::RetryOf(_) => None,
            Origin::ChildOf { stage, .. } => Some(stage),
        }
    }
}

impl Request {
    /// Returns the job whose stage this one is.
    pub fn child_of(&self) -> Option<Uuid> {
        match self.origin.as_ref()? {
            Origin::RetryOf(_) => None,
            Origin::ChildOf { parent, .. } => Some(*parent),
        }
    }

    /// Returns the input, cut out of the document that the job came as; `None` if this cannot be that document.
    pub fn input_in(&self, document: &Block) -> Option<Bytes> {
        if let Some(input) = self.door.contract().and_then(|contract| contract.exchange().input) {
            // No range can describe this input, so the document is read again.
            return input(&document.0).map(Bytes::from);
        }
        if self.input.is_empty() {
            return Some(Bytes::from_static(b"{}"));
        }
        let range = self.input.start as usize..self.input.end as usize;
        (range.end <= document.0.len()).then(|| document.0.slice(range))
    }
}

/// The state of a job.
#[derive(Clone, Debug)]
pub enum State {
    /// Accepted; no agent has the job.
    Queued,
    /// An agent has the job.
    Running(Running),
    /// The last attempt failed, and the next one is due later.
    Retrying {
        /// When the pause before the next attempt is over.
        until: Time,
        /// Why the last attempt failed.
        after: Failure,
    },
    /// The job waits for a person's answer, and the agent still has it.
    Waiting {
        /// The attempt that asks the question.
        running: Running,
        /// The question.
        question: Question,
    },
    /// The job waits for an operator. It is not begun again, because it may be what crashes the orchestrator (ALL-13).
    Poisoned,
    /// The job has its outcome.
    Ended(Arc<Ending>),
}

/// From this many attempts in a row that were cut short on, a job is suspected of crashing the orchestrator.
pub const SUSPECT_FROM: u32 = 2;

/// How long after one suspect has begun no other suspect begins. If the orchestrator crashes in that time, it is known
/// which job was the reason, and no job is blamed for what another one did.
pub const SUSPECT_ALONE: Duration = Duration::from_secs(30);

/// The attempt under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The attempt's number, counted from 1.
    pub attempt: u32,
    /// When the agent last gave a sign of life.
    pub heard_at: Time,
    /// From when the time of the attempt counts: from its start, or from when it was taken up, and later by the time in
    /// which it waited for people.
    pub timed_from: Time,
    /// How many questions the attempt has asked.
    pub asked: u32,
    /// When this orchestrator took the attempt up, if the attempt began before the orchestrator was started. The agent
    /// is asked once before such an attempt is given up (ALL-3).
    pub taken_up_at: Option<Time>,
}

/// A question that a person has answered. If the attempt that asked it is cut short, the next attempt gets the same
/// answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The question that the agent asked.
    pub question: Question,
    /// The answer that the person gave.
    pub answer: Body,
}

/// How a job ended, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// When the job ended.
    pub at: Time,
    /// The outcome.
    pub outcome: Outcome,
    /// The length in bytes of an outcome that was too long to be read for a list. Its parts are in the store.
    pub left_out: Option<u64>,
    /// Whether the outcome was stored by a version that did not check for content that readers disagree on (ALL-11).
    /// Code that writes such an outcome into another document has to check it.
    pub is_unjudged: bool,
}

impl Ending {
    /// Makes the ending of a job that ends now.
    pub fn new(at: Time, outcome: Outcome) -> Ending {
        Ending { at, outcome, left_out: None, is_unjudged: false }
    }
}

impl std::ops::Deref for Ending {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

/// The seven words for the state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No agent has the job.
    Queued,
    /// An agent has the job.
    Running,
    /// The job waits for its next attempt.
    Retrying,
    /// The job waits for a person.
    Waiting,
    /// The work was done.
    Completed,
    /// The work was not done.
    Failed,
    /// The job was stopped.
    Cancelled,
}

impl Job {
    /// Makes a job that was just accepted.
    pub fn accepted(request: Arc<Request>) -> Job {
        let at = request.accepted_at;
        Job {
            request,
            state: State::Queued,
            updated_at: at,
            agent: None,
            attempts: 0,
            had: Arc::default(),
            retries: 0,
            begun: false,
            stays: false,
            cut_short: 0,
            aside: None,
            started_at: None,
            waited: Duration::ZERO,
            skew_micros: 0,
            progress: None,
            began: None,
            pending: None,
            progress_at: Time::default(),
            output_bytes: 0,
            answers: Arc::default(),
            memory: None,
            // The job's acceptance is its first event.
            events: 1,
        }
    }

    /// Returns the job's id.
    pub fn id(&self) -> JobId {
        self.request.id
    }

    /// Returns the job's number.
    pub fn seq(&self) -> Seq {
        self.request.id.seq()
    }

    /// Returns the word for the job's state.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Queued => Phase::Queued,
            State::Running(_) => Phase::Running,
            State::Retrying { .. } => Phase::Retrying,
            State::Waiting { .. } | State::Poisoned => Phase::Waiting,
            State::Ended(ended) => Phase::of(ended.status),
        }
    }

    /// Returns the outcome, once the job has one.
    pub fn outcome(&self) -> Option<&Arc<Ending>> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Waiting { .. } | State::Poisoned => {
                None
            }
        }
    }

    /// Returns the agent that has the job or had it last, or else the agent that the job must go to.
    pub fn agent_or_pinned(&self) -> Option<&str> {
        self.agent.as_deref().or(self.request.pinned.as_deref())
    }

    /// Returns the agent that the job's next attempt must go to, if it may go to only one.
    pub fn bound_to(&self) -> Option<&Arc<str>> {
        let stays_with = self.agent.as_ref().filter(|_| self.stays);
        stays_with.or(self.request.pinned.as_ref())
    }

    /// Returns the attempt under way, also while it waits for a person.
    pub fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) | State::Waiting { running, .. } => Some(running),
            State::Queued | State::Retrying { .. } | State::Poisoned | State::Ended(_) => None,
        }
    }

    /// Returns the agent that had this attempt; `None` if the attempt was never made.
    pub fn had_by(&self, attempt: u32) -> Option<&Arc<str>> {
        if attempt == 0 || attempt > self.attempts {
            return None;
        }
        let before = self.had.iter().find(|(last, _)| attempt <= *last).map(|(_, agent)| agent);
        before.or(self.agent.as_ref())
    }

    /// Whether the job waits for a person's answer.
    pub fn is_asking(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Whether the job cannot go on before a person answers, or an operator has it begun again (ALL-13).
    pub fn needs_a_person(&self) -> bool {
        self.aside.is_some() || matches!(self.state, State::Waiting { .. } | State::Poisoned)
    }

    /// Whether the job is suspected of crashing the orchestrator.
    pub fn is_suspect(&self) -> bool {
        self.cut_short >= SUSPECT_FROM
    }

    /// Returns until when no other suspect may begin, if this job is a suspect and an agent has it. The last attempt of
    /// such a job is the first one since it was cut short, so `started_at` is the start of that attempt.
    pub fn alone_until(&self) -> Option<Time> {
        let is_running = matches!(self.state, State::Running(_));
        Some(self.started_at?.plus(SUSPECT_ALONE)).filter(|_| is_running && self.is_suspect())
    }
}
