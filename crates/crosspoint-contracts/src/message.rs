//! The message contract: one envelope for everything that an orchestrator and its agents say to each other.
//!
//! A `work_request` goes to an agent; any number of `work_status` come back, then one `work_result` or `error`. The
//! envelope is the same for all, over REST and over a queue. Deployed agents use a later dialect, which is read with a
//! warning (MSG-16).
//!
//! Besides the documents, these modules hold the decisions of the contract that need neither clock nor network: which
//! codes are sent again ([`code`]), which version to speak ([`version`]), and how long output travels ([`chunk`]).

pub mod chunk;
pub mod clause;
pub mod code;
mod context;
pub(crate) mod entry;
pub(crate) mod error;
mod exchange;
pub mod failure;
pub(crate) mod map;
pub(crate) mod read;
pub mod version;
mod wire;

pub use chunk::Chunk;
pub use read::AGENT_TYPES;
pub use wire::{
    AgentId, AgentType, Dialect, ErrorReport, Heartbeat, Hints, Message, MessageId, MessageType, Presence, Progress,
    RequestId, ResourcesUsed, ResultStatus, Step, TaskId, TraceId, WorkRequest, WorkResult, WorkState, WorkStatus,
};
