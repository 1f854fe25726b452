//! One binary for all integration tests of the command line: they run the real program.

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
#[path = "suite/crash.rs"]
mod crash;
#[path = "suite/disk.rs"]
mod disk;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/live.rs"]
mod live;
#[path = "suite/log.rs"]
mod log;
#[path = "suite/migrate.rs"]
mod migrate;
#[path = "suite/overload.rs"]
mod overload;
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
#[path = "suite/write_errors.rs"]
mod write_errors;
