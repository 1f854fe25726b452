//! The names of phases.

use crosspoint_contracts::outcome::Status;

use super::Phase;

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
