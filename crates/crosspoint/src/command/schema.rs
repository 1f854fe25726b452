//! `crosspoint schema`: prints JSON Schemas of kinds.

use std::io::{self, Write};

use anyhow::Result;
use crosspoint_contracts::{Kind, schema};

use crate::Outcome;
use crate::command::Schema;

pub(crate) fn run(arguments: &Schema) -> Result<Outcome> {
    let mut stdout = io::stdout().lock();
    match arguments.kind {
        Some(kind) => stdout.write_all(schema::text(kind).as_bytes())?,
        None => {
            for kind in Kind::ALL {
                writeln!(stdout, "{kind}")?;
            }
        }
    }
    Ok(Outcome::Fine)
}
