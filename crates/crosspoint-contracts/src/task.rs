//! The task contract: a request, and responses until one is final.
//!
//! The [`Request`] is posted; the [`Response`] is polled, waited for or streamed. Between the two a task may ask for
//! input any number of times. Routing, delegation and tracing travel in blocks of their own.

pub mod clause;
pub(crate) mod entry;
mod exchange;
pub mod failure;
pub(crate) mod map;
pub(crate) mod read;
mod wire;

pub use wire::{
    Artifact, Backoff, Context, ConversationId, Failure, Id, InputRequest, Metadata, Observability, ParentTaskId,
    Priority, Request, Response, RetryPolicy, Routing, SpanId, Status, TraceId,
};
