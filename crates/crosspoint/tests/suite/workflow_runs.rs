//! Runs of workflows, in a server and in the command.

mod bad_agents;
mod beside;
mod commands;
mod contracts;
mod files;
mod kept;
mod kills;
mod pages;
mod people;
mod roots;
mod routes;
mod same_root;
mod stages_that_wait;
mod said;
mod taking_up;
mod terminal;
