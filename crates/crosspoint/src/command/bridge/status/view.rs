//! What is in a directory, and what is wrong with it.

use std::path::Path;

use crosspoint_bridge::document::id_of;
use crosspoint_bridge::request::{self, AGE_MAX, Request, TIMEOUT_DEFAULT};
use crosspoint_bridge::{Directory, Fault, Leftover, Pair, response};
use crosspoint_contracts::bridge::clause::{BRIDGE_4, BRIDGE_8, BRIDGE_8_3};
use crosspoint_contracts::clause::{Clause, Level};
use crosspoint_contracts::{Finding, Report};
use serde_json::{Value, json};

use crate::bridge::record;
use crate::bridge::request_notes::{asked_at, said_in, timestamp};

/// A directory.
pub(super) struct DirectoryView {
    /// What waits there.
    pub(super) requests: Vec<Seen>,
    /// Files that no requester waits for, and what they are.
    pub(super) leftovers: Vec<(String, &'static str)>,
}

/// A request, or a response that was not taken yet.
pub(super) struct Seen {
    pub(super) file: String,
    pub(super) state: State,
    pub(super) request_id: Option<String>,
    pub(super) agent_name: Option<String>,
    pub(super) phase: Option<i64>,
    pub(super) phase_name: Option<String>,
    pub(super) since: Option<jiff::Timestamp>,
    /// When the time that the requester gives is over.
    pub(super) until: Option<jiff::Timestamp>,
    /// What is asked. It is content, and only present if it is to be shown.
    pub(super) prompt: Option<String>,
    pub(super) problems: Vec<Problem>,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No driver works in the directory.
    Waiting,
    /// A driver holds the lock of the directory.
    BeingAnswered,
    /// The response is there, and was not taken yet.
    Answered,
    /// The request cannot be acted on.
    Malformed,
    /// The response cannot be read.
    MalformedResponse,
    /// The response answers another request.
    ForeignResponse,
    /// The request is longer than drivers take.
    TooLarge,
    /// Under the name there is something that is not opened.
    NoFile,
}

/// Something that is wrong. It never holds content.
pub(super) struct Problem {
    pub(super) file: String,
    pub(super) clause: Option<&'static Clause>,
    pub(super) message: String,
    pub(super) at: String,
    pub(super) hint: String,
    /// With its place, if it was found by reading.
    pub(super) finding: Option<Finding>,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::BeingAnswered => "being_answered",
            State::Answered => "answered",
            State::Malformed => "malformed",
            State::MalformedResponse => "malformed_response",
            State::ForeignResponse => "foreign_response",
            State::TooLarge => "too_large",
            State::NoFile => "no_file",
        }
    }

    fn is_wrong(self) -> bool {
        match self {
            State::Waiting | State::BeingAnswered | State::Answered => false,
            State::Malformed | State::MalformedResponse | State::ForeignResponse | State::TooLarge | State::NoFile => {
                true
            }
        }
    }
}

impl Seen {
    fn new(file: String, state: State) -> Seen {
        Seen {
            file,
            state,
            request_id: None,
            agent_name: None,
            phase: None,
            phase_name: None,
            since: None,
            until: None,
            prompt: None,
            problems: Vec::new(),
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.state.is_wrong()
    }

    pub(super) fn json(&self, directory: &Path) -> Value {
        let problems: Vec<Value> = self.problems.iter().map(Problem::json).collect();
        let mut object = json!({
            "directory": directory.display().to_string(),
            "file": self.file,
            "state": self.state.name(),
            "request_id": self.request_id,
            "agent_name": self.agent_name,
            "phase": self.phase,
            "since": self.since.map(|since| since.to_string()),
            "until": self.until.map(|until| until.to_string()),
            "problems": problems,
        });
        if let Some(prompt) = &self.prompt {
            object["prompt"] = json!(prompt);
        }
        object
    }
}

impl Problem {
    fn found(file: &str, finding: Finding) -> Problem {
        Problem {
            file: file.to_owned(),
            clause: Some(finding.clause),
            message: finding.message.to_string(),
            at: finding.pointer.clone(),
            hint: finding.hint.to_string(),
            finding: Some(finding),
        }
    }

    fn of(file: &str, clause: &'static Clause, message: String, at: &str) -> Problem {
        let hint = clause.hint.to_owned();
        Problem { file: file.to_owned(), clause: Some(clause), message, at: at.to_owned(), hint, finding: None }
    }

    fn fault(file: &str, fault: &Fault) -> Problem {
        let (message, hint) = (fault.to_string(), fault.hint().to_owned());
        Problem { file: file.to_owned(), clause: None, message, at: String::new(), hint, finding: None }
    }

    pub(super) fn level(&self) -> Level {
        self.clause.map_or(Level::Error, |clause| clause.level)
    }

    fn json(&self) -> Value {
        let clause = self.clause.map(|clause| clause.id);
        let level = self.level().name();
        json!({
            "file": self.file, "clause": clause, "level": level, "message": self.message, "at": self.at, "hint": self.hint,
        })
    }
}

/// Looks at a directory; `prompts` says whether to keep what is asked, too.
pub(super) fn look(path: &Path, prompts: bool) -> Result<DirectoryView, Fault> {
    let directory = Directory::open(path)?;
    // The lock is held for this moment alone; drivers try for longer.
    let held = match directory.lock() {
        Ok(_) => false,
        Err(Fault::InUse(_)) => true,
        Err(fault) => return Err(fault),
    };
    let mut requests = Vec::new();
    for pair in Pair::all() {
        requests.extend(of_pair(&directory, pair, held, prompts)?);
    }
    let leftovers = directory.names()?.into_iter().filter_map(|name| Some((what_is_left(&name)?, name)));
    Ok(DirectoryView { requests, leftovers: leftovers.map(|(what, name)| (name, what)).collect() })
}

fn what_is_left(name: &str) -> Option<&'static str> {
    Some(match Leftover::of(name)? {
        Leftover::Half => "left behind half-written or half-removed; the next driver clears it away",
        Leftover::Stale(record::NAME) => "set aside, because it could not be understood",
        Leftover::Stale(name) if Pair::all().any(|pair| pair.request() == name) => {
            "set aside, because no record said that the program asked it; crosspoint bridge run --resume answers it"
        }
        Leftover::Stale(_) => "set aside, because it did not answer the request that was there",
    })
}

fn of_pair(directory: &Directory, pair: Pair, held: bool, prompts: bool) -> Result<Option<Seen>, Fault> {
    let file = pair.request();
    let mut seen = match request::look(directory, pair) {
        Ok(request::Look::Nothing) => return lone_response(directory, pair),
        Ok(request::Look::Request(request)) => {
            let prompt = if prompts { said_in(&request.document, "prompt") } else { None };
            Seen { prompt, ..of_request(directory, pair, &request, held)? }
        }
        Ok(request::Look::TooLarge { request_id, length }) => {
            let message = format!("the request is {length} bytes long, and at most {} are read", request::BYTES_MAX);
            let mut seen = Seen::new(file.clone(), State::TooLarge);
            seen.request_id = Some(request_id);
            seen.problems.push(Problem::of(&file, &BRIDGE_8, message, ""));
            seen
        }
        Ok(request::Look::Malformed(malformed)) => {
            let mut seen = Seen::new(file.clone(), State::Malformed);
            (seen.request_id, seen.since) = (malformed.request_id, Some(timestamp(malformed.written)));
            seen.problems.extend(found(&file, malformed.report));
            seen
        }
        Err(fault @ (Fault::NotAFile { .. } | Fault::Denied { .. })) => {
            let mut seen = Seen::new(file.clone(), State::NoFile);
            seen.problems.push(Problem::fault(&file, &fault));
            seen
        }
        Err(fault) => return Err(fault),
    };
    seen.phase = seen.phase.or(pair.phase().map(i64::from));
    Ok(Some(seen))
}

fn of_request(directory: &Directory, pair: Pair, request: &Request, held: bool) -> Result<Seen, Fault> {
    let file = pair.request();
    let since = asked_at(request);
    let idle = if held { State::BeingAnswered } else { State::Waiting };
    let (state, wrong) = of_response(directory, pair, &request.request_id, idle)?;
    let mut problems: Vec<Problem> = found(&file, request.report.clone()).collect();
    let age = jiff::Timestamp::now().duration_since(since).unsigned_abs();
    if state != State::Answered && since < jiff::Timestamp::now() && age > AGE_MAX {
        let message = format!("the request is older than {} seconds", AGE_MAX.as_secs());
        problems.push(Problem::of(&file, &BRIDGE_8_3, message, ""));
    }
    problems.extend(wrong);
    Ok(Seen {
        request_id: Some(request.request_id.clone()),
        agent_name: Some(request.agent_name.clone()),
        phase: request.phase,
        phase_name: request.phase_name.clone(),
        since: Some(since),
        until: until(request, since),
        problems,
        ..Seen::new(file, state)
    })
}

fn until(request: &Request, since: jiff::Timestamp) -> Option<jiff::Timestamp> {
    let seconds = request.timeout_seconds.unwrap_or(TIMEOUT_DEFAULT.as_secs_f64());
    since.checked_add(jiff::SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

/// Returns the state of a request by what is under the name of its response, and what is wrong with that.
fn of_response(directory: &Directory, pair: Pair, id: &str, idle: State) -> Result<(State, Vec<Problem>), Fault> {
    let file = pair.response();
    Ok(match response::look(directory, pair, id)? {
        response::Look::Nothing => (idle, Vec::new()),
        response::Look::Answer(_) => (State::Answered, Vec::new()),
        response::Look::Foreign(other) => {
            let message = format!("the response answers another request, {other}; the expected request_id is {id}");
            (State::ForeignResponse, vec![Problem::of(&file, &BRIDGE_4, message, "/request_id")])
        }
        response::Look::Malformed { report, .. } => (State::MalformedResponse, found(&file, report).collect()),
        response::Look::NotAFile(what) => {
            let fault = Fault::NotAFile { path: directory.path().join(&file), what };
            (State::NoFile, vec![Problem::fault(&file, &fault)])
        }
    })
}

/// A response whose request is gone: a driver answered it, and it waits for its requester.
fn lone_response(directory: &Directory, pair: Pair) -> Result<Option<Seen>, Fault> {
    let file = pair.response();
    let found = match directory.read(&file, response::READ_BYTES_MAX) {
        Ok(None) => return Ok(None),
        Ok(Some(found)) => found,
        Err(fault @ (Fault::NotAFile { .. } | Fault::Denied { .. })) => {
            let problems = vec![Problem::fault(&file, &fault)];
            let phase = pair.phase().map(i64::from);
            return Ok(Some(Seen { phase, problems, ..Seen::new(file, State::NoFile) }));
        }
        Err(fault) => return Err(fault),
    };
    let request_id = id_of(&found.bytes);
    let (state, problems) = of_response(directory, pair, request_id.as_deref().unwrap_or_default(), State::Answered)?;
    let phase = pair.phase().map(i64::from);
    let since = Some(timestamp(found.modified));
    Ok(Some(Seen { request_id, phase, since, problems, ..Seen::new(file, state) }))
}

fn found(file: &str, report: Report) -> impl Iterator<Item = Problem> {
    report.findings.into_iter().map(|finding| Problem::found(file, finding))
}
