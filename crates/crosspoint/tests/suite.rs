//! One binary for all integration tests of the command line: they run the real program.

#[path = "suite/clauses.rs"]
mod clauses;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/migrate.rs"]
mod migrate;
#[path = "suite/repository.rs"]
mod repository;
#[path = "suite/run.rs"]
mod run;
#[path = "suite/translate.rs"]
mod translate;
#[path = "suite/validate.rs"]
mod validate;
