//! Work that is handed from agent to agent: how far it may go, and the codes of work that went too far (TASK-9).

/// Most agents that a task may pass through.
pub const CHAIN_MAX: usize = 16;

/// The code of work that would come back to an agent that has had it.
pub const CYCLE: &str = "TASK_GRAPH_CYCLE";

/// The code of work that has passed through too many agents.
pub const TOO_LONG: &str = "DELEGATION_FAILED";
