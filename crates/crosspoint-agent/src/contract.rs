//! The contracts in which an agent can be called.

use crosspoint_http::door::{message, run, task, workflow};

/// A contract in which an agent can be called.
///
/// ```
/// use crosspoint_agent::Contract;
/// assert_eq!(Contract::from_name("task"), Some(Contract::Task));
/// assert_eq!(Contract::Workflow.name(), "workflow");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// One request, one answer or a stream of events: `POST /agents/run/sync` and `/agents/run/stream`.
    Run,
    /// Tasks that can be polled, answered and cancelled: `/tasks`.
    Task,
    /// Messages of an orchestrator: `POST /api/agent/message`.
    Message,
    /// Envelopes: `POST /agents/NAME/envelope`.
    Workflow,
}

impl Contract {
    /// All of them.
    pub const ALL: [Contract; 4] = [Contract::Run, Contract::Task, Contract::Message, Contract::Workflow];

    /// Returns the name, as it is written in configurations.
    pub fn name(self) -> &'static str {
        self.door().1.name()
    }

    /// Returns the contract of this name.
    pub fn from_name(name: &str) -> Option<Contract> {
        Contract::ALL.into_iter().find(|contract| contract.name() == name)
    }

    /// Returns the path of its door, and the contract as the doors know it.
    pub(crate) fn door(self) -> (&'static str, crosspoint_contracts::Contract) {
        match self {
            Contract::Run => (run::PLACE, run::CONTRACT),
            Contract::Task => (task::PLACE, task::CONTRACT),
            Contract::Message => (message::PLACE, message::CONTRACT),
            Contract::Workflow => (workflow::PLACE, workflow::CONTRACT),
        }
    }

    /// Returns how work is asked for, for a hint.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Contract::Run => "POST /agents/run/sync",
            Contract::Task => "POST /tasks",
            Contract::Message => "POST /api/agent/message",
            Contract::Workflow => "POST /agents/NAME/envelope",
        }
    }
}
