//! The names of phases, priorities and doors.

use crosspoint_contracts::Contract;
use crosspoint_contracts::outcome::Status;

use super::{Door, Phase, Priority};

impl Phase {
    /// All seven phases.
    pub const ALL: [Phase; 7] = [
        Phase::Queued,
        Phase::Running,
        Phase::Retrying,
        Phase::Waiting,
        Phase::Completed,
        Phase::Failed,
        Phase::Cancelled,
    ];

    /// Returns the phase's name, as the API spells it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Running => "running",
            Phase::Retrying => "retrying",
            Phase::Waiting => "waiting",
            Phase::Completed => "completed",
            Phase::Failed => "failed",
            Phase::Cancelled => "cancelled",
        }
    }

    /// Returns the phase with this name.
    pub fn from_name(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// Returns the phase of jobs that ended with this status.
    pub fn of(status: Status) -> Phase {
        match status {
            Status::Completed => Phase::Completed,
            Status::Failed => Phase::Failed,
            Status::Cancelled => Phase::Cancelled,
        }
    }

    /// Whether a job in this phase has ended.
    pub fn is_end(self) -> bool {
        self >= Phase::Completed
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
