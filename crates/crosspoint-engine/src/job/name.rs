//! What phases, statuses, priorities and doors are called.

use super::{Door, Phase, Priority, Status};

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

    /// Whether the job has ended.
    pub fn is_end(self) -> bool {
        self >= Phase::Completed
    }
}

impl Status {
    /// All three.
    pub const ALL: [Status; 3] = [Status::Completed, Status::Failed, Status::Cancelled];

    /// The phase of jobs that ended so.
    pub fn phase(self) -> Phase {
        match self {
            Status::Completed => Phase::Completed,
            Status::Failed => Phase::Failed,
            Status::Cancelled => Phase::Cancelled,
        }
    }

    /// As it is spelled in the API.
    pub fn name(self) -> &'static str {
        self.phase().name()
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
    /// All six.
    pub const ALL: [Door; 6] = [Door::Native, Door::Bridge, Door::Workflow, Door::Message, Door::Task, Door::Run];

    /// As it is spelled.
    pub fn name(self) -> &'static str {
        match self {
            Door::Native => "native",
            Door::Bridge => "bridge",
            Door::Workflow => "workflow",
            Door::Message => "message",
            Door::Task => "task",
            Door::Run => "run",
        }
    }

    /// The door of that name.
    pub fn from_name(name: &str) -> Option<Door> {
        Door::ALL.into_iter().find(|door| door.name() == name)
    }
}
