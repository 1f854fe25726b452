//! Lines for people on stderr. It may be a pipe that is not being read, and then no job must wait for it: lines that
//! find no room are left out.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::terminal::fold;

/// Most lines that wait to be printed.
const WAITING_MAX: usize = 1_000;

/// Longest wait for the last lines.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

static LINES: OnceLock<SyncSender<Line>> = OnceLock::new();

enum Line {
    Text(String),
    /// All lines before were printed. The sender is told.
    End(SyncSender<()>),
}

/// Prints one line, as soon as stderr takes it.
pub(super) fn say(line: &str) {
    let _ = LINES.get_or_init(start).try_send(Line::Text(line.to_owned()));
}

/// Prints a remark like one of `render::note`, as soon as stderr takes it. An agent that is told to stop must not wait
/// for the words about it.
pub(super) fn note(text: &str) {
    say(&fold::for_stderr(text, 0));
}

/// Waits until the lines so far are printed, if stderr takes them.
pub(super) fn flush() {
    let (told, printed) = sync_channel(1);
    if LINES.get().is_some_and(|lines| lines.try_send(Line::End(told)).is_ok()) {
        let _ = printed.recv_timeout(FLUSH_TIME_MAX);
    }
}

fn start() -> SyncSender<Line> {
    let (lines, waiting) = sync_channel(WAITING_MAX);
    // Without the thread nothing is printed, which is no reason to stop working.
    let _ = std::thread::Builder::new().name("lines".to_owned()).spawn(move || print(&waiting));
    lines
}

fn print(waiting: &Receiver<Line>) {
    for line in waiting {
        match line {
            // If stderr cannot be written, there is nowhere to report that.
            Line::Text(text) => drop(writeln!(anstream::stderr().lock(), "{text}")),
            Line::End(told) => drop(told.send(())),
        }
    }
}
