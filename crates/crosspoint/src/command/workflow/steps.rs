//! The steps of a run, from the events of its job: what each stage said, how long it took, and what follows.

use serde::Deserialize;

use crate::client::Event;
use crate::terminal::render;

/// Most bytes of a summary that are shown on its line.
const SUMMARY_BYTES: usize = 160;

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    at: String,
    done: Option<Done>,
}

#[derive(Deserialize)]
struct Done {
    stage: String,
    iteration: u32,
    happened: Happened,
    decided: Option<Decided>,
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

/// What follows from a step, as far as it is shown.
#[derive(Deserialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub(super) enum Decided {
    Stage { id: String, iteration: u32 },
    Ask {},
    Done {},
}

/// One step of a run.
pub(super) struct Step {
    pub(super) stage: String,
    pub(super) iteration: u32,
    /// Seconds that it took, if it is known when it began.
    pub(super) took: Option<f64>,
    happened: Happened,
    pub(super) decided: Option<Decided>,
}

/// Knows when the last event was, so that the time of each stage can be told.
#[derive(Default)]
pub(super) struct Clock {
    last: Option<jiff::Timestamp>,
}

impl Clock {
    /// Returns the step that an event is, if it is one.
    pub(super) fn step(&mut self, event: &Event) -> Option<Step> {
        let data: Data = serde_json::from_str(&event.data).ok()?;
        let at: Option<jiff::Timestamp> = data.at.parse().ok();
        let is_step = event.name == "step";
        let since = self.last.filter(|_| is_step);
        if is_step || matches!(event.name.as_str(), "started" | "answer") {
            self.last = at.or(self.last);
        }
        let Done { stage, iteration, happened, decided } = data.done.filter(|_| is_step)?;
        let took = at.zip(since).map(|(at, since)| at.duration_since(since).as_secs_f64().max(0.0));
        Some(Step { stage: render::visible(&stage), iteration, took, happened, decided })
    }

    /// When the stage under way began.
    pub(super) fn since(&self) -> Option<jiff::Timestamp> {
        self.last
    }
}

impl Step {
    /// Returns the step as a line for people.
    pub(super) fn line(&self) -> String {
        let (bold, dim) = (render::bold(), render::dim());
        let took = self.took.map(|took| format!("{took:.1} s")).unwrap_or_default();
        let head = format!("{bold}{:<14}{bold:#} {dim}#{:<3} {took:>7}{dim:#} ", self.stage, self.iteration);
        let counts = self.counts();
        let counts = if counts.is_empty() { counts } else { format!("({counts}) ") };
        let tail = match &self.happened {
            Happened::Said { summary, .. } => {
                let summary = render::shortened(&render::visible(summary), SUMMARY_BYTES);
                format!("{:<9} {counts}{summary}", self.word())
            }
            Happened::Broke { clause, message, .. } => {
                let shown = |clause: &String| format!(" [{}]", render::visible(clause));
                let clause = clause.as_ref().map(shown).unwrap_or_default();
                let message = render::shortened(&render::visible(message), SUMMARY_BYTES);
                format!("{}{clause} {message}", self.word())
            }
            Happened::Answered {} => self.word(),
        };
        format!("{head}{tail}").trim_end().to_owned()
    }

    /// What the stage came to, in one word.
    pub(super) fn word(&self) -> String {
        match &self.happened {
            // Files that clash count as a retry, whatever the agent recommends (WF-5.4).
            Happened::Said { conflicts, .. } if !conflicts.is_empty() => "retry".to_owned(),
            Happened::Said { recommendation, .. } => render::visible(recommendation),
            Happened::Broke { failure, .. } => render::visible(failure),
            Happened::Answered {} => "answered".to_owned(),
        }
    }

    /// How many notes, files and conflicts the stage gave.
    pub(super) fn counts(&self) -> String {
        let Happened::Said { notes, artifacts, conflicts, .. } = &self.happened else { return String::new() };
        let part = |count: usize, word: &str| match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            more => Some(format!("{more} {word}s")),
        };
        let written = artifacts.iter().filter(|file| file.change != "unchanged").count();
        let parts = [part(notes.len(), "note"), part(written, "file"), part(conflicts.len(), "conflict")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Whether it is a person's answer, and no run of a stage.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self.happened, Happened::Answered {})
    }
}
