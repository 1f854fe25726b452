//! One async function as an agent in every contract.
//!
//! ```
//! use crosspoint_agent::{Agent, Context, Failure};
//! use serde_json::Value;
//!
//! async fn echo(input: Value, context: Context) -> Result<Value, Failure> {
//!     context.progress(50.0, "Echoing");
//!     Ok(input)
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let agent = Agent::new("echo").on("echo", echo);
//! # let agent = agent.forgetful();
//! let stop = crosspoint_agent::interrupted();
//! # let stop = async { drop(stop) };
//! agent.serve(listener, stop).await
//! # }
//! ```
//!
//! A handler that panics is a failed job, not a dead agent. Rust writes the text of a panic to stderr, and it may be
//! content; `std::panic::set_hook` changes that. A request that comes again gets the answer of the first one, also
//! after a restart.

#![forbid(unsafe_code)]

mod agent;
mod answers;
mod backend;
mod clock;
mod context;
mod doing;
mod doors;
mod failure;
mod gate;
mod handler;
mod ids;
mod message;
mod output;
mod places;
mod questions;
mod record;
mod same;
mod serve;
mod written;

pub use agent::Agent;
pub use answers::Keep;
pub use context::{Context, Operation, Recommendation, Workflow};
pub use crosspoint_contracts::Contract;
pub use failure::Failure;
pub use handler::Handler;
pub use output::Output;
pub use url::Url;

/// The code of the pages about this crate, for rustdoc to run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sdk.md")]
#[doc = include_str!("../README.md")]
struct Pages;

/// Completes when the process is told to stop: by Ctrl-C, or by SIGTERM, which `kill`, systemd and docker send.
///
/// ```standalone_crate
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stopped = tokio::spawn(crosspoint_agent::interrupted());
/// # let own = std::process::id().to_string();
/// # // Until it listens for the signal, this one takes it.
/// # let _taken = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
/// # while !stopped.is_finished() {
/// #     std::process::Command::new("kill").args(["-s", "TERM", &own]).status()?;
/// #     tokio::task::yield_now().await;
/// # }
/// stopped.await?;
/// # Ok(())
/// # }
/// ```
pub async fn interrupted() {
    #[cfg(unix)]
    if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}
