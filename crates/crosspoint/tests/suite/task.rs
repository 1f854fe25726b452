//! The task contract: its door and its agents.

pub(crate) mod agent;
mod agent_faults;
mod agent_restart;
mod breaks;
mod cancel;
mod door;
mod events;
mod examples;
mod misbehaviour;
mod refusals;
mod trace;
