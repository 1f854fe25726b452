//! What phases, priorities and doors are called.

use crosspoint_contracts::Contract;
use crosspoint_contracts::outcome::Status;

use super::{Door, Phase, Priority};

impl Phase {
    /// All seven.
    pub const ALL: [Phase; 7] = [
        Phase::Queued,
        Phase::Running,
        Phase::Retrying,
        Phase::Waiting,
        Phase::Completed,
        Phase::Failed,
        Phase::Cancelled,
    ];

    /// As it is spelled in the API.
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

    /// The phase of that name.
    pub fn from_name(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// The phase of jobs that ended so.
    pub fn of(status: Status) -> Phase {
        match status {
            Status::Completed => Phase::Completed,
            Status::Failed => Phase::Failed,
            Status::Cancelled => Phase::Cancelled,
        }
    }

    /// Whether the job has ended.
    pub fn is_end(self) -> bool {
        self >= Phase::Completed
    }
}

impl Priority {
    /// All four, the last first in the queue.
    pub const ALL: [Priority; 4] = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];

    /// As it is spelled.
    pub fn name(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
            Priority::Urgent => "urgent",
        }
    }

    /// The priority of that name.
    pub fn from_name(name: &str) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| priority.name() == name)
    }
}

impl Door {
    /// All of them, our own first.
    pub fn all() -> impl Iterator<Item = Door> {
        std::iter::once(Door::Native).chain(Contract::ALL.into_iter().map(Door::Contract))
    }

    /// As it is spelled.
    pub fn name(self) -> &'static str {
        match self {
            Door::Native => "native",
            Door::Contract(contract) => contract.name(),
        }
    }

    /// The door of that name.
    pub fn from_name(name: &str) -> Option<Door> {
        Door::all().find(|door| door.name() == name)
    }

    /// The contract of its callers; `None` of our own.
    pub fn contract(self) -> Option<Contract> {
        match self {
            Door::Native => None,
            Door::Contract(contract) => Some(contract),
        }
    }

    /// Whether no two jobs of a caller have one id there, whatever keys came with them: callers ask for jobs by that id.
    pub fn has_unique_ids(self) -> bool {
        self.contract().is_some_and(|contract| contract.exchange().ids_are_unique)
    }
}
