//! `crosspoint schema`: prints JSON Schemas of kinds.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use crosspoint_contracts::{Kind, schema};

use crate::Exit;
use crate::command::flags::kind_parser;

/// Print the JSON Schema of a kind of document, or list the kinds
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint schema                                          the kinds there are
  crosspoint schema bridge.response > bridge.response.json   for your editor")]
pub(crate) struct Schema {
    /// Which kind; without it the kinds are listed
    #[arg(value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Option<Kind>,
}

pub(crate) fn run(arguments: &Schema) -> Result<Exit> {
    let mut stdout = io::stdout().lock();
    match arguments.kind {
        Some(kind) => stdout.write_all(schema::text(kind).as_bytes())?,
        None => {
            for kind in Kind::ALL {
                writeln!(stdout, "{kind}")?;
            }
        }
    }
    Ok(Exit::Fine)
}
