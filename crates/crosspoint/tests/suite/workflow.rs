//! The workflow contract: its door and its agents.

mod door;
mod endpoints;
mod example;
mod programs;
mod refusals;
