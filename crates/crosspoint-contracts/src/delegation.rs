//! Work that is handed from agent to agent: how far it may go, and what is said where it may not (TASK-9).

/// So many agents may have had a task before it is one too many.
pub const CHAIN_MAX: usize = 16;

/// The code of work that would come to an agent that has had it.
pub const CYCLE: &str = "TASK_GRAPH_CYCLE";

/// The code of work that has been through too many hands.
pub const TOO_LONG: &str = "DELEGATION_FAILED";
