//! Asks the person at the terminal what a run asks.

use std::io;

use rustix::termios::QueueSelector;
use tokio::sync::mpsc;

use crate::terminal::{fold, render};

/// What the person wants.
pub(super) enum Choice {
    /// This is the answer.
    Answer(String),
    /// The run is to end.
    Cancel,
    /// Another time.
    Later,
    /// Nothing: another person was quicker.
    Elsewhere,
}

/// The word by which a run is cancelled. An answer that begins with a colon can be given by `crosspoint jobs answer`.
const CANCEL: &str = ":cancel";

/// Spaces before the lines of a question after its first.
const INDENT: usize = 2;

/// The lines that a person types.
///
/// A terminal is read by the line, in a thread of its own, because a read cannot be called off: the run may go on in
/// this process meanwhile, another person may answer, and the command may end.
pub(super) struct Typed(Option<mpsc::UnboundedReceiver<String>>);

impl Typed {
    pub(super) fn new() -> Typed {
        Typed(None)
    }

    /// Shows the question. What was typed before cannot be meant as its answer.
    pub(super) fn show(&mut self, prompt: &str) {
        self.drop_typed();
        let bold = render::bold();
        render::note("");
        for (at, line) in prompt.lines().enumerate() {
            let line = render::visible(line);
            match at {
                0 => fold::say(&format!("{bold}? {line}{bold:#}"), INDENT),
                _ => fold::say(&format!("  {line}"), INDENT + 2),
            }
        }
        let choices = format!("  an answer goes on; an empty line leaves it for later; {CANCEL} ends the run");
        fold::say(&choices, INDENT);
        fold::prompt("> ");
        // Reading begins with the first question, so that a run that asks nothing leaves the terminal alone.
        self.0.get_or_insert_with(read_lines);
    }

    /// Waits for a line. The future may be dropped, and loses nothing.
    pub(super) async fn choice(&mut self) -> Choice {
        let Some(lines) = &mut self.0 else { return Choice::Later };
        loop {
            match lines.recv().await.as_deref().map(str::trim) {
                None | Some("") => return Choice::Later,
                Some(CANCEL) => return Choice::Cancel,
                Some(word) if word.starts_with(':') => {
                    let word = render::visible(word);
                    fold::say(&format!("  {word} is no command, and no answer was given; {CANCEL} is one"), INDENT);
                    fold::prompt("> ");
                }
                Some(answer) => return Choice::Answer(answer.to_owned()),
            }
        }
    }

    fn drop_typed(&mut self) {
        // First what the terminal still has, then what the thread has read of it.
        let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
        if let Some(lines) = &mut self.0 {
            while lines.try_recv().is_ok() {}
        }
    }
}

fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (typed, lines) = mpsc::unbounded_channel();
    // The thread ends with the terminal's input, or with the process.
    let _ = std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
        io::stdin().lines().map_while(Result::ok).take_while(|line| typed.send(line.clone()).is_ok()).for_each(drop);
    });
    lines
}
