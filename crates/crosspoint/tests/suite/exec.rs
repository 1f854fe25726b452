//! Programs as agents.

mod ask;
mod copies;
mod crash;
mod ends;
mod examples;
mod fails;
mod limits;
mod output;
mod parting;
mod programs;
mod spares;
pub(crate) mod start;
mod whole;
