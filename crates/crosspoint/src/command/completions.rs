//! `crosspoint completions`: prints the completion script of a shell.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;

use crate::Outcome;
use crate::command::{Cli, Completions};

pub(crate) fn run(arguments: &Completions) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "crosspoint", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Outcome::Fine)
}
