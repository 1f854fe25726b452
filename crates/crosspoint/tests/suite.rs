//! One binary for all integration tests of the command line: they run the real program.

#[path = "suite/agent.rs"]
mod agent;
#[path = "suite/agent_deaths.rs"]
mod agent_deaths;
#[path = "suite/agent_refusals.rs"]
mod agent_refusals;
#[path = "suite/callers.rs"]
mod callers;
#[path = "suite/clauses.rs"]
mod clauses;
#[path = "suite/client.rs"]
mod client;
#[path = "suite/client_breaks.rs"]
mod client_breaks;
#[path = "suite/config.rs"]
mod config;
#[path = "suite/conformity.rs"]
mod conformity;
#[path = "suite/crash.rs"]
mod crash;
#[path = "suite/disk.rs"]
mod disk;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/exec.rs"]
mod exec;
#[path = "suite/exec_ask.rs"]
mod exec_ask;
#[path = "suite/exec_config.rs"]
mod exec_config;
#[path = "suite/exec_crash.rs"]
mod exec_crash;
#[path = "suite/exec_ends.rs"]
mod exec_ends;
#[path = "suite/exec_examples.rs"]
mod exec_examples;
#[path = "suite/exec_limits.rs"]
mod exec_limits;
#[path = "suite/exec_output.rs"]
mod exec_output;
#[path = "suite/exec_start.rs"]
mod exec_start;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/keeping.rs"]
mod keeping;
#[path = "suite/live.rs"]
mod live;
#[path = "suite/log.rs"]
mod log;
#[path = "suite/metrics.rs"]
mod metrics;
#[path = "suite/migrate.rs"]
mod migrate;
#[path = "suite/openapi.rs"]
mod openapi;
#[path = "suite/overload.rs"]
mod overload;
#[path = "suite/peers.rs"]
mod peers;
#[path = "suite/programs.rs"]
mod programs;
#[path = "suite/pull.rs"]
mod pull;
#[path = "suite/pull_edges.rs"]
mod pull_edges;
#[path = "suite/puller.rs"]
mod puller;
#[path = "suite/repository.rs"]
mod repository;
#[path = "suite/run.rs"]
mod run;
#[path = "suite/server.rs"]
mod server;
#[path = "suite/server_life.rs"]
mod server_life;
#[path = "suite/server_limits.rs"]
mod server_limits;
#[path = "suite/shutdown.rs"]
mod shutdown;
#[path = "suite/store_command.rs"]
mod store_command;
#[path = "suite/stored.rs"]
mod stored;
#[path = "suite/stuck.rs"]
mod stuck;
#[path = "suite/sync.rs"]
mod sync;
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/translate.rs"]
mod translate;
#[path = "suite/validate.rs"]
mod validate;
#[path = "suite/workers.rs"]
mod workers;
#[path = "suite/write_errors.rs"]
mod write_errors;
