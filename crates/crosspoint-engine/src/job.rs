//! What is known of one job, from acceptance to its one outcome.

mod clock;
mod name;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::{Progress, Question};

use crate::id::{JobId, Seq};
use crate::policy::Schedule;
use crate::time::Time;

/// A job. Cloning copies what changes and shares the rest.
#[derive(Clone, Debug)]
pub struct Job {
    /// What was asked for; it never changes.
    pub request: Arc<Request>,
    /// Where in its life it is.
    pub state: State,
    /// When the state last changed.
    pub updated_at: Time,
    /// The agent that has it, or had it last.
    pub agent: Option<Arc<str>>,
    /// How often it was handed to an agent.
    pub attempts: u32,
    /// The agents that had it before another one did, in order: each with the last of its attempts.
    pub had: Arc<Vec<(u32, Arc<str>)>>,
    /// How many of these were repeats after a failure. What our own crash cut short does not count.
    pub retries: u32,
    /// Whether an agent may have begun with it, in an attempt that is over.
    pub begun: bool,
    /// How many attempts in a row were cut short by an end of ours that was not clean (ALL-13).
    pub cut_short: u32,
    /// Since when it is set aside, because what happens to it cannot be written.
    pub aside: Option<Time>,
    /// When it was handed to an agent for the first time.
    pub started_at: Option<Time>,
    /// How long it has waited for people in all; the agent's total clock stands still meanwhile.
    pub waited: Duration,
    /// How many microseconds since it was accepted do not count: jumps of the clock, and the time in which no orchestrator ran.
    pub skew_micros: i64,
    /// How far it is, as was committed.
    pub progress: Option<Arc<Progress>>,
    /// Progress that was heard too soon after the last to be an event of its own (ALL-9).
    pub pending: Option<Arc<Progress>>,
    /// When progress last became an event.
    pub progress_at: Time,
    /// How many bytes of output the present attempt has given.
    pub output_bytes: u64,
    /// What people have answered: the questions in the order in which an attempt asks them.
    pub answers: Arc<Vec<Answered>>,
    /// What the link of the attempt under way wants to know should we end; gone with the attempt.
    pub memory: Option<Block>,
    /// How many events it has had.
    pub events: u32,
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Ours.
    pub id: JobId,
    /// The job that this one repeats.
    pub parent: Option<JobId>,
    /// Where it came in.
    pub door: Door,
    /// Whose it is: request keys of two callers never meet. Without tokens everyone is the same caller, `""`.
    pub caller: Arc<str>,
    /// The caller's own id for it; the job's id where it gave none.
    pub request_id: Box<str>,
    /// What makes a repeat the same job.
    pub key: Key,
    /// The name that routes it.
    pub work: Arc<str>,
    /// The agent it must go to, where the caller named one.
    pub pinned: Option<Arc<str>>,
    /// Who goes first.
    pub priority: Priority,
    /// What the caller allows.
    pub limits: Limits,
    /// Where in a trace it belongs, as W3C Trace Context spells it.
    pub trace: Option<Box<str>>,
    /// When it was accepted.
    pub accepted_at: Time,
    /// Where in the document the input is; an empty range where it has none, which means `{}`. Where a contract makes
    /// its input of several members it says nothing.
    pub input: Range<u32>,
}

impl Request {
    /// The input, within the document that the job came as; `None` if that is not the document.
    pub fn input_in(&self, document: &Block) -> Option<Bytes> {
        if let Some(input) = self.door.contract().and_then(|contract| contract.exchange().input) {
            // No range can say where it is: the document is read again.
            return input(&document.0).map(Bytes::from);
        }
        if self.input.is_empty() {
            return Some(Bytes::from_static(b"{}"));
        }
        let range = self.input.start as usize..self.input.end as usize;
        (range.end <= document.0.len()).then(|| document.0.slice(range))
    }
}

/// Where work comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// `/api/v1/jobs` and the command line.
    Native,
    /// That of a contract.
    Contract(Contract),
}

/// What makes a repeat the same job (ALL-1), within one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Nothing: each request is a job of its own.
    None,
    /// The request id.
    RequestId,
    /// The `Idempotency-Key` header, the same on every door; or several fields of a contract together.
    Other(Box<str>),
}

/// Who goes first: each step up is a head start in the queue, so that nobody waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// After others of its time.
    Low,
    /// As it comes.
    #[default]
    Normal,
    /// Before others of its time.
    High,
    /// Before everything of its time.
    Urgent,
}

/// What a request allows, where it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// From acceptance to outcome.
    pub total: Option<Duration>,
    /// Without a sign of life.
    pub silence: Option<Duration>,
    /// Of output, in bytes.
    pub output_bytes: Option<u64>,
    /// How often and when it is tried again (TASK-7); giving it says that repeating is wanted.
    pub retry: Option<Schedule>,
}

/// Where in its life a job is.
#[derive(Clone, Debug)]
pub enum State {
    /// Accepted; no agent has it.
    Queued,
    /// An agent has it.
    Running(Running),
    /// Until a time, because the last attempt failed.
    Retrying {
        /// Not before this.
        until: Time,
        /// Why the last attempt failed.
        after: Failure,
    },
    /// For a person; the agent still has it.
    Waiting {
        /// The attempt that asks.
        running: Running,
        /// What is asked.
        question: Question,
    },
    /// For an operator: it is not begun again, because it may be what ends us (ALL-13).
    Poisoned,
    /// For good.
    Ended(Arc<Ending>),
}

/// From so many attempts in a row that were cut short a job is suspected to be what ends us.
pub const SUSPECT_FROM: u32 = 2;

/// After one suspect has begun, no other does for so long: should we end in that time, it is known because of which, and no job is blamed
/// for what another one did.
pub const SUSPECT_ALONE: Duration = Duration::from_secs(30);

/// The attempt under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number, from 1.
    pub attempt: u32,
    /// When the agent last gave a sign of life.
    pub heard_at: Time,
    /// How many questions it has asked.
    pub asked: u32,
    /// When it was taken up, if it began before we did: its agent is asked once before it is given up (ALL-3).
    pub taken_up_at: Option<Time>,
}

/// A question that a person has answered. Should the attempt that asked it be cut short, the next one gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The question.
    pub question: Question,
    /// The answer.
    pub answer: Body,
}

/// How a job ended, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// When.
    pub at: Time,
    /// How.
    pub outcome: Outcome,
    /// Of an outcome that was too long for a list: how long it is, in bytes. Its parts are in the store.
    pub left_out: Option<u64>,
    /// Whether it was stored by a version that did not look for what readers disagree on (ALL-11): whoever writes it for others looks.
    pub is_unjudged: bool,
}

impl Ending {
    /// An outcome of now.
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

/// The seven words for where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No agent has it.
    Queued,
    /// An agent has it.
    Running,
    /// Until the next attempt.
    Retrying,
    /// For a person.
    Waiting,
    /// Done.
    Completed,
    /// Not done.
    Failed,
    /// Stopped.
    Cancelled,
}

impl Job {
    /// A job that was just accepted.
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
            cut_short: 0,
            aside: None,
            started_at: None,
            waited: Duration::ZERO,
            skew_micros: 0,
            progress: None,
            pending: None,
            progress_at: Time::default(),
            output_bytes: 0,
            answers: Arc::default(),
            memory: None,
            // Its acceptance is the first event.
            events: 1,
        }
    }

    /// Its id.
    pub fn id(&self) -> JobId {
        self.request.id
    }

    /// Its number.
    pub fn seq(&self) -> Seq {
        self.request.id.seq()
    }

    /// The word for its state.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Queued => Phase::Queued,
            State::Running(_) => Phase::Running,
            State::Retrying { .. } => Phase::Retrying,
            State::Waiting { .. } | State::Poisoned => Phase::Waiting,
            State::Ended(ended) => Phase::of(ended.status),
        }
    }

    /// Its outcome, once it has one.
    pub fn outcome(&self) -> Option<&Arc<Ending>> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Waiting { .. } | State::Poisoned => {
                None
            }
        }
    }

    /// The agent that has it or had it last, else the one it must go to.
    pub fn agent_or_pinned(&self) -> Option<&str> {
        self.agent.as_deref().or(self.request.pinned.as_deref())
    }

    /// The attempt under way, also while it waits for a person.
    pub fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) | State::Waiting { running, .. } => Some(running),
            State::Queued | State::Retrying { .. } | State::Poisoned | State::Ended(_) => None,
        }
    }

    /// The agent that had this attempt; `None` if it was never made.
    pub fn had_by(&self, attempt: u32) -> Option<&Arc<str>> {
        if attempt == 0 || attempt > self.attempts {
            return None;
        }
        let before = self.had.iter().find(|(last, _)| attempt <= *last).map(|(_, agent)| agent);
        before.or(self.agent.as_ref())
    }

    /// Whether it waits for a person's answer.
    pub fn is_asking(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Whether it may be what ends us.
    pub fn is_suspect(&self) -> bool {
        self.cut_short >= SUSPECT_FROM
    }

    /// Until when no other suspect begins, if this one is with an agent: its last attempt is the first since it was cut short.
    pub fn alone_until(&self) -> Option<Time> {
        let is_running = matches!(self.state, State::Running(_));
        Some(self.started_at?.plus(SUSPECT_ALONE)).filter(|_| is_running && self.is_suspect())
    }
}
