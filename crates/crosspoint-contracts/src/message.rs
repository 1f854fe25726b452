//! The message contract: one envelope for everything that an orchestrator and its agents say to each other.
//!
//! A `work_request` goes to an agent; any number of `work_status` come back, then one `work_result` or `error`. The
//! envelope is the same for all, over REST and over a queue. Deployed agents use a later dialect, which is read with a
//! warning (MSG-16).
//!
//! Besides the documents, these modules hold the decisions of the contract that need neither clock nor network: which
//! codes are sent again ([`code`]), which version to speak ([`version`]), how long output travels ([`chunk`]), what any
//! message is about ([`about`]), what cancels work ([`cancelling`]), and how agents introduce themselves and stay known
//! ([`registration`], [`heartbeat`]). [`notice`] writes errors to agents.

pub mod about;
pub mod cancelling;
pub mod chunk;
pub mod clause;
pub mod code;
mod context;
pub(crate) mod entry;
pub(crate) mod error;
mod exchange;
pub mod failure;
pub mod heartbeat;
pub(crate) mod map;
pub mod notice;
pub(crate) mod read;
pub mod registration;
pub mod version;
mod wire;

pub use about::About;
pub use cancelling::Cancel;
pub use chunk::Chunk;
pub use heartbeat::Sign;
pub use notice::Notice;
pub use read::AGENT_TYPES;
pub use registration::Registration;
pub use wire::{
    AgentId, AgentType, Dialect, ErrorReport, Heartbeat, Hints, Message, MessageId, MessageType, Presence, Progress,
    RequestId, ResourcesUsed, ResultStatus, Step, TaskId, TraceId, WorkRequest, WorkResult, WorkState, WorkStatus,
};
