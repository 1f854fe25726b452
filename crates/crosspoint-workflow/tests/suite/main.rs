//! One binary for all integration tests of workflows: definitions and runs as values, real directories, and processes
//! that are really killed.

mod crash;
mod definition;
mod diff;
mod hostile;
mod process;
mod repository;
mod run;
mod scratch;
