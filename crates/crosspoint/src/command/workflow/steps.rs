//! What the stages of a run said, one line each, from the events of its job.

use serde::Deserialize;

use crate::client::Event;
use crate::terminal::render;

/// Most bytes of a summary that are shown on its line.
const SUMMARY_BYTES: usize = 160;

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    at: String,
    done: Option<Step>,
}

#[derive(Deserialize)]
struct Step {
    stage: String,
    iteration: u32,
    happened: Happened,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Happened {
    Said {
        summary: String,
        recommendation: String,
        #[serde(default)]
        notes: Vec<String>,
        #[serde(default)]
        artifacts: Vec<File>,
        #[serde(default)]
        conflicts: Vec<serde::de::IgnoredAny>,
    },
    Broke {
        failure: String,
        clause: Option<String>,
        message: String,
    },
    Answered {},
}

#[derive(Deserialize)]
struct File {
    change: String,
}

/// Knows when the last event was, so that the time of each stage can be told.
#[derive(Default)]
pub(super) struct Clock {
    last: Option<jiff::Timestamp>,
}

impl Clock {
    /// Returns the line of an event that is a step of the run.
    pub(super) fn line(&mut self, event: &Event) -> Option<String> {
        let data: Data = serde_json::from_str(&event.data).ok()?;
        let at: Option<jiff::Timestamp> = data.at.parse().ok();
        let is_step = event.name == "step";
        let since = self.last.filter(|_| is_step);
        if is_step || matches!(event.name.as_str(), "started" | "answer") {
            self.last = at.or(self.last);
        }
        let step = data.done.filter(|_| is_step)?;
        let took = at.zip(since).map(|(at, since)| at.duration_since(since).as_secs_f64().max(0.0));
        Some(line(&step, took))
    }
}

fn line(step: &Step, took: Option<f64>) -> String {
    let (bold, dim) = (render::bold(), render::dim());
    let stage = render::visible(&step.stage);
    let took = took.map(|took| format!("{took:.1} s")).unwrap_or_default();
    let head = format!("{bold}{stage:<14}{bold:#} {dim}#{:<3} {took:>7}{dim:#} ", step.iteration);
    let tail = match &step.happened {
        Happened::Said { summary, recommendation, notes, artifacts, conflicts } => {
            let counts = counts(notes.len(), artifacts, conflicts.len());
            let summary = render::shortened(&render::visible(summary), SUMMARY_BYTES);
            format!("{:<9} {counts}{summary}", render::visible(recommendation))
        }
        Happened::Broke { failure, clause, message } => {
            let clause = clause.as_deref().map(|clause| format!(" [{}]", render::visible(clause))).unwrap_or_default();
            let message = render::shortened(&render::visible(message), SUMMARY_BYTES);
            format!("{}{clause} {message}", render::visible(failure))
        }
        Happened::Answered {} => "answered".to_owned(),
    };
    format!("{head}{tail}").trim_end().to_owned()
}

fn counts(notes: usize, files: &[File], conflicts: usize) -> String {
    let part = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        more => Some(format!("{more} {word}s")),
    };
    let written = files.iter().filter(|file| file.change != "unchanged").count();
    let parts: Vec<String> =
        [part(notes, "note"), part(written, "file"), part(conflicts, "conflict")].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("({}) ", parts.join(", ")) }
}
