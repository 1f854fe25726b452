//! The bridge contract: its door, its agents, and the commands.

mod agent;
mod agent_restart;
mod answer;
mod ask;
mod door;
mod examples;
mod kills;
mod mistakes;
mod others;
mod pages;
mod refusals;
mod run;
mod run_company;
mod run_files;
mod run_signals;
mod run_start;
mod status;
mod watch;
mod watch_directories;
mod watchers;
