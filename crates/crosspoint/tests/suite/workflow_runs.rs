//! Runs of workflows, in a server and in the command.

mod bad_agents;
mod beside;
mod commands;
mod contracts;
mod files;
mod half_written;
mod kept;
mod kills;
mod pages;
mod people;
mod roots;
mod routes;
mod said;
mod same_root;
mod stages_that_wait;
mod syncs;
mod taking_up;
mod terminal;
