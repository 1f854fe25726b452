//! Asks the person at the terminal what a run asks.

use std::io::{self, Write};

use anyhow::Result;

use crate::terminal::render;

/// What the person wants.
pub(super) enum Choice {
    /// This is the answer.
    Answer(String),
    /// The run is to end.
    Cancel,
    /// Another time.
    Later,
}

/// The word by which a run is cancelled. An answer that begins with a colon can be given by `crosspoint jobs answer`.
const CANCEL: &str = ":cancel";

/// Shows the question, and reads one line.
pub(super) async fn person(prompt: &str) -> Result<Choice> {
    let bold = render::bold();
    let mut out = anstream::AutoStream::auto(io::stderr().lock());
    writeln!(out)?;
    for (at, line) in prompt.lines().enumerate() {
        match at {
            0 => writeln!(out, "{bold}? {}{bold:#}", render::visible(line))?,
            _ => writeln!(out, "  {}", render::visible(line))?,
        }
    }
    writeln!(out, "  an answer goes on; an empty line leaves it for later; {CANCEL} ends the run")?;
    write!(out, "> ")?;
    out.flush()?;
    drop(out);
    // A terminal is read by the line, in a thread of its own: the run may go on in this process meanwhile.
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = line.await??;
    Ok(match line.trim() {
        "" => Choice::Later,
        CANCEL => Choice::Cancel,
        answer => Choice::Answer(answer.to_owned()),
    })
}
