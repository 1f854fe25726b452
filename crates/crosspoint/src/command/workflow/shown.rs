//! What a waiting user sees of a run: its stages as they end, and on a terminal the one under way with its time.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::steps::Clock;
use crate::client::Event;
use crate::command::jobs::event_line;
use crate::terminal::render;

/// Interval at which the time beside the stage is updated.
const TICK: Duration = Duration::from_millis(100);

pub(super) struct Shown {
    clock: Clock,
    /// The stage under way, on a terminal.
    bar: Option<ProgressBar>,
    is_terminal: bool,
    stage: String,
}

impl Shown {
    pub(super) fn new(id: &str) -> Shown {
        render::note(&format!("run {}", render::visible(id)));
        // A terminal that cannot move its cursor gets lines alone.
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_terminal = io::stderr().is_terminal() && !is_dumb;
        let mut shown = Shown { clock: Clock::default(), bar: None, is_terminal, stage: String::new() };
        shown.resume();
        shown
    }

    /// Shows the stage under way again.
    pub(super) fn resume(&mut self) {
        if !self.is_terminal {
            return;
        }
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed:>4}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(self.stage.clone());
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    pub(super) fn event(&mut self, event: &Event) {
        if let Some((_, Some(stage))) = event_line::progress_of(event) {
            self.stage = render::visible(&stage);
            if let Some(bar) = &self.bar {
                bar.set_message(self.stage.clone());
                bar.reset_elapsed();
            }
        }
        if let Some(line) = self.clock.line(event) {
            self.note(&line);
        }
    }

    pub(super) fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| render::note(line)),
            None => render::note(line),
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
