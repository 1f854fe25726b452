//! The command line: what people type, and what they see.

mod audit;
mod broken_connections;
mod clauses;
pub(crate) mod config;
mod config_of_callers;
mod config_of_messages;
mod config_of_programs;
mod config_of_services;
mod config_of_works;
pub(crate) mod embedded;
mod help;
mod hints;
pub(crate) mod jobs;
mod migrate;
mod planted;
mod store;
mod terminal;
mod translate;
mod validate;
