//! `crosspoint config`: shows and checks the configuration.

use std::io::{self, Write};
use std::path::PathBuf;

use anstyle::AnsiColor;
use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use crosspoint_contracts::clause::Level;
use crosspoint_exchange::listed::listed;

use crate::Exit;
use crate::command::flags::StoreFlags;
use crate::config::{self, Config, Flags, Invalid, Loaded};
use crate::terminal::render;

/// Check or show the configuration: what holds, and where it came from
///
/// The defaults hold unless the file says otherwise; the environment wins over the file, and options win over both.
/// Every key of one value can be set in the environment: CROSSPOINT_SERVER_LISTEN is the key listen of the table
/// server.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint config check                     can the configuration be used? if not: where is the mistake?
  crosspoint config check new.toml
  crosspoint config show                      everything that holds, and where it came from
  crosspoint config show > new.toml           a file to start from")]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

#[derive(Subcommand)]
pub(crate) enum ConfigAction {
    Check(ConfigCheck),
    Show(ConfigShow),
}

/// Say what is wrong with the configuration, where, and how to mend it
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint config check
  crosspoint config check new.toml

Exit codes: 0 it can be used, 1 it cannot, 2 it could not be read.")]
pub(crate) struct ConfigCheck {
    /// The file to check [default: the one that serve would use]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

/// Print everything that holds as TOML, each value with where it came from
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint config show
  CROSSPOINT_SERVER_LISTEN=127.0.0.1:0 crosspoint config show | grep listen")]
pub(crate) struct ConfigShow {
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

pub(crate) fn run(arguments: &ConfigCommand) -> Result<Exit> {
    match &arguments.action {
        ConfigAction::Check(check) => {
            let config = check.file.clone().or_else(|| check.store.config.clone());
            check_configuration(&Flags { config, ..check.store.flags() })
        }
        ConfigAction::Show(show) => {
            let loaded = Loaded::load(&show.store.flags())?;
            config::show(&mut io::stdout().lock(), &loaded)?;
            Ok(Exit::Fine)
        }
    }
}

fn check_configuration(flags: &Flags) -> Result<Exit> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    match Loaded::load(flags) {
        Ok(loaded) => {
            loaded.warnings.iter().try_for_each(|warning| warning.print(&mut out, Level::Warning))?;
            writeln!(out, "{}", summary(&loaded.config))?;
            Ok(Exit::Fine)
        }
        Err(error) => {
            let invalid = error.downcast::<Invalid>()?;
            invalid.print(&mut out)?;
            let count = invalid.0.len();
            writeln!(out, "the configuration cannot be used: {count} {}", if count == 1 { "error" } else { "errors" })?;
            Ok(Exit::NotFine)
        }
    }
}

fn summary(config: &Config) -> String {
    let green = AnsiColor::Green.on_default().bold();
    let what = match &config.origin {
        Some(path) => format!("{} can be used", render::visible(&path.display().to_string())),
        None => "no configuration file was found, and the defaults can be used".to_owned(),
    };
    let names = |names: Vec<&str>| render::visible(&listed(&names, "crosspoint config show lists all"));
    let listen = render::visible(&config.server.listen);
    let agents = names(config.agents.iter().map(|agent| agent.name.as_str()).collect());
    let callers = names(config.callers.iter().map(|caller| caller.name.as_str()).collect());
    let callers = if config.callers.is_empty() { String::new() } else { format!("; callers: {callers}") };
    format!("{green}ok{green:#}: {what}: listens on {listen}; agents: {agents}{callers}")
}
