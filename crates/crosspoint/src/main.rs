//! `crosspoint`: the command line.

mod agent_side;
mod backend;
mod bridge;
mod client;
mod command;
mod config;
mod deliver;
mod exec;
mod input;
mod json_input;
#[cfg(feature = "leaks")]
#[path = "../tests/leaks/leak.rs"]
mod leak;
mod link;
mod local;
mod log;
mod pull;
mod retrying;
mod schemas;
mod server;
mod signals;
mod terminal;
mod translation;
mod verdict;
mod workflow;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use command::Cli;
use terminal::render;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended. The exit codes are stable: scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    /// Success.
    Fine,
    /// The command worked, and its subject is not in order: an invalid document, a failed job.
    NotFine,
    /// The command could not be carried out: wrong usage, unreadable input, unreachable server.
    CouldNot,
    /// The job waits for a person.
    Waiting,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The exit code of a program that the command ran.
    Passed(u8),
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::NotFine => 1,
            Exit::CouldNot => 2,
            Exit::Waiting => 3,
            Exit::Interrupted => 130,
            Exit::Passed(code) => code,
        }
    }
}

fn main() -> ExitCode {
    // First of all: this process exists once for every running program, and must cost next to nothing.
    match std::env::args_os().nth(1) {
        Some(word) if word == exec::SUPERVISE => return exec::supervise(),
        Some(word) if word == command::BRIDGE_CHILD => return command::become_bridged_program(),
        Some(_) | None => {}
    }
    std::panic::set_hook(Box::new(|panic| {
        #[cfg(feature = "leaks")]
        leak::panic(panic);
        render::panicked(panic.location());
    }));
    match Cli::parse().command.run() {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            render::error(&error);
            ExitCode::from(Exit::CouldNot.code())
        }
    }
}

/// Whether the reader of our output has closed the pipe (`crosspoint clauses | head`), which is not a failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
