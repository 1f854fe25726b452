//! Helpers of the tests: the program, servers, callers and agents that the tests control.

pub(crate) mod asking_programs;
pub(crate) mod bridge_agent;
pub(crate) mod bridge_caller;
pub(crate) mod bridge_directory;
pub(crate) mod bridge_run;
pub(crate) mod bridge_watcher;
pub(crate) mod conformity;
pub(crate) mod documents;
pub(crate) mod long_texts;
pub(crate) mod message_caller;
pub(crate) mod message_post;
pub(crate) mod misbehaving_agents;
pub(crate) mod pages;
pub(crate) mod persistent_callers;
pub(crate) mod program;
pub(crate) mod programs;
pub(crate) mod puller;
pub(crate) mod run_agent;
pub(crate) mod run_caller;
pub(crate) mod scripted_agent;
pub(crate) mod server;
pub(crate) mod stores;
pub(crate) mod task_agent;
pub(crate) mod task_caller;
pub(crate) mod workers;
