//! An agent as callers of each contract see it, over a real socket.

mod support;

mod answers;
mod asking;
mod disk;
mod handlers;
mod process;
mod repeats;
mod repo;
mod serving;
mod stopping;
mod workflow;
