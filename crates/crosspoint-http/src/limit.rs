//! Limits that each address or each caller has of its own, so that one of them cannot use up what is there for all.
//!
//! - [`peer`]: who is counted as one;
//! - [`shares`]: how many things each has at a time: connections, event streams;
//! - [`rates`]: how many requests each sends in a second;
//! - [`failures`]: how often each has failed to show who it is;
//! - [`streams`]: the place of one event stream;
//! - `bodies`: how many bytes of bodies are being read;
//! - `unsent`: whose long answers have to go when there are too many;
//! - [`head`]: how long the head of a request may be.
//!
//! What is remembered of an address is bounded (`recent`): a caller may have a million of them.

pub(crate) mod bodies;
pub mod failures;
pub mod head;
pub mod peer;
pub mod rates;
mod recent;
pub mod shares;
pub mod streams;
mod unsent;

pub(crate) use bodies::Bodies;
pub use failures::Failures;
pub use peer::{Each, Peer};
pub use rates::Rates;
pub use shares::Shares;
pub use streams::{CallerKey, StreamPlace};
pub(crate) use unsent::Unsent;
