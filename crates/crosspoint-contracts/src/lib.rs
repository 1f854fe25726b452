//! The agent contracts: what their documents look like, how they are read, and what is wrong with them.
//!
//! Pure: no I/O, no async, no clock. Bytes come in, typed documents and findings go out.
//!
//! In reading order:
//! - [`clause`]: every rule as data, with the id that validator, checker, errors and docs cite;
//! - [`kind`]: kinds of documents, and how they are told apart;
//! - [`json`]: one scan of the bytes into a tape that remembers places;
//! - [`content`]: what callers and agents wrote, in types that never print it;
//! - [`report`]: findings, and where in the source they are;
//! - `fields`: how a contract reads the members of an object and notes what is wrong with them;
//! - the contracts, which are listed at the end of this file: each with its `wire` types, its `read`, which is also its
//!   validation, its `map` to the job, and its `entry`, by which all shared code finds it;
//! - `list`: what the list at the end of this file means;
//! - [`sse`]: server-sent events, reading and writing;
//! - [`document`]: the entry point for reading, bytes to [`document::Reading`];
//! - [`schema`]: JSON Schemas, made from the types;
//! - [`job`], [`map`], [`translate()`]: any contract into any other;
//! - [`request`], [`reply`], [`outcome`], [`failure`]: what callers ask for and what agents say, whatever the contract.

pub mod artifact;
pub mod clause;
pub mod content;
pub mod delegation;
pub mod document;
mod example;
pub mod exchange;
pub mod failure;
mod fields;
pub mod job;
pub mod json;
pub mod kind;
mod list;
pub mod map;
pub mod nearest;
mod needs;
pub mod outcome;
pub mod printed;
pub mod reply;
pub mod report;
pub mod request;
pub mod retry;
pub mod schema;
pub mod sse;
pub mod time;
mod timestamp;
pub mod translate;

pub use document::{Extent, Inner, Options, Reading, read};
pub use report::{Finding, Report, Wrong};
pub use timestamp::Timestamp;
pub use translate::{read_jobs, translate};

// Fuzzing instruments every test binary of the crate, and each needs the fuzzer's runtime to link.
#[cfg(test)]
use bolero as _;

// The one list of contracts. Each has a module here, and below its name and its kinds of documents.

pub mod bridge;
#[cfg(feature = "demo-contract")]
#[path = "../tests/demo/demo.rs"]
pub mod demo;
pub mod message;
pub mod run;
pub mod task;
pub mod workflow;

list::contracts! {
    /// Two files, and a program that exits and is resumed.
    Bridge = bridge {
        /// The request of a program: `.agent-request.json`.
        BridgeRequest = request: bridge::Request<'s>;
        /// The answer of a driver: `.agent-response.json`.
        BridgeResponse = response: bridge::Response<'s>;
    }
    /// A stateless function from envelope to envelope.
    Workflow = workflow {
        /// What a workflow's agent is given.
        WorkflowInput = input: workflow::Input<'s>;
        /// What a workflow's agent gives back.
        WorkflowOutput = output: workflow::Output<'s>;
    }
    /// Messages between orchestrator and agents.
    Message = message {
        /// Asks an agent to do work.
        WorkRequest = work_request: message::Message<'s, message::WorkRequest<'s>>;
        /// Reports how far the work is.
        WorkStatus = work_status: message::Message<'s, message::WorkStatus<'s>>;
        /// Reports the result of the work.
        WorkResult = work_result: message::Message<'s, message::WorkResult<'s>>;
        /// Reports an error that prevents the normal flow.
        MessageError = error: message::Message<'s, message::ErrorReport<'s>>;
    }
    /// Requests with polling.
    Task = task {
        /// A task to do.
        TaskRequest = request: task::Request<'s>;
        /// The state or the outcome of a task.
        TaskResponse = response: task::Response<'s>;
    }
    /// An HTTP run, in one answer or as a stream.
    Run = run {
        /// A run to do.
        RunRequest = request: run::Request<'s>;
        /// The outcome of a run.
        RunResponse = response: run::Response<'s>;
        /// The events of a run.
        RunStream = stream: run::Stream;
    }
    /// A question and its answer.
    #[cfg(feature = "demo-contract")]
    Demo = demo {
        /// What is asked.
        #[cfg(feature = "demo-contract")]
        DemoAsk = ask: demo::Ask<'s>;
        /// What came of it.
        #[cfg(feature = "demo-contract")]
        DemoAnswer = answer: demo::Answer<'s>;
    }
}

// Part of one contract, but needed by commands and servers wherever documents of any contract are read.
pub use message::AGENT_TYPES;
/// The clause about the schemas of a work, which hold at the doors of all contracts.
pub use task::clause::TASK_10;

/// The kind that a job of our own API is treated as. Of all requests it has members for most of what that API knows.
pub const NATIVE_REQUEST: Kind = Kind::TaskRequest;

/// The kind that reports how such a job ended.
pub const NATIVE_RESPONSE: Kind = Kind::TaskResponse;
