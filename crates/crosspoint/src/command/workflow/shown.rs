//! What a waiting user sees of a run: its steps, a line each, and on a terminal the tree of its stages below them.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosspoint_workflow::definition::Definition;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::steps::Clock;
use super::tree::Tree;
use crate::client::Event;
use crate::command::jobs::event_line;
use crate::terminal::{fold, render};
use crate::workflow::HELD;

/// Interval at which the time of the stage under way is updated.
const TICK: Duration = Duration::from_millis(100);

/// Columns and lines of a terminal that does not say how large it is.
const SIZE: (usize, usize) = (80, 24);

/// Spaces before the rest of a line that is broken.
const INDENT: usize = 4;

pub(super) struct Shown {
    clock: Clock,
    tree: Arc<Mutex<Tree>>,
    /// Draws the tree, on a terminal.
    bar: Option<ProgressBar>,
    is_terminal: bool,
    /// Why the run did not move when it was last looked at.
    reason: String,
    /// The stage about which a person is asked.
    asking: Option<String>,
    /// The number of the last event.
    last: u32,
}

impl Shown {
    pub(super) fn new(definition: &Definition) -> Shown {
        // A terminal that cannot move its cursor gets lines alone.
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_terminal = io::stderr().is_terminal() && !is_dumb;
        let tree = Arc::new(Mutex::new(Tree::of(definition)));
        let (clock, reason) = (Clock::default(), String::new());
        let mut shown = Shown { clock, tree, bar: None, is_terminal, reason, asking: None, last: 0 };
        shown.resume();
        shown
    }

    /// Draws the tree again.
    pub(super) fn resume(&mut self) {
        if !self.is_terminal {
            return;
        }
        let tree = self.tree.clone();
        let draw = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            let (width, height) = size();
            // Writing to a text cannot fail.
            let _ = out.write_str(&lock(&tree).drawn(jiff::Timestamp::now(), width, height));
        };
        let style = ProgressStyle::with_template("{tree}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner()).with_key("tree", draw);
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    /// Shows why the run does not move, once for each reason.
    pub(super) fn stuck(&mut self, reason: &str) {
        if self.reason != reason {
            reason.clone_into(&mut self.reason);
            self.note(&format!("it does not move: {}", render::visible(reason)));
        }
    }

    /// Notes an event that is not shown.
    pub(super) fn pass(&mut self, event: &Event) {
        self.last = event.n;
    }

    /// Returns the number of the last event.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    pub(super) fn event(&mut self, event: &Event) {
        self.pass(event);
        if let Some((_, Some(said))) = event_line::progress_of(event)
            && said.starts_with(HELD)
        {
            self.note(&render::visible(&said));
        }
        let step = self.clock.step(event);
        let mut tree = lock(&self.tree);
        tree.began(self.clock.since());
        let Some(step) = step else { return };
        tree.step(&step);
        drop(tree);
        self.asking = step.is_asking().then(|| step.stage.clone());
        self.note(&step.line());
    }

    pub(super) fn asking(&self) -> Option<&str> {
        self.asking.as_deref()
    }

    pub(super) fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| fold::say(line, INDENT)),
            None => fold::say(line, INDENT),
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The size of the terminal now: it may be changed while a run goes on.
fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(SIZE, |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}
