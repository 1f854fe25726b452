//! `crosspoint config`: shows and checks the configuration.

use std::io::{self, Write};

use anstyle::AnsiColor;
use anyhow::Result;

use crate::Outcome;
use crate::command::{ConfigAction, ConfigCommand};
use crate::config::{self, Config, Flags, Invalid, Loaded};
use crate::listed::listed;
use crate::terminal::render;

pub(crate) fn run(arguments: &ConfigCommand) -> Result<Outcome> {
    match &arguments.action {
        ConfigAction::Check(check) => {
            let config = check.file.clone().or_else(|| check.place.config.clone());
            check_configuration(&Flags { config, ..check.place.flags() })
        }
        ConfigAction::Show(show) => {
            let loaded = Loaded::load(&show.place.flags())?;
            config::show(&mut io::stdout().lock(), &loaded)?;
            Ok(Outcome::Fine)
        }
    }
}

fn check_configuration(flags: &Flags) -> Result<Outcome> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    match Config::load(flags) {
        Ok(config) => {
            writeln!(out, "{}", summary(&config))?;
            Ok(Outcome::Fine)
        }
        Err(error) => {
            let invalid = error.downcast::<Invalid>()?;
            invalid.print(&mut out)?;
            let count = invalid.0.len();
            writeln!(out, "the configuration cannot be used: {count} {}", if count == 1 { "error" } else { "errors" })?;
            Ok(Outcome::NotFine)
        }
    }
}

fn summary(config: &Config) -> String {
    let green = AnsiColor::Green.on_default().bold();
    let what = match &config.origin {
        Some(path) => format!("{} can be used", render::visible(&path.display().to_string())),
        None => "no configuration file was found, and the defaults can be used".to_owned(),
    };
    let agents: Vec<String> = config.agents.iter().map(|agent| render::visible(&agent.name)).collect();
    let listen = render::visible(&config.server.listen);
    let agents = listed(&agents.iter().map(String::as_str).collect::<Vec<_>>(), "crosspoint config show lists all");
    format!("{green}ok{green:#}: {what}: listens on {listen}; agents: {agents}")
}
