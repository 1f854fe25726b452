//! One binary for all integration tests of the command line: they run the real program.

#[path = "suite/agent.rs"]
mod agent;
#[path = "suite/agent_deaths.rs"]
mod agent_deaths;
#[path = "suite/agent_leaving.rs"]
mod agent_leaving;
#[path = "suite/agent_refusals.rs"]
mod agent_refusals;
#[path = "suite/asks.rs"]
mod asks;
#[path = "suite/bridge_agent.rs"]
mod bridge_agent;
#[path = "suite/bridge_agent_restart.rs"]
mod bridge_agent_restart;
#[path = "suite/bridge_answer.rs"]
mod bridge_answer;
#[path = "suite/bridge_ask.rs"]
mod bridge_ask;
#[path = "suite/bridge_door.rs"]
mod bridge_door;
#[path = "suite/bridge_examples.rs"]
mod bridge_examples;
#[path = "suite/bridge_kills.rs"]
mod bridge_kills;
#[path = "suite/bridge_mistakes.rs"]
mod bridge_mistakes;
#[path = "suite/bridge_others.rs"]
mod bridge_others;
#[path = "suite/bridge_place.rs"]
mod bridge_place;
#[path = "suite/bridge_readme.rs"]
mod bridge_readme;
#[path = "suite/bridge_refusals.rs"]
mod bridge_refusals;
#[path = "suite/bridge_run.rs"]
mod bridge_run;
#[path = "suite/bridge_run_company.rs"]
mod bridge_run_company;
#[path = "suite/bridge_run_signals.rs"]
mod bridge_run_signals;
#[path = "suite/bridge_status.rs"]
mod bridge_status;
#[path = "suite/bridge_watch.rs"]
mod bridge_watch;
#[path = "suite/bridge_watchers.rs"]
mod bridge_watchers;
#[path = "suite/callers.rs"]
mod callers;
#[path = "suite/chain.rs"]
mod chain;
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
#[cfg(feature = "demo-contract")]
#[path = "suite/demo_contract.rs"]
mod demo_contract;
#[path = "suite/disk.rs"]
mod disk;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/embedded.rs"]
mod embedded;
#[path = "suite/exchanges.rs"]
mod exchanges;
#[path = "suite/exec.rs"]
mod exec;
#[path = "suite/exec_ask.rs"]
mod exec_ask;
#[path = "suite/exec_config.rs"]
mod exec_config;
#[path = "suite/exec_copies.rs"]
mod exec_copies;
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
#[path = "suite/exec_parting.rs"]
mod exec_parting;
#[path = "suite/exec_start.rs"]
mod exec_start;
#[path = "suite/faultless.rs"]
mod faultless;
#[path = "suite/forged.rs"]
mod forged;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/hints.rs"]
mod hints;
#[path = "suite/inbox.rs"]
mod inbox;
#[path = "suite/keeping.rs"]
mod keeping;
#[path = "suite/left_files.rs"]
mod left_files;
#[path = "suite/live.rs"]
mod live;
#[path = "suite/log.rs"]
mod log;
#[path = "suite/matrix.rs"]
mod matrix;
#[path = "suite/metrics.rs"]
mod metrics;
#[path = "suite/migrate.rs"]
mod migrate;
#[path = "suite/misbehaviour.rs"]
mod misbehaviour;
#[path = "suite/older_store.rs"]
mod older_store;
#[path = "suite/one_server.rs"]
mod one_server;
#[path = "suite/openapi.rs"]
mod openapi;
#[path = "suite/outage.rs"]
mod outage;
#[path = "suite/overload.rs"]
mod overload;
#[path = "suite/peers.rs"]
mod peers;
#[path = "suite/planted.rs"]
mod planted;
#[path = "suite/poison.rs"]
mod poison;
#[path = "suite/programs.rs"]
mod programs;
#[path = "suite/pull.rs"]
mod pull;
#[path = "suite/pull_edges.rs"]
mod pull_edges;
#[path = "suite/puller.rs"]
mod puller;
#[path = "suite/redirects.rs"]
mod redirects;
#[path = "suite/remote_config.rs"]
mod remote_config;
#[path = "suite/repository.rs"]
mod repository;
#[path = "suite/requester.rs"]
mod requester;
#[path = "suite/run.rs"]
mod run;
#[path = "suite/run_agent.rs"]
mod run_agent;
#[path = "suite/run_agent_says.rs"]
mod run_agent_says;
#[path = "suite/run_breaks.rs"]
mod run_breaks;
#[path = "suite/run_callers.rs"]
mod run_callers;
#[path = "suite/run_door.rs"]
mod run_door;
#[path = "suite/run_examples.rs"]
mod run_examples;
#[path = "suite/run_floods.rs"]
mod run_floods;
#[path = "suite/run_life.rs"]
mod run_life;
#[path = "suite/run_misbehaviour.rs"]
mod run_misbehaviour;
#[path = "suite/run_refusals.rs"]
mod run_refusals;
#[path = "suite/run_streamless.rs"]
mod run_streamless;
#[path = "suite/runs.rs"]
mod runs;
#[path = "suite/same_numbers.rs"]
mod same_numbers;
#[path = "suite/scripted.rs"]
mod scripted;
#[path = "suite/server.rs"]
mod server;
#[path = "suite/server_life.rs"]
mod server_life;
#[path = "suite/server_limits.rs"]
mod server_limits;
#[path = "suite/services.rs"]
mod services;
#[path = "suite/shares.rs"]
mod shares;
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
#[path = "suite/task_agent.rs"]
mod task_agent;
#[path = "suite/task_agent_faults.rs"]
mod task_agent_faults;
#[path = "suite/task_agent_restart.rs"]
mod task_agent_restart;
#[path = "suite/task_breaks.rs"]
mod task_breaks;
#[path = "suite/task_door.rs"]
mod task_door;
#[path = "suite/task_events.rs"]
mod task_events;
#[path = "suite/task_examples.rs"]
mod task_examples;
#[path = "suite/task_misbehaviour.rs"]
mod task_misbehaviour;
#[path = "suite/task_refusals.rs"]
mod task_refusals;
#[path = "suite/task_server.rs"]
mod task_server;
#[path = "suite/task_trace.rs"]
mod task_trace;
#[path = "suite/tasks.rs"]
mod tasks;
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/tidy.rs"]
mod tidy;
#[path = "suite/translate.rs"]
mod translate;
#[path = "suite/unix_server.rs"]
mod unix_server;
#[path = "suite/unreadable.rs"]
mod unreadable;
#[path = "suite/validate.rs"]
mod validate;
#[path = "suite/watching.rs"]
mod watching;
#[path = "suite/web_pages.rs"]
mod web_pages;
#[path = "suite/wire.rs"]
mod wire;
#[path = "suite/workers.rs"]
mod workers;
#[path = "suite/write_errors.rs"]
mod write_errors;
