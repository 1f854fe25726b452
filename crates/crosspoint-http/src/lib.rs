//! HTTP for both sides of Crosspoint: serving callers, and calling agents.
//!
//! It moves bytes within limits and knows no engine and no store. The doors of contracts give the work to a
//! [`Backend`](crosspoint_exchange::backend::Backend): the orchestrator's engine, or an agent that serves by itself.
//!
//! Serving, in reading order:
//! - [`site`]: what all requests to one server share: limits, counts, and whether it is stopping;
//! - [`socket`], [`connection`], [`slow_reader`]: who gets a place, and how a connection ends;
//! - [`limit`]: what each address and each caller has of its own; [`token`]: the secrets by which they are known;
//! - [`host`], [`reach`]: which requests are meant for this server and come from no foreign page;
//! - [`body`], [`json_body`], [`query`], [`headers`]: what comes in; [`long`]: documents that keep a processor busy;
//! - [`door`]: the doors of contracts;
//! - [`json`], [`event_stream`]: what goes out; [`refusal`], [`refusal_document`]: or why nothing does;
//! - [`tally`], [`request_log`]: what is counted, and what is logged.
//!
//! Calling: [`call`] is the way to one agent.

pub mod body;
pub mod call;
pub mod connection;
pub mod door;
pub mod event_stream;
pub mod headers;
pub mod held;
pub mod host;
pub mod json;
pub mod json_body;
pub mod limit;
pub mod long;
pub mod query;
pub mod range;
pub mod reach;
pub mod refusal;
pub mod refusal_document;
pub mod request_log;
pub mod site;
pub mod slow_reader;
pub mod socket;
pub mod tally;
pub mod token;

pub use refusal::Refused;
pub use site::Site;
