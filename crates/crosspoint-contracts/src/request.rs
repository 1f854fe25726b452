//! What a caller asks for, whatever contract its document is of: the work, what makes a repeat the same job, and the
//! limits that the caller sets.

use core::time::Duration;
use std::ops::Range;
use std::sync::Arc;

use crate::Contract;
use crate::content::Block;
use crate::retry;

/// Most attempts of one job, whatever its request asks for: each attempt has to be paid for.
pub const ATTEMPTS_MAX: u32 = 10;

/// Longest pause between two attempts, without jitter.
pub const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// A request, read by its door.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The door that the request came through.
    pub door: Door,
    /// The caller that the job belongs to.
    pub caller: Arc<str>,
    /// The caller's own id for the job.
    pub request_id: Option<Box<str>>,
    /// What makes a repeated request the same job.
    pub key: Key,
    /// The kind of work, by which the job is routed.
    pub work: Arc<str>,
    /// The agent that the job must go to.
    pub agent: Option<Arc<str>>,
    /// The type of agent that the request is addressed to (MSG-18).
    pub addressed: Option<Arc<str>>,
    /// Which jobs go first.
    pub priority: Priority,
    /// The limits that the caller set.
    pub limits: Limits,
    /// The document as it came.
    pub document: Block,
    /// Where in the document the input is: one JSON value. Not needed where the contract builds its input from several
    /// members.
    pub input: Range<usize>,
    /// The job's place in a trace, as W3C Trace Context spells it: `traceparent`, and on a second line `tracestate` if
    /// there is one.
    pub trace: Option<Box<str>>,
    /// What every answer repeats of the request, such as ids and names: a small JSON object. Only the code that reads
    /// requests and writes answers knows what it holds.
    pub echo: Option<Box<str>>,
    /// The name of the recipient that is to be told of the outcome: a caller that has a callback or pulls its messages.
    pub notify: Option<Arc<str>>,
}

/// Where work comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// `/api/v1/jobs` and the command line.
    Native,
    /// The door of a contract.
    Contract(Contract),
}

/// What makes a repeat the same job (ALL-1), within one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Nothing: each request is a job of its own.
    None,
    /// The request id.
    RequestId,
    /// The `Idempotency-Key` header, which is the same key on every door, or several fields of a contract together.
    Other(Box<str>),
}

/// Which jobs go first: those of a higher priority. Now and then the oldest job goes first all the same, so that no job
/// waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// After jobs of all other priorities.
    Low,
    /// The priority of a request that names none.
    #[default]
    Normal,
    /// Before normal and low jobs.
    High,
    /// Before all other jobs.
    Urgent,
}

/// The limits that a request sets; `None` where it sets none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Longest time from acceptance to the outcome.
    pub total: Option<Duration>,
    /// Longest time without a sign of life from the agent.
    pub silence: Option<Duration>,
    /// Longest time of one attempt, without the time in which a person is asked.
    pub attempt: Option<Duration>,
    /// Most output, in bytes.
    pub output_bytes: Option<u64>,
    /// Most memory of a program that does the work, in bytes (MSG-6.5).
    pub memory_bytes: Option<u64>,
    /// How often and when a failed attempt is repeated (TASK-7). Setting it also says that repeating is wanted.
    pub retry: Option<Schedule>,
}

/// How many attempts are made, and how long the pauses between them are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Most attempts in all, the first one included.
    pub attempts_max: u32,
    /// How the pauses grow.
    pub backoff: Backoff,
    /// The pause before the second attempt.
    pub first: Duration,
}

/// How the pauses between attempts grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Each pause is twice as long as the last.
    Exponential,
    /// Each pause is longer than the last by the length of the first.
    Linear,
    /// All pauses are equally long.
    Fixed,
}

impl Door {
    /// Returns all doors, the native one first.
    pub fn all() -> impl Iterator<Item = Door> {
        std::iter::once(Door::Native).chain(Contract::ALL.into_iter().map(Door::Contract))
    }

    /// Returns the door's name: that of its contract, or `native`.
    pub fn name(self) -> &'static str {
        match self {
            Door::Native => "native",
            Door::Contract(contract) => contract.name(),
        }
    }

    /// Returns the door with this name.
    pub fn from_name(name: &str) -> Option<Door> {
        Door::all().find(|door| door.name() == name)
    }

    /// Returns the contract that callers of this door speak; `None` for the native door.
    pub fn contract(self) -> Option<Contract> {
        match self {
            Door::Native => None,
            Door::Contract(contract) => Some(contract),
        }
    }

    /// Whether the id of a request is unique among one caller's jobs on this door, whatever keys came with the
    /// requests. It is where callers ask for jobs by that id.
    pub fn has_unique_ids(self) -> bool {
        self.contract().is_some_and(|contract| contract.exchange().ids_are_unique)
    }
}

impl Priority {
    /// All four priorities, from the last to the first in the queue.
    pub const ALL: [Priority; 4] = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];

    /// Returns the priority's name.
    pub fn name(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
            Priority::Urgent => "urgent",
        }
    }

    /// Returns the priority with this name.
    pub fn from_name(name: &str) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| priority.name() == name)
    }
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule::DEFAULT
    }
}

impl Schedule {
    /// The schedule of MSG-5: four attempts, 1, 2 and 4 s apart.
    pub const DEFAULT: Schedule =
        Schedule { attempts_max: retry::ATTEMPTS_MAX, backoff: Backoff::Exponential, first: Duration::from_secs(1) };

    /// Returns how long to wait before an attempt, counted from 1; `None` if there is no such attempt.
    ///
    /// `chance` is a number from 0 to 1. It lengthens the pause by at most half and never shortens it.
    pub fn delay_before(&self, attempt: u32, chance: f64) -> Option<Duration> {
        if attempt == 0 || attempt > self.attempts_max.min(ATTEMPTS_MAX) {
            return None;
        }
        let Some(pauses_before) = attempt.checked_sub(2) else { return Some(Duration::ZERO) };
        let least = match self.backoff {
            Backoff::Exponential => self.first.saturating_mul(1 << pauses_before.min(31)),
            Backoff::Linear => self.first.saturating_mul(pauses_before + 1),
            Backoff::Fixed => self.first,
        };
        let least = least.min(DELAY_MAX);
        let chance = if chance.is_nan() { 0.0 } else { chance.clamp(0.0, 1.0) };
        Some(least + least.mul_f64(retry::JITTER_SHARE_MAX * chance))
    }
}
