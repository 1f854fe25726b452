//! The steps of a run, from the events of its job: what each stage said, how long it took, and what follows.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Event, plain};
use crate::terminal::render;

/// Most bytes of a summary that are shown on its line.
const SUMMARY_BYTES: usize = 160;

/// Most bytes of a note or an answer that are shown, and most notes of a step.
const NOTE_BYTES: usize = 160;
const NOTES_MAX: usize = 20;

/// The failure of an agent that says by itself that it failed.
const AGENT_FAILED: &str = "agent_failed";

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
        conflicts: Vec<Clash>,
        /// The rules that the output breaks, which counts all the same.
        #[serde(default)]
        broken: Vec<String>,
    },
    Broke {
        failure: String,
        clause: Option<String>,
        message: String,
    },
    Answered {
        answer: Option<Box<RawValue>>,
    },
}

/// A file that could not be written as the agent asked.
#[derive(Deserialize)]
struct Clash {
    path: String,
    why: String,
}

impl Clash {
    fn sentence(&self) -> String {
        let why = if self.why == "exists" { "exists already" } else { "does not exist" };
        format!("{} {why}: nothing was written", self.path)
    }
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
    /// When the question was asked that is open, or was answered last.
    asked: Option<jiff::Timestamp>,
    answered: Option<jiff::Timestamp>,
}

impl Clock {
    /// Returns the step that an event is, if it is one.
    pub(super) fn step(&mut self, event: &Event) -> Option<Step> {
        let data: Data = serde_json::from_str(&event.data).ok()?;
        let at: Option<jiff::Timestamp> = data.at.parse().ok();
        let is_step = event.name == "step";
        match event.name.as_str() {
            // A run that is taken up asks again. The person was asked when it was asked first.
            "question" => self.asked = self.asked.or(at),
            "answer" => self.answered = at,
            _ => {}
        }
        let since = self.last.filter(|_| is_step);
        // Of the time in which no process drove the run, nothing counts.
        if is_step || matches!(event.name.as_str(), "started" | "interrupted" | "answer") {
            self.last = at.or(self.last);
        }
        let Done { stage, iteration, happened, decided } = data.done.filter(|_| is_step)?;
        let (asked, answered) = (self.asked.take(), self.answered.take());
        // The run may be taken up long after a person has answered.
        let span = if matches!(happened, Happened::Answered { .. }) { answered.zip(asked) } else { at.zip(since) };
        let took = span.map(|(at, since)| at.duration_since(since).as_secs_f64().max(0.0));
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
            Happened::Said { conflicts, .. } if let Some(clash) = conflicts.first() => {
                let clash = render::shortened(&render::visible(&clash.sentence()), SUMMARY_BYTES);
                format!("{:<9} {counts}{clash}", self.word())
            }
            Happened::Said { summary, .. } => {
                let summary = render::shortened(&render::visible(summary.trim_end()), SUMMARY_BYTES);
                format!("{:<9} {counts}{summary}", self.word())
            }
            Happened::Broke { clause, message, failure } => {
                let shown = |clause: &String| format!(" [{}]", render::visible(clause));
                let clause = clause.as_ref().map(shown).unwrap_or_default();
                // The last words of a program say why it failed; what is above them is how it came there.
                let last = message.lines().rfind(|line| !line.trim().is_empty());
                let message = last.filter(|_| failure == AGENT_FAILED).unwrap_or(message);
                let message = render::shortened(&render::visible(message), SUMMARY_BYTES);
                format!("{}{clause} {message}", self.word())
            }
            Happened::Answered { .. } => self.word(),
        };
        format!("{head}{tail}").trim_end().to_owned()
    }

    /// Returns what was said in full, a line each: the notes of a stage, or a person's answer.
    pub(super) fn details(&self) -> Vec<String> {
        let line = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            render::shortened(&render::visible(&words.join(" ")), NOTE_BYTES)
        };
        match &self.happened {
            Happened::Said { notes, .. } => {
                let more = notes.len().saturating_sub(NOTES_MAX);
                let shown = notes.iter().take(NOTES_MAX).map(|note| format!("- {}", line(note)));
                shown.chain((more > 0).then(|| format!("... and {more} more"))).collect()
            }
            Happened::Answered { answer: Some(answer) } => vec![line(&plain(answer))],
            Happened::Answered { answer: None } | Happened::Broke { .. } => Vec::new(),
        }
    }

    /// What the stage came to, in one word.
    pub(super) fn word(&self) -> String {
        match &self.happened {
            // Files that clash count as a retry, whatever the agent recommends (WF-5.4).
            Happened::Said { conflicts, .. } if !conflicts.is_empty() => "retry".to_owned(),
            Happened::Said { recommendation, .. } => render::visible(recommendation),
            Happened::Broke { failure, .. } => render::visible(failure),
            Happened::Answered { .. } => "answered".to_owned(),
        }
    }

    /// How many notes, files and conflicts the stage gave, and which rules it broke in passing.
    pub(super) fn counts(&self) -> String {
        let Happened::Said { notes, artifacts, conflicts, broken, .. } = &self.happened else { return String::new() };
        let part = |count: usize, word: &str| match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            more => Some(format!("{more} {word}s")),
        };
        let written = artifacts.iter().filter(|file| file.change != "unchanged").count();
        let breaks = (!broken.is_empty()).then(|| render::visible(&format!("breaks {}", broken.join(", "))));
        let parts = [part(notes.len(), "note"), part(written, "file"), part(conflicts.len(), "conflict"), breaks];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Whether it is a person's answer, and no run of a stage.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self.happened, Happened::Answered { .. })
    }

    /// Whether a person is asked next.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.decided, Some(Decided::Ask {}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { n: 1, name: name.to_owned(), data: data.to_owned() }
    }

    fn line(happened: &str) -> String {
        let done = format!("{{\"stage\":\"s\",\"iteration\":1,\"happened\":{happened},\"decided\":null}}");
        let step = event("step", &format!("{{\"at\":\"2026-01-05T10:00:00Z\",\"done\":{done}}}"));
        Clock::default().step(&step).expect("a step").line()
    }

    #[test]
    fn a_clash_is_said_in_place_of_what_the_agent_says_of_its_work() {
        let clashed = line(
            r#"{"said":{"summary":"Did it.","recommendation":"proceed","conflicts":[{"path":"a.md","why":"exists"}]}}"#,
        );
        assert!(clashed.ends_with("retry     (1 conflict) a.md exists already: nothing was written"), "{clashed}");
    }

    #[test]
    fn the_last_words_of_a_program_are_shown() {
        let broke = |failure: &str| {
            line(&format!(r#"{{"broke":{{"failure":"{failure}","message":"Traceback\n  in x\nKeyError: 'a'\n"}}}}"#))
        };
        assert!(broke("agent_failed").ends_with("agent_failed KeyError: 'a'"), "{}", broke("agent_failed"));
        assert!(broke("broken_contract").contains("Traceback"));
    }

    /// The time until it is taken up counts for no stage.
    #[test]
    fn a_stage_that_was_cut_short_begins_when_its_run_is_taken_up() {
        let mut clock = Clock::default();
        for (name, time) in [("started", "10:00:00"), ("interrupted", "11:00:00")] {
            clock.step(&event(name, &format!("{{\"at\":\"2026-01-05T{time}Z\"}}")));
        }
        let said = r#"{"stage":"s","iteration":1,"happened":{"said":{"summary":"Fine.","recommendation":"proceed"}},"decided":null}"#;
        let step = clock.step(&event("step", &format!("{{\"at\":\"2026-01-05T11:00:02Z\",\"done\":{said}}}")));
        assert_eq!(step.expect("a step").took, Some(2.0));
    }

    /// The run is taken up an hour after the answer, and asks again for a moment.
    #[test]
    fn an_answer_took_as_long_as_the_person_did() {
        let mut clock = Clock::default();
        let at = |time: &str| format!("{{\"at\":\"2026-01-05T{time}Z\"}}");
        for (name, time) in
            [("started", "10:00:00"), ("question", "10:00:01"), ("answer", "10:00:04"), ("started", "11:00:00")]
        {
            assert!(clock.step(&event(name, &at(time))).is_none());
        }
        let step = |time: &str, happened: &str| {
            let done = format!("{{\"stage\":\"s\",\"iteration\":1,\"happened\":{happened},\"decided\":null}}");
            event("step", &format!("{{\"at\":\"2026-01-05T{time}Z\",\"done\":{done}}}"))
        };
        let answered = clock.step(&step("11:00:02", r#"{"answered":{"step":1,"answer":"green"}}"#)).expect("a step");
        assert_eq!((answered.took, answered.details()), (Some(3.0), vec!["green".to_owned()]));
        let said = r#"{"said":{"summary":"Fine.","recommendation":"proceed"}}"#;
        let next = clock.step(&step("11:00:03", said)).expect("a step");
        assert_eq!(next.took, Some(1.0), "a stage begins when the run goes on");
    }
}
