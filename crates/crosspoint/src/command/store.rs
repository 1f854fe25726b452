//! `crosspoint store`: checks and exports the store.

pub(crate) mod arguments;
mod audit;
mod check;
mod draft;
mod export;
mod line;
mod progress;

use std::path::Path;

use anyhow::Result;

use crate::Exit;
use crate::command::flags::StoreFlags;
use crate::command::store::arguments::{StoreAction, StoreCommand};
use crate::config::Config;
use crate::terminal::render;

pub(crate) fn run(arguments: &StoreCommand) -> Result<Exit> {
    match &arguments.action {
        StoreAction::Check(arguments) => with_store(&arguments.store, |path| check::check(path, arguments)),
        StoreAction::Export(arguments) => with_store(&arguments.store, |path| export::export(path, arguments)),
    }
}

/// Runs `act` with the configured database if it exists. None is created.
fn with_store(flags: &StoreFlags, act: impl FnOnce(&Path) -> Result<Exit>) -> Result<Exit> {
    let config = Config::load(&flags.flags())?;
    if !config.store.path.exists() {
        let message = format!("there is no store at {}", config.store.path.display());
        render::refused(&message, "name one with --data DIR or --store sqlite:PATH");
        return Ok(Exit::CouldNot);
    }
    act(&config.store.path)
}
