//! The message contract: its agents.

mod breaker;
mod cancel;
mod heartbeats;
mod idempotency;
mod misbehaviour;
mod names;
mod output;
mod pull;
mod push;
mod registration;
mod retries;
mod silence;
mod tokens;
mod types;
