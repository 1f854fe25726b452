//! What the user sees while requests are answered: at a terminal a moving line for each request, elsewhere a line when
//! one is handed in. That it is answered is printed everywhere. All of it goes to stderr, and none of it is what was
//! asked or answered.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use crosspoint_bridge::request::Request;
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use serde::Deserialize;

use crate::client::{Client, Event, Heard, Job};
use crate::command::jobs::event_line;
use crate::terminal::render;

/// How often the displayed time moves.
const TICK: Duration = Duration::from_millis(100);

/// Longest name that is shown, in bytes; a longer one is cut off.
const NAME_BYTES_MAX: usize = 60;

/// All the lines of one round of answering.
pub(super) struct Shown(Option<MultiProgress>);

/// The line of one request.
pub(super) struct Line {
    shown: Option<MultiProgress>,
    bar: Option<ProgressBar>,
    title: String,
    since: Instant,
    handed_in: Cell<bool>,
    waits: Cell<bool>,
    step: RefCell<String>,
}

impl Shown {
    pub(super) fn new() -> Shown {
        // A terminal that cannot move its cursor is given plain lines too.
        let moves = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Shown(moves.then(MultiProgress::new))
    }

    pub(super) fn line(&self, request: &Request) -> Line {
        let title = title(request);
        let bar = self.0.as_ref().map(|all| {
            let bar = all.add(ProgressBar::new_spinner().with_style(style()).with_prefix(title.clone()));
            bar.enable_steady_tick(TICK);
            bar
        });
        let (handed_in, waits) = (Cell::new(false), Cell::new(false));
        Line { shown: self.0.clone(), bar, title, since: Instant::now(), handed_in, waits, step: RefCell::default() }
    }
}

impl Line {
    /// Shows that the request is a job now; once.
    pub(super) fn handed_in(&self, job: &Job) {
        if !self.handed_in.replace(true) && self.bar.is_none() {
            render::note(&format!("{}: job {}", self.title, render::visible(&job.is.id)));
        }
    }

    fn event(&self, event: &Event) {
        let Some(bar) = &self.bar else { return self.step(event) };
        if let Some((percent, step)) = event_line::progress_of(event) {
            bar.set_message(format!(" \u{b7} {}", event_line::progress(percent, step.as_deref())));
        } else if let Some(remark) = event_line::remark(event) {
            bar.set_message(format!(" \u{b7} {remark}"));
        }
    }

    /// Shows each step as a line, if nothing moves.
    fn step(&self, event: &Event) {
        let step = event_line::progress_of(event).and_then(|(_, step)| step);
        if let Some(step) = step.filter(|step| *step != *self.step.borrow()) {
            render::note(&format!("{}: {}", self.title, render::visible(&step)));
            self.step.replace(step);
        }
    }

    /// Shows that a person has to answer first; once. The question is not shown, because it may hold anything: the
    /// person who answers is shown it.
    fn waits(&self, client: &Client, job: &Job) {
        if self.waits.replace(true) {
            return;
        }
        let id = render::visible(&job.is.id);
        let answer = format!("crosspoint jobs answer {id} --text TEXT (crosspoint jobs show {id} shows what is asked)");
        let how = if client.is_embedded() {
            format!(
                "it cannot be answered while no server runs: press Ctrl-C, start crosspoint serve, run this again, and {answer}"
            )
        } else {
            answer
        };
        self.note(&format!("{}: waits for a person; {how}", self.title));
    }

    /// Shows that the response is there.
    pub(super) fn answered(&self, document: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.note(&format!("{}: {}", self.title, how(document, self.since.elapsed(), self.handed_in.get())));
    }

    /// Prints a remark that stays.
    pub(super) fn note(&self, text: &str) {
        match &self.shown {
            Some(all) => all.suspend(|| render::note(text)),
            None => render::note(text),
        }
    }
}

impl Drop for Line {
    /// However the waiting ends, nothing of a moving line may stay.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows how a job goes, for as long as it is polled. It is decoration: if it fails, nothing else does.
pub(super) async fn follow(client: &Client, id: &str, line: &Line) {
    let mut follow = client.follow(id, 0);
    while let Ok(heard) = follow.next().await {
        match heard {
            Heard::Event(event) => {
                line.event(&event);
                // An earlier question may have been answered.
                if event.name == "question"
                    && let Ok(job) = client.job_patiently(id).await
                    && job.is.is_asking()
                {
                    line.waits(client, &job);
                }
            }
            Heard::Lost => line.note("the connection broke; the server is looked for"),
            Heard::End => return,
        }
    }
}

/// The phase and agent of a request, as `phase 3 planning · reviewer`.
pub(super) fn title(request: &Request) -> String {
    let name = |name: &str| render::visible(&render::shortened(name, NAME_BYTES_MAX));
    let phase = request.phase.map(|phase| format!("phase {phase}"));
    let phase_name = request.phase_name.as_deref().map(name);
    let phase = [phase, phase_name].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let agent = name(&request.agent_name);
    if phase.is_empty() { agent } else { format!("{phase} \u{b7} {agent}") }
}

/// The members of a response that may be shown.
#[derive(Deserialize)]
struct ShownResponse {
    status: String,
    error_type: Option<String>,
    error_message: Option<String>,
    #[serde(default)]
    metadata: serde_json::Value,
}

/// How it went. What an agent says is between it and the program. A refusal comes from Crosspoint, and the user who
/// runs the program can mend it.
fn how(document: &str, took: Duration, is_job: bool) -> String {
    let seconds = took.as_secs_f64();
    let Ok(ShownResponse { status, error_type: Some(kind), error_message, metadata }) = serde_json::from_str(document)
    else {
        return format!("answered after {seconds:.1} s");
    };
    let kind = render::visible(&render::shortened(&kind, NAME_BYTES_MAX));
    let details = &metadata["x_crosspoint"]["details"];
    match (error_message, details["hint"].as_str()) {
        (Some(message), Some(hint)) if !is_job && details["clause"].is_string() => {
            render::visible(&format!("refused: {message} [{kind}]; {hint}"))
        }
        (_, _) => format!("{} after {seconds:.1} s ({kind})", if status == "timeout" { "timed out" } else { "failed" }),
    }
}

fn style() -> ProgressStyle {
    let clock = |state: &ProgressState, out: &mut dyn Write| {
        let seconds = state.elapsed().as_secs();
        // Writing to a line cannot fail.
        let _ = write!(out, "{}:{:02}", seconds / 60, seconds % 60);
    };
    // The template is a constant and known to be good; the default is a line too.
    ProgressStyle::with_template("{spinner} {prefix} \u{b7} {clock}{wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .with_key("clock", clock)
}
