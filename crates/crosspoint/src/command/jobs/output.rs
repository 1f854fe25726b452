//! `crosspoint jobs output`: prints what a job printed.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};

use super::no_such_job;
use crate::Exit;
use crate::client::Client;
use crate::command::jobs::arguments::JobsOutput;
use crate::command::submit::wait;
use crate::terminal::render;

pub(super) async fn print(client: &Client, arguments: &JobsOutput) -> Result<Exit> {
    let mut interrupts = wait::interrupts()?;
    let mut printed = client.output(&arguments.id.id, arguments.from, arguments.follow, arguments.attempt);
    let mut out = io::stdout().lock();
    let mut shown = out.is_terminal().then(Harmless::default);
    loop {
        let next = tokio::select! {
            next = printed.next() => next.map_err(no_such_job)?,
            _ = interrupts.recv() => return Ok(Exit::Interrupted),
        };
        let Some(bytes) = next else { break };
        let written = match &mut shown {
            Some(harmless) => out.write_all(harmless.text(&bytes).as_bytes()),
            None => out.write_all(&bytes),
        };
        match written.and_then(|()| out.flush()) {
            Ok(()) => {}
            // The reader has seen enough, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Fine),
            Err(error) => return Err(error).context("cannot write the output"),
        }
    }
    Ok(Exit::Fine)
}

/// Makes bytes safe for a terminal. A character may come in two parts.
#[derive(Default)]
struct Harmless {
    begun: Vec<u8>,
}

impl Harmless {
    fn text(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let is_begun = |error: std::str::Utf8Error| error.error_len().is_none();
        let last = all.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        let tail = all.len() - last;
        if last > 0 && std::str::from_utf8(&all[tail..]).is_err_and(is_begun) {
            self.begun = all.split_off(tail);
        }
        let is_kept = |character: &char| matches!(character, '\n' | '\t') || render::is_harmless(*character);
        let show = |character: char| if is_kept(&character) { character } else { '\u{b7}' };
        String::from_utf8_lossy(&all).chars().filter(|character| *character != '\r').map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_shown_text_and_is_not_controlled() {
        let mut harmless = Harmless::default();
        assert_eq!(harmless.text(b"a\tb\r\n\x1b[2J"), "a\tb\n\u{b7}[2J");
        let euro = "\u{20ac}".as_bytes();
        assert_eq!(harmless.text(&euro[..2]), "");
        assert_eq!(harmless.text(&euro[2..]), "\u{20ac}");
        assert_eq!(harmless.text(b"\xff."), "\u{fffd}.");
    }
}
