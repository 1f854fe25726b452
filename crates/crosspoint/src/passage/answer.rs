//! What a caller gets: a job, as it is, in a document of the caller's contract.
//!
//! What an agent of a contract said is kept beside the outcome; read again, it is the canonical job that the caller's
//! contract is written from, so that every member comes back where it was, or is carried. Only the ids are the caller's
//! own, byte for byte.

use std::borrow::Cow;
use std::sync::Arc;

use crosspoint_contracts::artifact::Artifact;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_contracts::job::{Home, Job as Canonical, Own, State as Told};
use crosspoint_contracts::json::{Levels, Tape, Type, Value, quoted};
use crosspoint_contracts::map::Fresh;
use crosspoint_contracts::run::StreamEvent;
use crosspoint_contracts::{Contract, Kind, Options, read_jobs, translate};
use crosspoint_engine::content::Body;
use crosspoint_engine::job::{Job, Outcome, Progress, Request, Running, Said, State, Status};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reply::{self, Part};

/// Writes a job as it is, for a caller of this contract. Where what its agent gave is no document of anything, that is what the caller is told.
pub(crate) fn document(job: &Job, to: Contract) -> String {
    readable(job, to).unwrap_or_else(|| unreadable(job, to))
}

/// The same for a requester whose request was a document of another contract before. That an output is an object is said beside its
/// text, so that it is one again where it came from (ALL-8); whoever knows only texts is spared that.
pub(crate) fn translated(job: &Job, to: Contract) -> String {
    let is_object = |parts: &Parts<'_>| parts.said.is_none() && parts.outputs.get().starts_with('{');
    let Some(parts) = parts_of(job).filter(is_object) else { return document(job, to) };
    // A contract that knows objects, so that this one seems to be on the way.
    let told = plain_as(Kind::TaskResponse, job, Some(&parts), to);
    written(job, &told, to).filter(|written| is_valid(written, to)).unwrap_or_else(|| document(job, to))
}

/// The same; `None` where it would be no document of anything.
pub(crate) fn readable(job: &Job, to: Contract) -> Option<String> {
    let written = unread(job, to);
    // Only an outcome has what nobody has read before.
    (job.outcome().is_none() || is_valid(&written, to)).then_some(written)
}

fn is_valid(document: &str, of: Contract) -> bool {
    let options = Options { kind: Some(response_of(of)), levels: Levels::Wrapped, ..Options::default() };
    crosspoint_contracts::read(document.as_bytes(), &options).report.is_valid()
}

/// The same for whoever reads it again in any case, and takes what [`unreadable`] gives where it is not valid.
pub(crate) fn unread(job: &Job, to: Contract) -> String {
    let parts = parts_of(job);
    // What an agent said may not fit into a document that goes to others: then it is left out, and what was understood remains.
    let understood = || written(job, &plain(job, parts.as_ref(), to), to);
    written(job, &told(job, parts.as_ref(), to), to).or_else(understood).unwrap_or_else(|| bare(job, to))
}

/// Writes that the agent of a job gave what readers disagree on, such as a name twice in an object.
pub(crate) fn unreadable(job: &Job, to: Contract) -> String {
    let outcome = broken_off(job);
    let job = Job { state: State::Ended(Arc::new(outcome)), ..job.clone() };
    written(&job, &plain(&job, parts_of(&job).as_ref(), to), to).unwrap_or_default()
}

fn written(job: &Job, told: &Canonical<'_>, to: Contract) -> Option<String> {
    let now = job.updated_at.to_string();
    // What is in it was judged when it came (ALL-11).
    let fresh = Fresh { completing: true, levels: Levels::Wrapped, ..super::fresh(job.id(), &now) };
    let written = translate::write(told, to, &fresh).ok()?;
    Some(unframed(written.into_text()))
}

/// Nothing that anybody said can be written: the state alone, or that there is nothing to be had.
fn bare(job: &Job, to: Contract) -> String {
    if job.outcome().is_some() {
        return unreadable(job, to);
    }
    let told = named(Canonical::made(response_of(to), Some(state_of(job))), job, to);
    // There are no words in it but ours and the caller's ids.
    written(job, &told, to).unwrap_or_default()
}

fn broken_off(job: &Job) -> Outcome {
    let (failure, repeat) = (Failure::BrokenContract, Repeat::Unknown);
    let body = format!(
        r#"{{"status":"failed","outputs":null,"artifacts":[],"failure":{{"code":"{}","message":{},"repeat":"{}"}}}}"#,
        failure.name(),
        Json::string("What the agent gave has names twice in an object, half characters, or too many levels.").get(),
        repeat.name(),
    );
    Outcome { status: Status::Failed, failure: Some((failure, repeat)), at: job.updated_at, body: Body::trusted(body) }
}

/// Writes the last progress of a job, whatever has become of it since; `None` where it has made none.
pub(crate) fn progress(job: &Job, to: Contract) -> Option<String> {
    job.progress.as_ref()?;
    let running = Running { attempt: job.attempts, heard_at: job.updated_at, asked: 0, taken_up_at: None };
    Some(document(&Job { state: State::Running(running), ..job.clone() }, to))
}

/// The job as a caller sees it who came to it under another id of its own, by the same `Idempotency-Key`.
pub(crate) fn known_as<'j>(job: &'j Job, request_id: Option<&str>) -> Cow<'j, Job> {
    let Some(request_id) = request_id.filter(|id| **id != *job.request.request_id) else { return Cow::Borrowed(job) };
    let request = Request { request_id: request_id.into(), ..(*job.request).clone() };
    Cow::Owned(Job { request: Arc::new(request), ..job.clone() })
}

/// A document of the run contract with these texts at the end of its `warnings`.
pub(crate) fn warned(document: String, warnings: &[String]) -> String {
    if warnings.is_empty() {
        return document;
    }
    let Ok(tape) = Tape::scan_within(document.as_bytes(), Levels::Wrapped) else { return document };
    let Some(listed) = tape.root().and_then(|root| root.get("warnings")) else { return document };
    let mut texts: Vec<Cow<'_, str>> = listed.items().map(|item| Cow::Borrowed(item.source())).collect();
    texts.extend(warnings.iter().map(|warning| Cow::Owned(quoted(warning))));
    let (start, end) = listed.span();
    format!("{}[{}]{}", &document[..start], texts.join(","), &document[end..])
}

/// The data of an event, without its frame: doors frame by themselves.
fn unframed(text: String) -> String {
    if text.starts_with('{') {
        return text;
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// All that can be said of the job. `parts` are those of its outcome.
fn told(job: &Job, parts: Option<&Parts<'_>>, to: Contract) -> Canonical<'static> {
    let said = match &job.state {
        State::Ended(outcome) => parts.and_then(|parts| said_at_the_end(outcome, parts)),
        State::Running(_) => job.progress.as_ref().and_then(|progress| said_on_the_way(progress)),
        State::Queued | State::Retrying { .. } | State::Waiting { .. } | State::Poisoned => None,
    };
    match said {
        Some(said) => named(said, job, to),
        None => plain(job, parts, to),
    }
}

/// What a contract calls what came of a job.
fn response_of(contract: Contract) -> Kind {
    match contract {
        Contract::Run => Kind::RunResponse,
        Contract::Task => Kind::TaskResponse,
        Contract::Message => Kind::WorkResult,
        Contract::Workflow => Kind::WorkflowOutput,
        Contract::Bridge => Kind::BridgeResponse,
    }
}

/// What the engine knows by itself.
fn plain(job: &Job, parts: Option<&Parts<'_>>, to: Contract) -> Canonical<'static> {
    plain_as(response_of(to), job, parts, to)
}

/// The same, as if a document of this kind had said it.
fn plain_as(kind: Kind, job: &Job, parts: Option<&Parts<'_>>, to: Contract) -> Canonical<'static> {
    let mut told = Canonical::made(kind, Some(state_of(job)));
    match &job.state {
        State::Ended(outcome) => {
            if let Some(parts) = parts {
                put_outcome(&mut told, outcome, parts, to);
            }
        }
        State::Waiting { question, .. } => put_question(&mut told, question.get(), to),
        State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned => {}
    }
    if let Some(progress) = job.progress.as_ref().filter(|_| job.outcome().is_none()) {
        if let Some(percent) = progress.percent {
            told.put(Home::Percent, Json::new(percent.to_string()));
        }
        if let Some(step) = &progress.step {
            told.put(Home::Step, Json::new(step.get().to_owned()));
        }
    }
    named(told, job, to)
}

fn state_of(job: &Job) -> Told {
    match &job.state {
        State::Queued => Told::Queued,
        // ALL-13: for its caller it goes on.
        State::Running(_) | State::Retrying { .. } | State::Poisoned => Told::Running,
        State::Waiting { .. } => Told::Waiting,
        State::Ended(outcome) => match outcome.status {
            Status::Completed => Told::Completed,
            Status::Failed => Told::Failed,
            Status::Cancelled => Told::Cancelled,
        },
    }
}

/// ALL-5: a contract without a word for it is told in the words of ours.
fn put_question(told: &mut Canonical<'static>, question: &str, to: Contract) {
    let question = Json::new(schema_as_object(question).unwrap_or_else(|| question.to_owned()));
    if to == Contract::Run {
        told.own.push(Own { contract: Contract::Run, pointer: "/question".to_owned(), value: question });
    } else {
        told.put(Home::Question, question);
    }
}

/// TASK-2.5: a schema is an object. JSON Schema knows two that are not, and each has an object that means the same; what is no schema at all
/// helps nobody to answer. `None` where there is nothing to change.
fn schema_as_object(question: &str) -> Option<String> {
    let tape = Tape::scan(question.as_bytes()).ok()?;
    let schema = tape.root()?.get("schema").filter(|schema| schema.kind() != Type::Object)?;
    let (start, end) = schema.span();
    let object = if schema.boolean() == Some(false) { "{\"not\":{}}" } else { "{}" };
    Some([&question[..start], object, &question[end..]].concat())
}

/// The ids of the caller, and what the engine knows better than anybody.
fn named(mut told: Canonical<'static>, job: &Job, to: Contract) -> Canonical<'static> {
    told.put(Home::RequestId, Json::string(&job.request.request_id));
    if to == Contract::Run {
        told.put(Home::Work, Json::string(&job.request.work));
    }
    if let Some((_, repeat)) = job.outcome().and_then(|outcome| outcome.failure) {
        put_repeat(&mut told, repeat, to);
    }
    match to {
        Contract::Task => put_metadata(&mut told, job),
        Contract::Bridge => put_times(&mut told, job),
        Contract::Run | Contract::Message | Contract::Workflow => {}
    }
    told
}

/// Whether sending it again is safe, in the open field of an error. That work was cancelled is an error to those who have no other word
/// for it.
fn put_repeat(told: &mut Canonical<'static>, repeat: Repeat, to: Contract) {
    let is_error = match told.state() {
        Some(Told::Failed) => true,
        Some(Told::Cancelled) => to != Contract::Task,
        Some(Told::Queued | Told::Running | Told::Waiting | Told::Completed) | None => false,
    };
    if !is_error {
        return;
    }
    let repeat = repeat.name();
    let details = told.get(Home::Details).map(|details| details.get().trim().to_owned());
    let details = match details.as_deref() {
        None | Some("{}" | "null") => format!("{{\"repeat\":\"{repeat}\"}}"),
        Some(object) if object.starts_with('{') && !has(object, "repeat") => {
            format!("{{\"repeat\":\"{repeat}\",{}", &object[1..])
        }
        // The agent has its own word for it, or no object: its details stay, and ours stands among what is carried.
        Some(_) => return told.carry("repeat", Json::string(repeat)),
    };
    told.put(Home::Details, Json::new(details));
}

fn has(object: &str, name: &str) -> bool {
    Tape::scan(object.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|root| root.get(name).is_some()))
}

/// When, how long, by whom, how often: where the agent has not said it.
fn put_metadata(told: &mut Canonical<'static>, job: &Job) {
    if let Some(started_at) = job.started_at {
        put_unsaid(told, Home::StartedAt, Json::string(&started_at.to_string()));
    }
    put_times(told, job);
    if let Some(agent) = &job.agent {
        put_unsaid(told, Home::Agent, Json::string(agent));
    }
    if job.attempts > 0 {
        put_unsaid(told, Home::Retries, Json::new(job.retries.to_string()));
    }
}

/// When it was over and how long it took: where the agent has not said it.
fn put_times(told: &mut Canonical<'static>, job: &Job) {
    let Some(outcome) = job.outcome() else { return };
    if let Some(started_at) = job.started_at {
        // In whole milliseconds, as the shortest number that says so: what can be read back unchanged need not be carried.
        let millis = outcome.at.since(started_at).as_millis();
        put_unsaid(told, Home::Duration, Json::new((millis as f64 / 1_000.0).to_string()));
    }
    put_unsaid(told, Home::ReportedAt, Json::string(&outcome.at.to_string()));
}

fn put_unsaid(told: &mut Canonical<'static>, home: Home, value: Json<'static>) {
    if told.get(home).is_none() {
        told.put(home, value);
    }
}

/// An outcome as it is stored.
#[derive(Deserialize)]
struct Parts<'b> {
    #[serde(borrow)]
    outputs: &'b RawValue,
    #[serde(borrow)]
    artifacts: &'b RawValue,
    #[serde(borrow)]
    failure: Option<FailureParts<'b>>,
    #[serde(borrow)]
    said: Option<SaidParts<'b>>,
}

#[derive(Deserialize)]
struct FailureParts<'b> {
    #[serde(borrow)]
    message: &'b RawValue,
    #[serde(borrow)]
    details: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct SaidParts<'b> {
    #[serde(borrow)]
    kind: Cow<'b, str>,
    #[serde(borrow)]
    document: &'b RawValue,
}

fn parts_of(job: &Job) -> Option<Parts<'_>> {
    serde_json::from_str(job.outcome()?.body.get()).ok()
}

fn put_outcome(told: &mut Canonical<'static>, outcome: &Outcome, parts: &Parts<'_>, to: Contract) {
    match (outcome.status, &parts.failure) {
        (Status::Completed, _) | (_, None) => put_outputs(told, parts.outputs.get(), to),
        (Status::Failed | Status::Cancelled, Some(failure)) => {
            told.fail(outcome.failure.map_or(Failure::Internal, |(failure, _)| failure));
            told.put(Home::Message, Json::new(failure.message.get().to_owned()));
            if let Some(details) = failure.details {
                put_details(told, details.get());
            }
        }
    }
    let artifacts = artifacts(parts.artifacts.get());
    if !artifacts.is_empty() {
        told.artifacts = Some(artifacts);
    }
}

/// Details of ours may name a code that is more exact than the failure's own.
fn put_details(told: &mut Canonical<'static>, details: &str) {
    let scanned = Tape::scan(details.as_bytes()).ok();
    let code = scanned.as_ref().and_then(|tape| tape.root()?.get("code")).filter(|code| code.text().is_some());
    if let Some(code) = code {
        told.put(Home::Code, Json::new(code.source().to_owned()));
    }
    told.put(Home::Details, Json::new(details.to_owned()));
}

/// ALL-8: an object is an object, a text is a text, and whatever else there is, is put into an object. What a program printed is a text that
/// stands in an object: to those who want a text it is given as that.
fn put_outputs(told: &mut Canonical<'static>, outputs: &str, to: Contract) {
    if let Some(text) = printed(outputs).filter(|_| to == Contract::Bridge) {
        told.put(Home::Text, text);
        return;
    }
    match outputs.as_bytes().first() {
        Some(b'{') => told.put(Home::Outputs, Json::new(outputs.to_owned())),
        Some(b'"') => told.put(Home::Text, Json::new(outputs.to_owned())),
        Some(_) | None => told.put(Home::Outputs, Json::new(format!("{{\"output\":{outputs}}}"))),
    };
}

/// The text of an object that holds one alone, as programs that print it do.
fn printed(outputs: &str) -> Option<Json<'static>> {
    let tape = Tape::scan(outputs.as_bytes()).ok()?;
    let root = tape.root().filter(|root| root.members().count() == 1)?;
    let text = root.get("output").filter(|output| output.text().is_some())?;
    Some(Json::new(text.source().to_owned()))
}

fn artifacts(list: &str) -> Vec<Artifact<'static>> {
    let Ok(tape) = Tape::scan(list.as_bytes()) else { return Vec::new() };
    let items = tape.root().into_iter().flat_map(Value::items);
    items.filter_map(artifact).collect()
}

fn artifact(item: Value<'_, '_>) -> Option<Artifact<'static>> {
    let text = |name: &str| item.get(name).filter(|value| value.text().is_some());
    let owned = |value: Value<'_, '_>| Json::new(value.source().to_owned());
    Some(Artifact {
        name: owned(text("name")?),
        media_type: text("type").map(owned),
        operation: None,
        content: text("content").map(owned),
        own: Vec::new(),
    })
}

fn said_at_the_end(outcome: &Outcome, parts: &Parts<'_>) -> Option<Canonical<'static>> {
    let said = parts.said.as_ref()?;
    let kind = Kind::from_name(&said.kind)?;
    let whole = reply::exchanged(kind, said.document.get(), |part, _| match part {
        // A failure has none, whatever stood there.
        Part::Outputs => Some(long_part(kind, parts.outputs.get())).filter(|outputs| outputs != "null"),
        Part::Artifacts => Some(parts.artifacts.get().to_owned()),
    });
    // The last event of a stream is a response like any other.
    let kind = if kind == Kind::RunStream { Kind::RunResponse } else { kind };
    let options = Options { kind: Some(kind), ..Options::default() };
    let (_, jobs) = read_jobs(whole.as_bytes(), &options);
    let mut told = jobs.into_iter().next()?.into_owned();
    if let Some((failure, _)) = outcome.failure {
        // What the agent's answer means is settled; its document alone may say less.
        let code = told.get(Home::Code).cloned();
        told.fail(failure);
        if let Some(code) = code {
            told.put(Home::Code, code);
        }
    }
    Some(told)
}

/// The outputs as they stood in a document of this kind: an object inside a bridge response was the text of one.
fn long_part(kind: Kind, outputs: &str) -> String {
    let is_object = outputs.starts_with('{');
    if kind == Kind::BridgeResponse && is_object { quoted(outputs) } else { outputs.to_owned() }
}

fn said_on_the_way(progress: &Progress) -> Option<Canonical<'static>> {
    let Said { kind, document } = progress.said.as_ref()?;
    if *kind == Kind::RunStream {
        return StreamEvent { name: "progress".to_owned(), data: document.get().to_owned() }.job();
    }
    let options = Options { kind: Some(*kind), ..Options::default() };
    let (_, jobs) = read_jobs(document.bytes(), &options);
    jobs.into_iter().next().map(Canonical::into_owned)
}
