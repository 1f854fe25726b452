//! `--input JSON|@FILE|-`: reads the value, and checks that it is JSON before any request is sent.

use std::path::PathBuf;

use anyhow::{Context, Result};
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::json::Tape;
use crosspoint_http::json_body::line_and_column;

use crate::input::Source;
use crate::terminal::render::{self, Spot};

/// Returns the JSON text, or `None` if the input is not JSON; the error was then printed on stderr.
pub(crate) fn read(argument: &str) -> Result<Option<String>> {
    read_of("--input", argument)
}

/// Like [`read`], for another option.
pub(crate) fn read_of(option: &str, argument: &str) -> Result<Option<String>> {
    let (name, bytes) = bytes_of(option, argument)?;
    Ok(value(&name, &bytes, None))
}

/// Like [`read`], with a hint of its own for an argument that is written out and is not JSON.
pub(crate) fn read_hinted(argument: &str, hint: &str) -> Result<Option<String>> {
    let (name, bytes) = bytes_of("--input", argument)?;
    let is_written_out = bytes == argument.as_bytes();
    Ok(value(&name, &bytes, is_written_out.then_some(hint)))
}

fn value(name: &str, bytes: &[u8], hint: Option<&str>) -> Option<String> {
    match Tape::scan(bytes) {
        // Only the value: without a byte order mark, and without the line break at the end of a file.
        Ok(tape) => tape.root().map(|root| root.source().to_owned()),
        Err(broken) => {
            let (offset, syntax) = (broken.error.offset, broken.error.kind);
            let (line, column) = line_and_column(bytes, offset);
            let spot = Spot { line, text: bytes, span: (offset, offset + 1) };
            let title = format!("the input is not JSON: {}", syntax.message());
            let position = format!("{name}:{line}:{column}");
            let hint = hint.unwrap_or(syntax.hint());
            let mut stderr = anstream::stderr().lock();
            // A failed write to stderr cannot be reported anywhere.
            let _ = render::placed(&mut stderr, Level::Error, &title, &position, Some(spot), hint);
            None
        }
    }
}

/// Reads what an argument stands for (a text, `@FILE`, or `-` for standard input), and returns its name for messages
/// and its bytes.
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
