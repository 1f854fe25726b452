//! What an agent's operator configured: clocks, repeats, limits.
//!
//! The schedule of repeats is that of the message contract (MSG-5) for every agent, because it is the only one that the
//! contracts name. A request may bring its own (TASK-7), within the limits of [`Schedule`].

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::request::Schedule;

/// How long a job may take in all, where neither the request nor the agent's configuration sets a limit (ALL-4).
pub const TOTAL_DEFAULT: Duration = Duration::from_secs(3_600);

/// How much output a job may give where no limit is configured, in bytes: 64 MiB.
pub const OUTPUT_BYTES_DEFAULT: u64 = 64 << 20;
/// Largest limit on output that can be set, in bytes: 4 GiB.
pub const OUTPUT_BYTES_MAX: u64 = 4 << 30;

/// Most that a link may remember of an attempt, in bytes: it is written with the job's row each time the row changes.
pub const MEMORY_BYTES_MAX: usize = 64 << 10;

/// Least time that an attempt which was taken up after a restart gets, where nothing is configured: long enough to ask
/// its agent once.
pub const TAKE_UP_DEFAULT: Duration = Duration::from_secs(30);

/// Longest pause that an agent can ask for with `Retry-After`. If it asks for more, it is asked again after this time,
/// because a header of thousands of years is a mistake.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// How many attempts in a row an unclean end of the orchestrator may cut short before the work of a built-in agent or a
/// program is not begun again (ALL-13).
pub const CUT_SHORT_MAX: u32 = 3;

/// The rules for the attempts of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long the agent may give no sign of life (ALL-4); `None` sets no limit.
    pub silence: Option<Duration>,
    /// How long a job may take in all, counted from its first attempt. Time spent waiting for people does not count.
    pub total: Duration,
    /// Whether work that may have begun may be begun again.
    pub repeats: Repeats,
    /// What becomes of an attempt that the orchestrator's own end cut short.
    pub recovery: Recovery,
    /// Least time that an attempt which was taken up after a restart gets before it is given up: its agent is asked
    /// once (ALL-3).
    pub take_up: Duration,
    /// After this many attempts in a row that an unclean end of the orchestrator cut short, the work is not begun
    /// again; `None` always begins it again.
    pub cut_short_max: Option<u32>,
    /// When a failed attempt is repeated.
    pub schedule: Schedule,
    /// Most output that a job may give, in bytes.
    pub output_bytes_max: u64,
}

/// Whether work that may have begun may be begun again (ALL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Always, by any agent: the operator says that doing it twice does no harm.
    Always,
    /// Only by the same agent: it never does the same request twice, and no other agent knows whether the work was
    /// done.
    SameAgent,
    /// Only if the work certainly never began.
    BeforeStart,
}

/// What becomes, at the next start, of an attempt that the orchestrator's own end cut short (ALL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The attempt died with the orchestrator, or the agent recognises the request id: the job is dispatched again.
    Rerun,
    /// The agent goes on without the orchestrator: the attempt is taken up where it is.
    Resume,
    /// Like [`Recovery::Resume`], but work that dies with the agent is not begun again.
    ResumeOnce,
    /// What the attempt did cannot be known: the job fails as unavailable.
    Fail,
}

impl Policy {
    /// The policy where nothing is configured.
    pub const DEFAULT: Policy = Policy {
        silence: None,
        total: TOTAL_DEFAULT,
        repeats: Repeats::BeforeStart,
        recovery: Recovery::Rerun,
        take_up: TAKE_UP_DEFAULT,
        cut_short_max: None,
        schedule: Schedule::DEFAULT,
        output_bytes_max: OUTPUT_BYTES_DEFAULT,
    };
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::DEFAULT
    }
}

impl Recovery {
    /// Whether work that died with the agent is begun again. Such work goes on nowhere, but it may have begun.
    pub fn begins_the_dead_again(self) -> bool {
        match self {
            Recovery::Rerun | Recovery::Resume => true,
            Recovery::ResumeOnce | Recovery::Fail => false,
        }
    }
}

impl Repeats {
    /// Whether the engine may try again after this failure (ALL-3, MSG-5).
    pub fn allow(self, failure: Failure, dispatched: Dispatched) -> bool {
        let may_begin_again = match self {
            Repeats::Always | Repeats::SameAgent => true,
            Repeats::BeforeStart => dispatched == Dispatched::No,
        };
        failure.is_retried() && may_begin_again
    }
}
