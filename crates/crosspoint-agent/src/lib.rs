//! One async function as an agent in every contract.
//!
//! ```no_run
//! use crosspoint_agent::{Agent, Context, Failure};
//! use serde_json::Value;
//!
//! async fn echo(input: Value, context: Context) -> Result<Value, Failure> {
//!     context.progress(50.0, "Echoing");
//!     Ok(input)
//! }
//!
//! # async fn main_() -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
//! Agent::new("echo").on("echo", echo).serve(listener, crosspoint_agent::interrupted()).await
//! # }
//! ```
//!
//! A handler that panics is a failed job, not a dead agent. A request that comes again gets the answer of the first
//! one, also after a restart.

#![forbid(unsafe_code)]

mod agent;
mod answers;
mod clock;
mod context;
mod desk;
mod doing;
mod failure;
mod handler;
mod message;
mod output;
mod record;
mod same;
mod serve;

pub use agent::Agent;
pub use answers::Keep;
pub use context::Context;
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
