//! The five agent contracts: what their documents look like, reading them, and saying what is wrong.
//!
//! Pure: no I/O, no async, no clock. Bytes come in, typed documents and findings go out.
//!
//! In reading order:
//! - [`clause`]: every rule as data, with the id that validator, checker, errors and docs cite;
//! - [`kind`]: the contracts, the thirteen kinds of documents, and telling them apart;
//! - [`json`]: one scan of the bytes into a tape that remembers places;
//! - [`content`]: what callers and agents wrote, in types that never print it;
//! - [`report`]: findings, and where in the source they are;
//! - `fields`: how a contract reads the members of an object and notes what is wrong with them;
//! - [`bridge`], [`workflow`], [`message`], [`task`], [`run`]: the contracts, each with its `wire` types and its
//!   `read`, which is also its validation;
//! - [`sse`]: server-sent events, both ways;
//! - [`document`]: the front door, bytes to [`document::Reading`];
//! - [`schema`]: JSON Schemas, made from the types.

pub mod artifact;
pub mod bridge;
pub mod clause;
pub mod content;
pub mod document;
mod example;
pub mod failure;
mod fields;
pub mod job;
pub mod json;
pub mod kind;
pub mod map;
pub mod message;
pub mod report;
pub mod run;
pub mod schema;
pub mod sse;
pub mod task;
mod timestamp;
pub mod translate;
pub mod workflow;

pub use document::{Document, Inner, Options, Reading, read};
pub use kind::{Contract, Kind};
pub use report::{Finding, Report};
pub use timestamp::Timestamp;
pub use translate::{read_jobs, translate};

// Fuzzing instruments every test binary of the crate, and each needs the fuzzer's runtime to link.
#[cfg(test)]
use bolero as _;
