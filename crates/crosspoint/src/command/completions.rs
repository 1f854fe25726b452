//! `crosspoint completions`: prints the completion script of a shell.

use std::io::{self, Write};

use anyhow::Result;
use clap::{Args, CommandFactory};

use crate::Exit;
use crate::command::Cli;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint completions bash > ~/.local/share/bash-completion/completions/crosspoint
  crosspoint completions zsh > ~/.zfunc/_crosspoint
  crosspoint completions fish > ~/.config/fish/completions/crosspoint.fish")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

pub(crate) fn run(arguments: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "crosspoint", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Exit::Fine)
}
