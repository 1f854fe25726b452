//! What an agent says, in its own contract: what of it the engine understands, and the rest beside it.

use std::borrow::Cow;

use bytes::Bytes;
use crosspoint_contracts::artifact::Artifact;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::job::{Event, Home, Job as Canonical, Outcome};
use crosspoint_contracts::json::{Tape, quoted};
use crosspoint_contracts::run::StreamEvent;
use crosspoint_contracts::{Kind, Options, Report, read_jobs};
use crosspoint_engine::content::Body;
use crosspoint_engine::job::{Progress, Said};
use crosspoint_engine::machine::{Failed, Success};

/// More of what an agent says of its progress is not kept, in bytes: progress comes ten times a second.
const PROGRESS_BYTES_MAX: usize = 16 << 10;

/// Of the step alone so much is kept, in bytes: it is shown on one line, and written with the job each time that it changes.
const STEP_BYTES_MAX: usize = 1 << 10;

/// Of an answer that cannot be read so much is kept, in bytes: enough to see what is wrong with it.
const UNREADABLE_BYTES_MAX: usize = 64 << 10;

/// What a document of an agent means for its job.
pub(crate) enum Meaning {
    /// It was taken, and has not begun.
    Queued,
    /// It goes on.
    Running(Progress),
    /// It needs a person: `{prompt, schema?}`, where it says what it wants.
    Waiting(Option<Body>),
    /// It has ended.
    Ended(Result<Success, Box<Failed>>),
}

/// A document of an agent, understood.
pub(crate) struct Reply {
    /// What it means.
    pub(crate) meaning: Meaning,
    /// The request id that it carries.
    pub(crate) request_id: Option<String>,
    /// What is wrong with it, errors first where there are any; never content.
    pub(crate) report: Report,
}

/// Reads a response of an agent. An error is a report of why it cannot be read.
pub(crate) fn read(kind: Kind, document: &Bytes) -> Result<Reply, Report> {
    let options = Options { kind: Some(kind), ..Options::default() };
    let (reading, jobs) = read_jobs(document, &options);
    let Some(job) = jobs.into_iter().next().filter(|_| reading.document.is_some()) else { return Err(reading.report) };
    let request_id = job.get(Home::RequestId).and_then(|id| Some(id.text()?.into_owned()));
    let text = std::str::from_utf8(document).unwrap_or_default();
    Ok(Reply { meaning: meaning(&job, kind, text), request_id, report: reading.report })
}

/// An answer that cannot be read. It is kept for the job's caller (ALL-11), of a long one the beginning and how long it was. It is content, so
/// it is never logged.
pub(crate) fn unreadable(message: &str, answer: &[u8]) -> Failed {
    let failed = Failed::said(Failure::BrokenContract, Dispatched::Yes, message);
    Failed { details: kept(answer), ..failed }
}

/// The same for a failure that is known already.
pub(crate) fn kept(answer: &[u8]) -> Option<Body> {
    if answer.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(&answer[..answer.len().min(UNREADABLE_BYTES_MAX)]);
    let is_whole = answer.len() <= UNREADABLE_BYTES_MAX;
    // The last character may have been cut in two.
    let text = if is_whole { &*text } else { text.trim_end_matches('\u{fffd}') };
    let length = if is_whole { String::new() } else { format!(",\"answer_bytes\":{}", answer.len()) };
    Some(Body::trusted(format!("{{\"answer\":{}{length}}}", quoted(text))))
}

/// What an event of a stream means that is not its end.
pub(crate) fn progress(event: &StreamEvent) -> Option<Progress> {
    let job = event.job()?;
    match job.event() {
        Event::Progress { .. } => Some(progress_of(&job, Kind::RunStream, &event.data)),
        Event::Requested | Event::Queued | Event::Waiting { .. } | Event::Ended(_) => None,
    }
}

fn meaning(job: &Canonical<'_>, kind: Kind, text: &str) -> Meaning {
    match job.event() {
        Event::Requested | Event::Queued => Meaning::Queued,
        Event::Progress { .. } => Meaning::Running(progress_of(job, kind, text)),
        Event::Waiting { question } => Meaning::Waiting(question.map(|asked| Body::trusted(asked.get().to_owned()))),
        Event::Ended(outcome) => Meaning::Ended(ended(job, outcome, kind, text)),
    }
}

fn progress_of(job: &Canonical<'_>, kind: Kind, text: &str) -> Progress {
    let percent = job.get(Home::Percent).and_then(|percent| percent.get().parse().ok());
    let step = job.get(Home::Step).map(|step| Body::of(&shortened(&step.text().unwrap_or_default())));
    let said = (text.len() <= PROGRESS_BYTES_MAX).then(|| Said { kind, document: Body::trusted(text.to_owned()) });
    Progress { percent, step, said }
}

/// The beginning of a step that is longer than anybody can read in passing.
fn shortened(step: &str) -> Cow<'_, str> {
    if step.len() <= STEP_BYTES_MAX {
        return Cow::Borrowed(step);
    }
    let end = step.floor_char_boundary(STEP_BYTES_MAX);
    Cow::Owned(format!("{}\u{2026}", &step[..end]))
}

fn ended(job: &Canonical<'_>, outcome: Outcome<'_>, kind: Kind, text: &str) -> Result<Success, Box<Failed>> {
    let mut listed = None;
    let document = exchanged(kind, text, |part, value| {
        if part == Part::Artifacts {
            listed = Some(Body::trusted(value.to_owned()));
        }
        part.short(kind, value).map(str::to_owned)
    });
    let said = Some(Said { kind, document: Body::trusted(document) });
    match outcome {
        Outcome::Completed { outputs, text } => {
            // Of a text beside an object that was carried, it is the text that stood in the long part.
            let given = if kind == Kind::BridgeResponse { text.or(outputs) } else { outputs.or(text) };
            let outputs = given.map_or(Cow::Borrowed("{}"), |json| Cow::Owned(json.get().to_owned()));
            Ok(Success {
                outputs: Body::trusted(outputs.into_owned()),
                artifacts: listed.unwrap_or_else(|| artifacts(job)),
                said,
            })
        }
        Outcome::Failed { failure, .. } => Err(Box::new(failed(job, failure, said))),
        Outcome::Cancelled => Err(Box::new(failed(job, Failure::Cancelled, said))),
    }
}

/// A failure in the agent's own words, where it has any.
fn failed(job: &Canonical<'_>, failure: Failure, said: Option<Said>) -> Failed {
    let message = job.get(Home::Message).map(|message| Body::trusted(message.get().to_owned()));
    Failed { message, details: details(job), said, ..Failed::of(failure, Dispatched::Yes) }
}

/// The agent's own code and details, for those who look at the job.
fn details(job: &Canonical<'_>) -> Option<Body> {
    let shown = [("code", Home::Code), ("details", Home::Details), ("recoverable", Home::Recoverable)];
    let shown = shown.into_iter().filter_map(|(name, home)| Some(format!("\"{name}\":{}", job.get(home)?.get())));
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| Body::trusted(format!("{{{}}}", shown.join(","))))
}

/// Artifacts as callers of our own API see them.
fn artifacts(job: &Canonical<'_>) -> Body {
    let listed: Vec<String> = job.artifacts.iter().flatten().map(artifact).collect();
    Body::trusted(format!("[{}]", listed.join(",")))
}

fn artifact(artifact: &Artifact<'_>) -> String {
    let mut out = format!("{{\"name\":{}", artifact.name.get());
    for (name, value) in [("type", &artifact.media_type), ("content", &artifact.content)] {
        if let Some(value) = value {
            out.push_str(&format!(",\"{name}\":{}", value.get()));
        }
    }
    for (_, name, value) in &artifact.own {
        out.push_str(&format!(",{}:{}", quoted(name), value.get()));
    }
    out.push('}');
    out
}

/// What an outcome keeps of a document beside it, because it may be long and is stored once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Outputs,
    Artifacts,
}

impl Part {
    /// What stands for it in the document; `None` where it is short already.
    fn short(self, kind: Kind, value: &str) -> Option<&'static str> {
        match self {
            Part::Outputs if kind == Kind::BridgeResponse => (value != "null").then_some("\"\""),
            Part::Outputs => Some("{}"),
            Part::Artifacts => Some("[]"),
        }
    }
}

/// The members that are such parts. Of several for one part the first counts: another beside it is a member like any other.
fn parts(kind: Kind) -> &'static [(&'static str, Part)] {
    if kind == Kind::TaskResponse {
        &[("result", Part::Outputs), ("artifacts", Part::Artifacts)]
    } else if kind == Kind::BridgeResponse {
        &[("response", Part::Outputs)]
    } else {
        &[("outputs", Part::Outputs), ("data", Part::Outputs)]
    }
}

/// The document with its parts exchanged for what is given for them.
pub(super) fn exchanged(kind: Kind, text: &str, mut with: impl FnMut(Part, &str) -> Option<String>) -> String {
    let Ok(tape) = Tape::scan(text.as_bytes()) else { return text.to_owned() };
    let Some(root) = tape.root() else { return text.to_owned() };
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    let mut seen = Vec::new();
    for (name, part) in parts(kind) {
        let Some(value) = root.get(name).filter(|_| !seen.contains(part)) else { continue };
        seen.push(*part);
        let (start, end) = value.span();
        found.extend(with(*part, value.source()).map(|value| (start, end, value)));
    }
    found.sort_unstable_by_key(|(start, ..)| *start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, value) in found {
        out.push_str(&text[at..start]);
        out.push_str(&value);
        at = end;
    }
    out.push_str(&text[at..]);
    out
}
