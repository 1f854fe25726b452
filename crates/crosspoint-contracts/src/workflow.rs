//! The workflow contract: a stateless function from an input envelope to an output envelope.
//!
//! The [`Input`] says where in which workflow the agent stands, which files matter and what to do. The [`Output`] says
//! what happened, which files to write and what should come next. Agents do not know each other or the graph.
//!
//! [`migrate()`] rewrites what agents older than the envelopes were given and gave back.

pub mod clause;
pub(crate) mod entry;
mod exchange;
pub mod failure;
pub(crate) mod map;
pub mod migrate;
mod path;
pub(crate) mod read;
mod wire;

pub use migrate::migrate;
pub use path::{Misplaced, misplaced};
pub use wire::{Artifact, Context, FeatureId, Input, Operation, Output, Paths, Recommendation, Task};
