//! The bridge contract: checkpoint and resume through two files.
//!
//! A program that cannot call agents leaves a [`Request`] in `.agent-request.json` and exits. A driver runs the agent,
//! leaves a [`Response`] in `.agent-response.json` and starts the program again. The answer itself is a text inside the
//! response, often JSON encoded once more, so there are two levels of parsing and two sorts of mistakes.

pub mod clause;
pub(crate) mod entry;
mod exchange;
pub mod failure;
pub(crate) mod map;
pub(crate) mod read;
mod wire;

pub use exchange::input;
pub use wire::{Request, RequestId, Response, Status};
