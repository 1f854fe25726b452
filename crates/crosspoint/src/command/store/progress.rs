//! Shows progress to a user at a terminal, and nothing elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Interval at which the time beside the bar is updated.
const TICK: Duration = Duration::from_millis(100);
const UNKNOWN: &str = "{spinner} {msg} {elapsed:>4}";
const KNOWN: &str = "{bar:24} {percent:>3}%  {msg} {elapsed:>4}";

pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(super) fn new() -> Progress {
        let plain = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if plain || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let bar = ProgressBar::new(0).with_style(style(UNKNOWN));
        bar.enable_steady_tick(TICK);
        Progress(Some(bar))
    }

    /// Shows the progress. `of` is 0 if the total is not known.
    pub(super) fn show(&self, what: &'static str, at: u64, of: u64) {
        let Some(bar) = &self.0 else { return };
        bar.set_style(style(if of == 0 { UNKNOWN } else { KNOWN }));
        bar.set_length(of);
        bar.set_position(at);
        bar.set_message(what);
    }

    /// Runs `print`, whose output stays, with the bar hidden.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours and known to be valid; the default is a bar too.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
