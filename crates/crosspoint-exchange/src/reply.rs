//! Reading the documents of an agent in its own contract: what the engine understands of them, and the rest beside it.

use std::borrow::Cow;

use bytes::Bytes;
use crosspoint_contracts::artifact::{Artifact, media_type};
use crosspoint_contracts::clause::all::ALL_106;
use crosspoint_contracts::content::{Body, Json};
use crosspoint_contracts::exchange::{Holds, Lack, Part};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::job::{Canonical, Event, Home, Outcome};
use crosspoint_contracts::json::{Tape, Type, Value, quoted};
use crosspoint_contracts::outcome::{Text, text_within};
use crosspoint_contracts::reply::{AgentDocument, Failed, Given, Progress, Question, Success};
use crosspoint_contracts::report::Wrong;
use crosspoint_contracts::translate::{Response, read_response_of};
use crosspoint_contracts::{Finding, Kind, Report};

use crate::words;

/// Longest document about progress that is kept, in bytes. Progress comes ten times a second.
const PROGRESS_BYTES_MAX: usize = 16 << 10;

/// Longest step of which all is kept, in bytes. It is shown on one line, and written with the job each time that it
/// changes.
const STEP_BYTES_MAX: usize = 1 << 10;

/// Most bytes that are kept of an answer that cannot be read: enough to see what is wrong with it.
const UNREADABLE_BYTES_MAX: usize = 64 << 10;

/// The homes of the resources that work used.
const USAGE: [Home; 3] = [Home::Duration, Home::GpuMemory, Home::CpuTime];

/// What a document of an agent means for its job.
pub enum Meaning {
    /// The agent has accepted the work, and has not begun it.
    Queued,
    /// The work goes on.
    Running(Progress),
    /// The work needs a person: the question, if there is one.
    Waiting(Option<Question>),
    /// The work has ended.
    Ended(Result<Success, Box<Failed>>),
}

/// A document of an agent, as the engine understands it.
pub struct Reply {
    /// What the document means for the job.
    pub meaning: Meaning,
    /// How far the work is that needs a person.
    pub progress: Option<Progress>,
    /// The request id in the document.
    pub request_id: Option<String>,
    /// The code in the document, even if it says no more than the failure does.
    pub code: Option<String>,
    /// What is wrong with the document, errors first; never content.
    pub report: Report,
}

/// An answer of an agent that no outcome can be made of.
#[derive(Debug)]
pub struct Unreadable {
    /// What the answer lacks.
    pub lack: Lack,
    /// What is wrong with the answer; never content.
    pub report: Report,
}

/// Reads a response of an agent. Whatever is wrong with it is reported beside its meaning; it is unreadable only where
/// it lacks what an outcome needs (ALL-11).
pub fn read(kind: Kind, document: &Bytes) -> Result<Reply, Unreadable> {
    read_of(kind, document, &[])
}

/// Like [`read`], from an agent that may have a type that the operator added.
pub fn read_of(kind: Kind, document: &Bytes, agent_types: &[Box<str>]) -> Result<Reply, Unreadable> {
    let types: Vec<&str> = agent_types.iter().map(|name| &**name).collect();
    // The mark may stand at the beginning of a file, and nowhere within the documents that the answer becomes part of.
    let bare = without_mark(document);
    let is_marked = bare.len() < document.len();
    let document = &bare;
    let Response { mut report, job, parts, id, code } = read_response_of(kind, document, &types);
    if is_marked {
        let message = "the document begins with a byte order mark";
        report.findings.push(Finding::at(&ALL_106, String::new(), message, Wrong::Value));
    }
    let job = match job {
        Ok(job) => job,
        Err(lack) => return Err(Unreadable { lack, report }),
    };
    let meaning = match job.event() {
        Event::Requested | Event::Queued => Meaning::Queued,
        Event::Progress { .. } => Meaning::Running(progress(&job, kind, document)),
        Event::Waiting { question } => Meaning::Waiting(question.and_then(|asked| question_of(document, asked))),
        Event::Ended(outcome) => Meaning::Ended(ended(&job, outcome, &Original { kind, document, parts: &parts })),
    };
    // Without the document: shown again once the question is answered, it would still ask.
    let so_far = || Progress { document: None, ..progress(&job, kind, document) };
    let progress = matches!(meaning, Meaning::Waiting(_)).then(so_far);
    Ok(Reply { meaning, progress, request_id: id, code, report })
}

/// Returns a document without the byte order mark that it may begin with.
fn without_mark(document: &Bytes) -> Bytes {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    document.slice(if document.starts_with(MARK) { MARK.len()..document.len() } else { 0..document.len() })
}

/// The members under which agents put their question to a person, the contract's own first.
const PROMPTS: [&str; 4] = ["prompt", "question", "message", "text"];

/// Returns the question in a value of a document, with a schema that is one. Without words it is as if none were given
/// (ALL-11).
pub fn question_of(document: &Bytes, asked: &Json<'_>) -> Option<Question> {
    let tape = Tape::scan(asked.get().as_bytes()).ok()?;
    let root = tape.root()?;
    let prompt = |name: &&str| root.get(name).filter(|value| value.kind() == Type::String);
    let words = PROMPTS.iter().find_map(prompt)?;
    let schema = root.get("schema");
    let is_right = |value: Value<'_, '_>| matches!(value.kind(), Type::Object | Type::Boolean);
    if prompt(&"prompt").is_some() && schema.is_none_or(is_right) {
        return Some(Question::read(body(document, asked)));
    }
    let schema = schema.filter(|value| is_right(*value)).map(|schema| format!(",\"schema\":{}", schema.source()));
    let question = format!("{{\"prompt\":{}{}}}", words.source(), schema.unwrap_or_default());
    Some(Question::read(Body::trusted(question)))
}

/// Makes the failure for an answer that cannot be read. The answer is kept for the job's caller (ALL-11); of a long
/// one, the beginning and its length. It is content, so it is never logged.
pub fn unreadable(message: &str, answer: &[u8]) -> Failed {
    let failed = Failed::said(Failure::BrokenContract, Dispatched::Yes, message);
    Failed { details: kept(answer), ..failed }
}

/// Returns the part of such an answer that is kept, for a failure that is known already.
pub fn kept(answer: &[u8]) -> Option<Body> {
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

/// Returns the progress of a job according to a document of this kind.
pub fn progress(job: &Canonical<'_>, kind: Kind, document: &Bytes) -> Progress {
    let percent = job.get(Home::Percent).and_then(|percent| percent.get().parse().ok());
    let step = job.get(Home::Step).map(|step| Body::of(&shortened(&step.text().unwrap_or_default())));
    Progress { percent, step, document: said_on_the_way(kind, document), began: None }
}

/// Returns the report that an agent has begun, with all that it said about that. `None` if that is too long to be kept.
pub fn began(kind: Kind, document: &Bytes) -> Option<Progress> {
    let began = said_on_the_way(kind, document)?;
    Some(Progress { began: Some(began), ..Progress::default() })
}

fn said_on_the_way(kind: Kind, document: &Bytes) -> Option<AgentDocument> {
    let document = without_mark(document);
    let is_short = document.len() <= PROGRESS_BYTES_MAX;
    is_short.then(|| AgentDocument { kind, document: Body::trusted(document.clone()) })
}

/// Cuts a step that is too long to be read in passing.
pub fn shortened(step: &str) -> Cow<'_, str> {
    if step.len() <= STEP_BYTES_MAX {
        return Cow::Borrowed(step);
    }
    let end = step.floor_char_boundary(STEP_BYTES_MAX);
    Cow::Owned(format!("{}\u{2026}", &step[..end]))
}

/// A document of an agent, and the places of its long members.
struct Original<'d> {
    kind: Kind,
    document: &'d Bytes,
    parts: &'d [(Part, std::ops::Range<usize>)],
}

fn ended(job: &Canonical<'_>, outcome: Outcome<'_>, original: &Original<'_>) -> Result<Success, Box<Failed>> {
    match outcome {
        Outcome::Completed { outputs, text } => {
            let (outputs, text) = given(outputs, text, original);
            Ok(Success {
                outputs: Some(outputs.unwrap_or_else(|| Body::trusted("{}"))),
                text,
                whole_bytes: None,
                artifacts: original.part(Holds::Artifacts).or_else(|| artifacts(job)),
                usage: usage(job),
                document: Some(original.without_parts()),
            })
        }
        Outcome::Failed { failure, .. } => Err(Box::new(failed(job, failure, original))),
        Outcome::Cancelled => Err(Box::new(failed(job, Failure::Cancelled, original))),
    }
}

/// Returns what the agent gave: an object, a text, or both.
fn given(outputs: Option<&Json<'_>>, text: Option<&Json<'_>>, original: &Original<'_>) -> (Option<Body>, Option<Text>) {
    let outputs = outputs.map(|outputs| body(original.document, outputs));
    let text = text.map(|text| body(original.document, text));
    match (outputs, text) {
        (Some(outputs), Some(text)) => (Some(outputs), Some(Text::Beside(text))),
        (Some(given), None) | (None, Some(given)) => {
            let within = text_within(&given).map(Text::Within);
            (Some(given), within)
        }
        (None, None) => (None, None),
    }
}

impl Original<'_> {
    /// Returns a long member, as it was written.
    fn part(&self, holds: Holds) -> Option<Body> {
        let (_, range) = self.parts.iter().find(|(part, _)| part.holds == holds)?;
        Some(Body::trusted(self.document.slice(range.clone())))
    }

    /// Returns the document as it came.
    fn whole(&self) -> AgentDocument {
        AgentDocument { kind: self.kind, document: Body::trusted(self.document.clone()) }
    }

    /// Returns the document with a short value in place of each long member.
    fn without_parts(&self) -> AgentDocument {
        self.without_parts_but(None)
    }

    /// Like [`Original::without_parts`], but with the member that holds this value: in some contracts the output of
    /// failed work is the only explanation of its failure.
    fn without_parts_but(&self, kept: Option<&Json<'_>>) -> AgentDocument {
        let kept = kept.and_then(|kept| place(self.document, kept));
        let holds = |range: &std::ops::Range<usize>| kept.as_ref().is_some_and(|kept| range.contains(&kept.start));
        let long = |range: &std::ops::Range<usize>| self.document[range.clone()] != *b"null" && !holds(range);
        let mut out = Vec::with_capacity(self.document.len());
        let mut at = 0;
        for (part, range) in self.parts.iter().filter(|(_, range)| long(range)) {
            out.extend_from_slice(&self.document[at..range.start]);
            out.extend_from_slice(part.stand_in.as_bytes());
            at = range.end;
        }
        out.extend_from_slice(&self.document[at..]);
        AgentDocument { kind: self.kind, document: Body::trusted(out) }
    }
}

/// Returns a value of a document: a slice of its bytes if it was written there like this, or else a copy.
fn body(document: &Bytes, json: &Json<'_>) -> Body {
    match place(document, json) {
        Some(range) => Body::trusted(document.slice(range)),
        None => Body::trusted(json.get().to_owned()),
    }
}

/// Returns where a value stands in a document; `None` if it was not written there like this.
fn place(document: &Bytes, json: &Json<'_>) -> Option<std::ops::Range<usize>> {
    let text = json.get().as_bytes();
    let start = (text.as_ptr() as usize).wrapping_sub(document.as_ptr() as usize);
    let end = start.checked_add(text.len()).filter(|end| *end <= document.len())?;
    Some(start..end)
}

/// Makes a failure with the agent's own words, if it has any, and with what it gave all the same (ALL-11).
fn failed(job: &Canonical<'_>, failure: Failure, original: &Original<'_>) -> Failed {
    let own = |home| job.get(home).map(|json: &Json<'_>| Body::trusted(json.get().to_owned()));
    let (outputs, text) = given(job.get(Home::Outputs), job.get(Home::Text), original);
    let document = match outputs {
        Some(_) => original.without_parts_but(job.get(Home::Message)),
        None => original.whole(),
    };
    let artifacts = original.part(Holds::Artifacts).or_else(|| artifacts(job));
    Failed {
        message: own(Home::Message).or_else(|| words::within(original.document).map(|text| Body::of(&text))),
        code: own(Home::Code),
        details: details(job),
        given: Given { outputs, text, artifacts, ..Given::default() }.if_any(),
        document: Some(Box::new(document)),
        repeat: own_repeat(job, failure),
        ..Failed::of(failure, Dispatched::Yes)
    }
}

/// Returns `unknown` if the agent says in its details that it does not know how much of the failed work was done, such
/// as work that died with its process (MSG-8). The agent's failure alone would say that it knows.
fn own_repeat(job: &Canonical<'_>, failure: Failure) -> Option<Repeat> {
    let details = job.get(Home::Details).filter(|_| failure == Failure::AgentFailed)?;
    let tape = Tape::scan(details.get().as_bytes()).ok()?;
    let said = tape.root()?.get("repeat")?.text()?;
    (said.decode() == Repeat::Unknown.name()).then_some(Repeat::Unknown)
}

/// Returns the agent's own code and details, for readers of the job.
fn details(job: &Canonical<'_>) -> Option<Body> {
    object([("code", Home::Code), ("details", Home::Details), ("recoverable", Home::Recoverable)], job)
}

fn usage(job: &Canonical<'_>) -> Option<Body> {
    object(USAGE.map(|home| (home.name(), home)), job)
}

/// Returns the homes that hold a value, as an object.
fn object<const N: usize>(members: [(&str, Home); N], job: &Canonical<'_>) -> Option<Body> {
    let held = members.into_iter().filter_map(|(name, home)| Some(format!("\"{name}\":{}", job.get(home)?.get())));
    let held: Vec<String> = held.collect();
    (!held.is_empty()).then(|| Body::trusted(format!("{{{}}}", held.join(","))))
}

/// Returns the artifacts as callers of our own API see them.
fn artifacts(job: &Canonical<'_>) -> Option<Body> {
    let listed: Vec<String> = job.artifacts.iter().flatten().map(artifact).collect();
    (!listed.is_empty()).then(|| Body::trusted(format!("[{}]", listed.join(","))))
}

fn artifact(artifact: &Artifact<'_>) -> String {
    let mut out = format!("{{\"name\":{}", artifact.name.get());
    // ALL-10: a type that the name says is not kept. What has no content may be anything.
    let by_name = || Json::string(media_type(&artifact.name.text().unwrap_or_default()));
    let media_type = artifact.media_type.clone().or_else(|| artifact.content.as_ref().map(|_| by_name()));
    let (operation, content) = (artifact.operation.clone(), artifact.content.clone());
    for (name, value) in [("type", media_type), ("operation", operation), ("content", content)] {
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
