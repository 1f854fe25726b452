//! Prints one event as one line.

use std::io::{self, Write};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Event, Failure, plain};
use crate::terminal::json;
use crate::terminal::render;

/// Most bytes of outputs and answers that are shown. The whole content is in the job and in the JSON output.
const CONTENT_BYTES_MAX: usize = 200;

/// The members that the data of events may have.
#[derive(Default, Deserialize)]
struct Data {
    #[serde(default)]
    at: String,
    attempt: Option<u32>,
    agent: Option<String>,
    percent: Option<f64>,
    step: Option<Box<RawValue>>,
    text: Option<String>,
    question: Option<Question>,
    answer: Option<Box<RawValue>>,
    done: Option<Box<RawValue>>,
    failure: Option<String>,
    until: Option<String>,
    outcome: Option<Outcome>,
}

#[derive(Deserialize)]
struct Question {
    prompt: Box<RawValue>,
}

#[derive(Deserialize)]
struct Outcome {
    outputs: Option<Box<RawValue>>,
    failure: Option<Failure>,
}

/// Prints an event, for people or as JSON.
pub(crate) fn print(out: &mut impl Write, event: &Event, json: bool) -> io::Result<()> {
    if json {
        let name = serde_json::to_string(&event.name)?;
        let rest = json::one_line(&event.data);
        let rest = rest.strip_prefix('{').filter(|rest| *rest != "}").map_or("}".to_owned(), |rest| format!(",{rest}"));
        return writeln!(out, "{{\"n\":{},\"event\":{}{rest}", event.n, json::harmless(&name));
    }
    let data: Data = serde_json::from_str(&event.data).unwrap_or_default();
    let dim = render::dim();
    // The date is the same for most jobs; the time of day tells events apart.
    let time = data.at.get(11..23).unwrap_or(&data.at).to_owned();
    let name = render::visible(&event.name);
    let line = format!("{:>4}  {dim}{}{dim:#}  {name:<11}  {}", event.n, render::visible(&time), details(event, data));
    writeln!(out, "{}", line.trim_end())
}

fn details(event: &Event, data: Data) -> String {
    let attempt = data.attempt.unwrap_or_default();
    let shown = match event.name.as_str() {
        "started" => format!("attempt {attempt}, agent {}", data.agent.unwrap_or_default()),
        "progress" => progress(data.percent, data.step.as_deref().map(plain).as_deref()),
        "output" => data.text.unwrap_or_default().trim_end().to_owned(),
        "question" => data.question.map(|question| plain(&question.prompt)).unwrap_or_default(),
        "answer" => content(data.answer.as_deref()),
        "step" => content(data.done.as_deref()),
        "retrying" => {
            let (failure, until) = (data.failure.unwrap_or_default(), data.until.unwrap_or_default());
            format!("attempt {attempt} ended with {failure}; the next is due at {until}")
        }
        "interrupted" => format!("attempt {attempt} was cut short by the end of the server; there will be another"),
        _ => match data.outcome {
            Some(Outcome { failure: Some(failure), .. }) => format!("{}: {}", failure.code, failure.message),
            Some(Outcome { outputs, .. }) => content(outputs.as_deref()),
            None => String::new(),
        },
    };
    render::visible(&shown)
}

fn content(raw: Option<&RawValue>) -> String {
    raw.map(|raw| render::shortened(&json::one_line(raw.get()), CONTENT_BYTES_MAX)).unwrap_or_default()
}

/// Returns percentage and step, as `10%  Step 1 of 10`. Empty if neither is known.
pub(crate) fn progress(percent: Option<f64>, step: Option<&str>) -> String {
    let percent = percent.map(|percent| format!("{percent:.0}%"));
    let parts: Vec<String> = percent.into_iter().chain(step.map(render::visible)).collect();
    parts.join("  ")
}

/// Returns the progress in an event, or `None` if the event is no progress.
pub(crate) fn progress_of(event: &Event) -> Option<(Option<f64>, Option<String>)> {
    if event.name != "progress" {
        return None;
    }
    let data: Data = serde_json::from_str(&event.data).ok()?;
    Some((data.percent, data.step.as_deref().map(plain)))
}

/// Returns a remark on an event for a waiting user, in one line. `None` for events without news.
pub(crate) fn remark(event: &Event) -> Option<String> {
    matches!(event.name.as_str(), "retrying" | "interrupted").then(|| {
        let data: Data = serde_json::from_str(&event.data).unwrap_or_default();
        details(event, data)
    })
}
