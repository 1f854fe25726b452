//! Replaying an exchange: a server with its configuration, and a caller and an agent that send what is recorded.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{fs, slice};

use crosspoint_contracts::Kind;
use serde_json::Value;

use super::files;
use super::normal::Names;
use super::script::{Gap, Heading, Piece, Script, bytes, pieces, written};
use crate::support::bridge_watcher::watched;
use crate::support::documents::faults;
use crate::support::message_caller::{MESSAGES, kind_of};
use crate::support::scripted_agent::{After, Connection, Request, ScriptedAgent};
use crate::support::server::{PATIENCE, Server, chunk};

/// The state of the replay so far.
#[derive(Default)]
pub(super) struct State {
    so_far: Mutex<SoFar>,
    changed: Condvar,
}

#[derive(Default)]
struct SoFar {
    /// Everything that the caller has received, and everything that the agent has.
    caller_has: String,
    agent_has: String,
    /// What the agent was asked, without the requests that it may or may not get.
    asked: Vec<String>,
    job: Option<String>,
    /// The port of the agent.
    port: u16,
    wrong: Vec<String>,
}

/// One turn of the agent.
struct Turn {
    may: Option<String>,
    answer: Vec<Piece>,
}

/// Replays an exchange, and returns it as it was this time.
pub(super) fn replay(script: &Script) -> Result<Script, String> {
    let state = Arc::new(State::default());
    let agent = start_agent(turns(script)?, state.clone());
    let port = agent.address().port();
    state.change(|so_far| so_far.port = port);
    let server = Server::configured(&bytes_kept(script.configuration(), port));
    if script.has(Heading::AgentWrites) {
        files::start(server.directory().join("files"), answers(script)?, state.clone());
    }
    let directory = server.directory().join("requester");
    fs::create_dir(&directory).map_err(|error| error.to_string())?;
    let _driver = script.has(Heading::CallerWrites).then(|| watched(&server, slice::from_ref(&directory)));
    let (mut got, mut heard) = (Vec::new(), Vec::new());
    for (heading, part) in &script.parts {
        if *heading == Heading::CallerSends {
            got.push(call(server.address(), &pieces(part)?, &state)?);
        } else if *heading == Heading::CallerWrites {
            got.push(files::asked(&directory, &bytes(part)?)?);
        } else if *heading == Heading::AgentSends {
            heard.push(call(server.address(), &pieces(part)?, &state)?);
        }
    }
    state.until("the agent has all that it must get", |so_far| so_far.asked.len() >= musts(script))?;
    let so_far = state.lock();
    if !so_far.wrong.is_empty() {
        return Err(so_far.wrong.join("\n"));
    }
    let given = script.given();
    let names = Names { job: so_far.job.clone().or_else(|| only_job(&server)), port, given: &given };
    Ok(fresh(script, (&got, &heard), &so_far.asked, &names))
}

/// If the test's agent was not asked, only the server knows the job.
fn only_job(server: &Server) -> Option<String> {
    let listed = server.get("/api/v1/jobs").json();
    let [job] = listed["jobs"].as_array()?.as_slice() else { return None };
    job["id"].as_str().map(str::to_owned)
}

/// The responses that an agent writes, in turn.
fn answers(script: &Script) -> Result<Vec<String>, String> {
    let written = script.parts.iter().filter(|(heading, _)| *heading == Heading::AgentWrites);
    let text = |part: &String| String::from_utf8(bytes(part)?).map_err(|error| error.to_string());
    written.map(|(_, part)| text(part)).collect()
}

fn bytes_kept(configuration: &str, port: u16) -> String {
    configuration.replace("<port>", &port.to_string())
}

fn musts(script: &Script) -> usize {
    let must = [Heading::AgentMustGet, Heading::AgentMustFind];
    script.parts.iter().filter(|(heading, _)| must.contains(heading)).count()
}

/// The script with what was received this time.
fn fresh(script: &Script, (got, heard): (&[String], &[String]), asked: &[String], names: &Names<'_>) -> Script {
    let (mut got, mut heard, mut asked) = (got.iter(), heard.iter(), asked.iter());
    let mut fresh = script.clone();
    for (heading, part) in &mut fresh.parts {
        let actual = match heading {
            Heading::CallerMustGet | Heading::CallerMustFind => got.next(),
            Heading::AgentMustGet | Heading::AgentMustFind => asked.next(),
            Heading::AgentMustHear => heard.next(),
            Heading::Configuration | Heading::CallerSends | Heading::AgentMayGet | Heading::AgentSends => continue,
            Heading::AgentAnswers | Heading::CallerWrites | Heading::AgentWrites => continue,
        };
        *part = written(&names.normal(actual.map_or("", String::as_str)));
    }
    fresh
}

fn turns(script: &Script) -> Result<Vec<Turn>, String> {
    let mut turns = Vec::new();
    let mut may = None;
    for (heading, part) in &script.parts {
        match heading {
            Heading::AgentMustGet => may = None,
            Heading::AgentMayGet => may = Some(String::from_utf8(bytes(part)?).map_err(|error| error.to_string())?),
            Heading::AgentAnswers => turns.push(Turn { may: may.take(), answer: pieces(part)? }),
            Heading::Configuration | Heading::CallerSends | Heading::CallerMustGet => {}
            Heading::AgentSends | Heading::AgentMustHear => {}
            Heading::CallerWrites | Heading::CallerMustFind | Heading::AgentMustFind | Heading::AgentWrites => {}
        }
    }
    Ok(turns)
}

fn start_agent(turns: Vec<Turn>, state: Arc<State>) -> ScriptedAgent {
    ScriptedAgent::start(move |asked, connection| match state.turn(asked, &turns) {
        Some(turn) => state.send(connection, &turn.answer),
        None => After::Close,
    })
}

impl State {
    fn lock(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut SoFar)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn until(&self, what: &str, reached: impl Fn(&SoFar) -> bool) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        let mut so_far = self.lock();
        while !reached(&so_far) {
            let left = end.checked_duration_since(Instant::now());
            let left = left.ok_or_else(|| format!("waited in vain: {what}"))?;
            so_far = self.changed.wait_timeout(so_far, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Notes what an agent finds in its directory. Returns how many requests it has found before.
    pub(super) fn found(&self, text: String) -> usize {
        let mut so_far = self.lock();
        let id =
            serde_json::from_str::<Value>(&text).ok().and_then(|body| Some(body["request_id"].as_str()?.to_owned()));
        so_far.job = id;
        so_far.wrong.extend(faults(text.as_bytes(), Kind::BridgeRequest));
        so_far.asked.push(text);
        let before = so_far.asked.len() - 1;
        drop(so_far);
        self.changed.notify_all();
        before
    }

    /// Replaces names by the values known so far.
    pub(super) fn filled(&self, text: &str) -> String {
        let so_far = self.lock();
        Names { job: so_far.job.clone(), port: so_far.port, given: "" }.filled(text)
    }

    /// Notes what is wrong.
    pub(super) fn wrong(&self, why: String) {
        self.change(|so_far| so_far.wrong.push(why));
    }

    /// Notes what the agent is asked, and returns its turn, if it has one.
    fn turn<'t>(&self, asked: &Request, turns: &'t [Turn]) -> Option<&'t Turn> {
        let text = asked.head.clone() + &String::from_utf8_lossy(&asked.body);
        let mut so_far = self.lock();
        if so_far.job.is_none() {
            let (job, faults) = job_in(asked);
            so_far.job = job;
            so_far.wrong.extend(faults);
        }
        so_far.agent_has += &text;
        let named = so_far.job.as_ref().map(|job| text.replace(job.as_str(), "<job>")).unwrap_or_default();
        let may = turns.iter().find(|turn| turn.may.as_ref().is_some_and(|may| named.starts_with(may.trim_end())));
        let turn = may.or_else(|| {
            let turn = turns.iter().filter(|turn| turn.may.is_none()).nth(so_far.asked.len());
            if turn.is_none() {
                so_far.wrong.push(format!("the agent is asked for more than is written down: {}", written(&named)));
            }
            so_far.asked.push(text);
            turn
        });
        drop(so_far);
        self.changed.notify_all();
        turn
    }

    /// Sends the pieces, each when it is due.
    fn send(&self, connection: &mut Connection, pieces: &[Piece]) -> After {
        for piece in pieces {
            let due = match &piece.gap {
                Gap::None => Ok(()),
                Gap::UntilRead => connection.until_read().map_err(|error| error.to_string()),
                Gap::CallerHas(text) => self.until(text, |so_far| so_far.caller_has.contains(text)),
                Gap::AgentHas(text) => self.until(text, |so_far| so_far.agent_has.contains(text)),
                Gap::Close => return After::Close,
            };
            let text = self.filled(&piece.text);
            match due.and_then(|()| bytes(&text)) {
                Ok(bytes) => drop(connection.send(bytes)),
                Err(why) => {
                    self.change(|so_far| so_far.wrong.push(why));
                    return After::Close;
                }
            }
        }
        After::Keep
    }
}

/// The id in a request of any contract, and what is wrong with the request.
fn job_in(asked: &Request) -> (Option<String>, Option<String>) {
    let (kind, name) = match asked.path.as_str() {
        "/tasks" => (Kind::TaskRequest, "id"),
        MESSAGES => (Kind::WorkRequest, "request_id"),
        _ => (Kind::RunRequest, "request_id"),
    };
    let id = serde_json::from_slice::<Value>(&asked.body).ok().and_then(|body| Some(body[name].as_str()?.to_owned()));
    (id, faults(&asked.body, kind))
}

/// Sends what the caller sends, and returns what it receives, without the framing.
fn call(address: SocketAddr, pieces: &[Piece], state: &State) -> Result<String, String> {
    let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    let mut connection = Connection::new(stream);
    state.send(&mut connection, pieces);
    let mut reading = connection.reader();
    let head = read_head(&mut reading).ok_or("there is no answer")?;
    let kind = header(&head, "content-type").unwrap_or_default().to_owned();
    let status = head.lines().next().unwrap_or_default().to_owned();
    state.change(|so_far| so_far.caller_has += &head);
    let body = match header(&head, "content-length") {
        Some(length) => whole(&mut reading, length).ok_or("the answer is not whole")?,
        None => chunked(&mut reading, state),
    };
    if let Some(faults) = judge(pieces, &kind, &body) {
        return Err(faults);
    }
    state.change(|so_far| {
        so_far.caller_has += &body;
        so_far.job = so_far.job.take().or_else(|| polled(&body));
    });
    let kind = if kind.is_empty() { kind } else { format!("content-type: {kind}\r\n") };
    Ok(format!("{status}\r\n{kind}\r\n{body}"))
}

/// The id of the first work in the answer to a poll.
fn polled(body: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(body).ok()?;
    let works = answer["messages"].as_array()?.iter().filter(|message| message["type"] == "work_request");
    works.filter_map(|work| work["request_id"].as_str()).map(str::to_owned).next()
}

fn read_head(reading: &mut impl std::io::BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reading.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

fn whole(reading: &mut impl std::io::Read, length: &str) -> Option<String> {
    let mut body = vec![0; length.parse().ok()?];
    reading.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// Reads a body in chunks. Other pieces may wait for parts of it.
fn chunked(reading: &mut impl std::io::BufRead, state: &State) -> String {
    let mut body = String::new();
    while let Some(Some(bytes)) = chunk(reading) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        state.change(|so_far| so_far.caller_has += &text);
        body += &text;
    }
    body
}

/// Faults of what the server sent, apart from what is compared.
fn judge(asked: &[Piece], content_type: &str, body: &str) -> Option<String> {
    let asked: String = asked.iter().map(|piece| piece.text.as_str()).collect();
    let target = asked.split(' ').nth(1).unwrap_or_default();
    let is_stream = content_type == "text/event-stream";
    let kind = match target {
        run if run.starts_with("/agents/run/") && is_stream => Kind::RunStream,
        run if run.starts_with("/agents/run/") => Kind::RunResponse,
        task if task.starts_with("/tasks") && !is_stream => Kind::TaskResponse,
        message if message.starts_with("/api/agent/message") => return messages(body),
        _ => return None,
    };
    faults(body.as_bytes(), kind)
}

/// Faults of a message, or of those in the answer to a poll. An answer may be empty.
fn messages(body: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(body).ok()?;
    let one = slice::from_ref(&answer);
    let all = answer["messages"].as_array().map_or(one, Vec::as_slice);
    all.iter().find_map(|message| faults(message.to_string().as_bytes(), kind_of(message)))
}
