//! The run contract: one HTTP request, answered at once or by a stream of events.
//!
//! The [`Request`] is the same for both endpoints. The answer is a [`Response`], or a [`Stream`] of events. The last
//! event, the only terminal one, holds what the response would have held. The order of events is [`Life`]. A
//! [`Follower`] judges a stream as it comes, and a [`StreamWriter`] writes one.

pub mod clause;
pub(crate) mod entry;
mod event;
mod exchange;
pub mod failure;
mod follower;
mod jobs;
mod life;
pub(crate) mod map;
pub(crate) mod read;
mod schema;
pub(crate) mod stream;
mod unused;
mod wire;
mod writer;

pub use event::{EventData, StreamEvent};
pub use follower::{Follower, Heard, Meaning, Violation};
pub use life::{Breach, Life, Role};
pub use stream::Stream;
pub use unused::unused_input;
pub use wire::{
    AgentError, DomainId, Grounding, Progress, Request, RequestId, Response, StageId, Started, Status, Terminal,
    UserId, WorkflowId,
};
pub use writer::{Refused, StreamWriter};
