//! One binary for all integration tests of the program: they run the real one.

mod access;
mod bridge;
mod cli;
mod contracts;
mod effects;
mod exec;
mod functions;
mod message;
mod message_door;
mod native;
mod privacy;
mod pull;
mod repo;
mod run;
mod service;
mod store;
mod support;
mod task;
mod workflow;
mod workflow_runs;
