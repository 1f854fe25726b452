//! `--input JSON|@FILE|-`: read, and known to be JSON before anybody is asked.

use std::path::PathBuf;

use anyhow::{Context, Result};
use crosspoint_contracts::json::Tape;

use crate::input::Source;
use crate::render::{self, Spot};

/// The JSON text; `None` where it is none, which was said on stderr.
pub(crate) fn read(argument: &str) -> Result<Option<String>> {
    read_of("--input", argument)
}

/// The same, of another option.
pub(crate) fn read_of(option: &str, argument: &str) -> Result<Option<String>> {
    let (name, bytes) = bytes_of(option, argument)?;
    match Tape::scan(&bytes) {
        // The value alone: without a byte order mark, and without the line break that files end with.
        Ok(tape) => Ok(tape.root().map(|root| root.source().to_owned())),
        Err(broken) => {
            let (offset, syntax) = (broken.error.offset, broken.error.kind);
            let (line, column) = line_and_column(&bytes, offset);
            let spot = Spot { line, text: &bytes, span: (offset, offset + 1) };
            let title = format!("the input is not JSON: {}", syntax.message());
            let place = format!("{name}:{line}:{column}");
            // A failed write to stderr leaves nobody to tell.
            let _ = render::placed(&mut anstream::stderr().lock(), &title, &place, Some(spot), syntax.hint());
            Ok(None)
        }
    }
}

/// What an argument stands for (a text, `@FILE`, or `-` for standard input), and what to call it.
pub(crate) fn bytes_of(option: &str, argument: &str) -> Result<(String, Vec<u8>)> {
    match (argument, argument.strip_prefix('@')) {
        ("-", _) => Ok(("<stdin>".to_owned(), Source::Stdin.read().context("cannot read standard input")?)),
        (_, Some(path)) => {
            let source = Source::File(PathBuf::from(path));
            let name = render::shown_name(&source);
            let bytes = source.read().with_context(|| format!("cannot read {name}"))?;
            Ok((name, bytes))
        }
        (text, None) => Ok((option.to_owned(), text.as_bytes().to_vec())),
    }
}

/// Where a byte is, both from 1; the column counts characters.
pub(crate) fn line_and_column(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = before[start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() + 1;
    (line, column)
}
