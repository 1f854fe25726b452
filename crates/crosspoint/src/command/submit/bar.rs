//! What a waiting user sees: a bar on a terminal, lines elsewhere, or every event.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::wait::Wanted;
use crate::client::Event;
use crate::command::jobs::event_line;
use crate::terminal::render;

/// Interval at which the time beside the bar is updated.
const TICK: Duration = Duration::from_millis(100);
const UNKNOWN: &str = "{spinner} {wide_msg} {elapsed:>4}";
const KNOWN: &str = "{bar:24} {percent:>3}%  {wide_msg} {elapsed:>4}";

pub(super) enum Shown {
    /// On stderr, on a terminal.
    Bar(ProgressBar),
    /// On stderr. Holds the last line, so that none is printed twice.
    Lines(String),
    /// On stdout.
    Events { json: bool },
}

impl Shown {
    pub(super) fn new(wanted: Wanted, id: &str) -> Shown {
        if wanted.follow {
            return Shown::Events { json: wanted.json };
        }
        render::note(&format!("job {}", render::visible(id)));
        // A terminal that cannot move its cursor gets lines too.
        if !io::stderr().is_terminal() || std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return Shown::Lines(String::new());
        }
        let bar = ProgressBar::new(100).with_style(style(UNKNOWN)).with_message("waiting for an agent");
        bar.enable_steady_tick(TICK);
        Shown::Bar(bar)
    }

    pub(super) fn event(&mut self, event: &Event) -> io::Result<()> {
        match self {
            Shown::Events { json } => {
                let mut out = anstream::AutoStream::auto(io::stdout().lock());
                event_line::print(&mut out, event, *json)?;
                out.flush()?;
            }
            Shown::Bar(bar) => move_bar(bar, event),
            Shown::Lines(last) => {
                let progress = event_line::progress_of(event);
                let progress = progress.map(|(percent, step)| event_line::progress(percent, step.as_deref()));
                let line = progress.or_else(|| event_line::remark(event)).unwrap_or_default();
                if !line.is_empty() && line != *last {
                    render::note(&line);
                    *last = line;
                }
            }
        }
        Ok(())
    }

    /// Prints a remark that stays.
    pub(super) fn note(&self, text: &str) {
        match self {
            Shown::Bar(bar) => bar.suspend(|| render::note(text)),
            Shown::Lines(_) | Shown::Events { .. } => render::note(text),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&self) {
        if let Shown::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn move_bar(bar: &ProgressBar, event: &Event) {
    if let Some((percent, step)) = event_line::progress_of(event) {
        if let Some(percent) = percent {
            bar.set_style(style(KNOWN));
            bar.set_position(percent.clamp(0.0, 100.0) as u64);
        }
        bar.set_message(step.as_deref().map(render::visible).unwrap_or_default());
    } else if event.name == "started" {
        bar.set_message("working");
    } else if let Some(remark) = event_line::remark(event) {
        bar.set_message(remark);
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours and known to be valid; the default is a bar too.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
