//! Helpers of the tests: the program, servers, callers and agents that the tests control.

pub(crate) mod asking_programs;
pub(crate) mod bridge_caller;
pub(crate) mod bridge_files;
pub(crate) mod bridge_inbox;
pub(crate) mod bridge_watcher;
pub(crate) mod bridged_program;
pub(crate) mod conformity;
pub(crate) mod documents;
pub(crate) mod http_services;
pub(crate) mod long_texts;
pub(crate) mod misbehaving_agents;
pub(crate) mod persistent_callers;
pub(crate) mod program;
pub(crate) mod programs;
pub(crate) mod puller;
pub(crate) mod run_caller;
pub(crate) mod scripted_agent;
pub(crate) mod server;
pub(crate) mod stores;
pub(crate) mod task_caller;
pub(crate) mod task_service;
pub(crate) mod wire;
pub(crate) mod workers;
