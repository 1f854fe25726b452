//! `crosspoint`: the command line.

mod clauses;
mod cli;
mod completions;
mod input;
mod migrate;
mod render;
mod schema;
mod translate;
mod validate;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// How a command ended. The numbers are stable: scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything is fine.
    Fine = 0,
    /// What was asked about is not fine.
    NotFine = 1,
    /// It could not be done: usage, unreadable, unreachable.
    CouldNot = 2,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Translate(arguments) => translate::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Clauses(arguments) => clauses::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    };
    match done {
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            render::error(&error);
            ExitCode::from(Outcome::CouldNot as u8)
        }
    }
}

/// Whoever read our output has seen enough (`crosspoint clauses | head`): that is no failure of ours.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
