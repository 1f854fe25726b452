//! An agent as callers of each contract see it, over a real socket.

mod orchestrator;
mod support;

mod answers;
mod handlers;
mod process;
mod pulling;
mod repo;
mod serving;
mod stopping;
mod telling;
