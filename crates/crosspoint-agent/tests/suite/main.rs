//! An agent as callers of each contract see it, over a real socket.

mod support;

mod answers;
mod asking;
mod handlers;
mod process;
mod repo;
mod serving;
mod stopping;
mod workflow;
