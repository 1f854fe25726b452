//! The client: the one way in which every command reaches a server, whether that runs elsewhere or in this process.

mod address;
mod again;
mod embedded;
mod failed;
mod find;
mod follow;
mod found;
mod job;
mod left;
mod listener;
mod printed;
mod token;
mod working;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode};

use crate::command::flags::Reach;
use crate::config::Config;
use address::{Address, Line};
use again::Again;
use embedded::Embedded;
pub(crate) use failed::{Failed, advice_on_outcome};
pub(crate) use find::Need;
pub(crate) use follow::{Event, Follow, Heard};
use found::Found;
pub(crate) use job::{
    Agent, AgentPage, Failure, Heartbeat, Job, JobFields, Origin, Outcome, Owed, Page, Question, RunOf, Violation,
    plain,
};
use left::Left;
pub(crate) use printed::Printed;

/// Path of a job, up to its id.
const JOBS: &str = "/api/v1/jobs/";

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest silence of a server. Servers send something every 15 s even if nothing happens; this is three times that.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(45);
/// Longest time in which a server found through the data directory must answer the health check.
const HEALTH_TIME_MAX: Duration = Duration::from_secs(5);
/// Most times that a repeatable request is sent in all, and the pause before the second time.
const SENDS_MAX: u32 = 6;
const RESEND_PAUSE: Duration = Duration::from_millis(100);

/// A connection to a server. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Client {
    address: Address,
    line: Line,
    found: Found,
    again: Again,
}

/// The server's answer to a document that was handed in.
pub(crate) struct HandedIn {
    pub(crate) status: StatusCode,
    /// The body, which may be content.
    pub(crate) answer: Vec<u8>,
    /// The job's id, if the answer names one.
    pub(crate) job: Option<String>,
}

/// A client, and the server if that runs in this process.
pub(crate) struct Session {
    pub(crate) client: Client,
    embedded: Option<Embedded>,
}

impl Session {
    /// Finds the server, or starts one in this process.
    pub(crate) async fn begin(reach: &Reach, need: Need) -> Result<Session> {
        find::find(reach, need).await
    }

    /// Finds the server, or starts one in this process, whose configuration is adapted.
    pub(crate) async fn begin_with(
        reach: &Reach,
        need: Need,
        adapt: impl FnOnce(&mut Config) -> Result<()>,
    ) -> Result<Session> {
        find::find_or_adapted(reach, need, adapt).await
    }

    /// Starts a server in this process, with an adapted configuration, also where another one could be found.
    pub(crate) async fn here(reach: &Reach, adapt: impl FnOnce(&mut Config) -> Result<()>) -> Result<Session> {
        find::here(reach, adapt).await
    }

    /// Drives a job from now on that was there before, if the server runs in this process.
    pub(crate) async fn take_up(&self, id: &str) -> Result<()> {
        match &self.embedded {
            Some(embedded) => embedded.take_up(id).await,
            None => Ok(()),
        }
    }

    /// Stops the server if it runs in this process. The work that it has begun is taken up later.
    pub(crate) async fn end(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }
}

/// Reports an invalid configuration if one is needed. A server whose address is given has its own.
pub(crate) fn check_configuration(reach: &Reach) -> Result<()> {
    find::check_configuration(reach)
}

/// Returns the reason for which commands of this user would not trust the address that a server left in this directory,
/// if there is one.
pub(crate) fn doubt(data: &Path) -> Option<&'static str> {
    match left::read(data) {
        Left::Doubtful(why) => Some(why),
        Left::Nothing | Left::At(_) => None,
    }
}

/// Returns the agents of the server that is named or runs here; `None` if there is none.
pub(crate) fn agents_of_server(reach: &Reach) -> Result<Option<Vec<Agent>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    runtime.block_on(async {
        let Some(client) = find::running_server(reach).await? else { return Ok(None) };
        let page: AgentPage = client.read(&client.get("/api/v1/agents").await?)?;
        let agents = page.agents.iter().map(|raw| client.read(raw.get()));
        Ok(Some(agents.collect::<Result<Vec<Agent>, Failed>>()?))
    })
}

/// Finds the server and runs `act` with it.
pub(crate) fn with(
    reach: &Reach,
    need: Need,
    act: impl AsyncFnOnce(&Client) -> Result<crate::Exit>,
) -> Result<crate::Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    runtime.block_on(async {
        let session = Session::begin(reach, need).await?;
        let outcome = act(&session.client).await;
        session.end().await;
        outcome
    })
}

impl Client {
    fn new(address: Address, found: Found) -> Result<Client> {
        let data = match &found {
            Found::Left(data) => Some(data.as_path()),
            Found::Named | Found::Embedded(_) | Found::Command => None,
        };
        // A server in a command is reached by its user alone, and asks for no token.
        let token = if let Found::Embedded(_) | Found::Command = found { None } else { token::presented(data)? };
        Ok(Client { line: address.line(token)?, address, found, again: Again::default() })
    }

    /// Where the server is, for people. The password that an address may hold is left out.
    pub(crate) fn shown_address(&self) -> String {
        self.address.without_password()
    }

    /// Where the server is, for error messages.
    fn shown(&self) -> String {
        self.address.shown()
    }

    async fn health(&self) -> Result<(), Failed> {
        let request = self.line.http.get(format!("{}/health", self.line.base)).timeout(HEALTH_TIME_MAX);
        let response = request.send().await.map_err(|error| Failed::of(&self.shown(), error))?;
        if response.status() == StatusCode::OK { Ok(()) } else { Err(self.refused(response.status(), b"")) }
    }

    /// Sends one request and reads the whole answer.
    async fn send(&self, method: Method, path: &str, headers: HeaderMap, body: String) -> Result<String, Failed> {
        let mut request = self.line.http.request(method, format!("{}{path}", self.line.base)).headers(headers);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let broken = |error| Failed::of(&self.shown(), error);
        let response = request.send().await.map_err(broken)?;
        let (status, pause) = (response.status(), failed::pause(response.headers()));
        let bytes = response.bytes().await.map_err(broken)?;
        if !status.is_success() {
            return Err(self.refused(status, &bytes).after(pause));
        }
        String::from_utf8(bytes.into()).map_err(|_| self.not_ours())
    }

    /// Sends a document and returns the answer with any status. At most `bytes_max` bytes of the answer are read.
    pub(crate) async fn hand_in(
        &self,
        path: &str,
        document: bytes::Bytes,
        bytes_max: usize,
    ) -> Result<HandedIn, Failed> {
        let broken = |error| Failed::of(&self.shown(), error);
        let request = self.line.http.post(format!("{}{path}", self.line.base)).header(CONTENT_TYPE, "application/json");
        let mut response = request.body(document).send().await.map_err(broken)?;
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let job = location.and_then(|location| location.strip_prefix(JOBS)).map(str::to_owned);
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            answer.extend_from_slice(&chunk[..chunk.len().min(bytes_max - answer.len())]);
            if answer.len() == bytes_max {
                break;
            }
        }
        Ok(HandedIn { status, answer, job })
    }

    /// Makes the error for an answer by which the server refused a request.
    pub(crate) fn refused(&self, status: StatusCode, body: &[u8]) -> Failed {
        let failed = Failed::refused(&self.shown(), status, body);
        match (&self.line.token, &self.found) {
            (Some(token), _) => failed.with_token_of(&token.place),
            (None, Found::Named) => failed.hinted(StatusCode::UNAUTHORIZED, token::NAMED_HINT),
            (None, Found::Left(_) | Found::Embedded(_) | Found::Command) => {
                failed.hinted(StatusCode::UNAUTHORIZED, token::LEFT_HINT)
            }
        }
    }

    /// Sends bytes and returns the bytes of the answer. Fails if that takes longer than `within`.
    pub(crate) async fn post_bytes(
        &self,
        path: &str,
        body: bytes::Bytes,
        within: Duration,
    ) -> Result<bytes::Bytes, Failed> {
        let request = self.line.http.post(format!("{}{path}", self.line.base)).timeout(within).body(body);
        let broken = |error| Failed::of(&self.shown(), error);
        let response = request.send().await.map_err(broken)?;
        let (status, pause) = (response.status(), failed::pause(response.headers()));
        let bytes = response.bytes().await.map_err(broken)?;
        if status.is_success() { Ok(bytes) } else { Err(self.refused(status, &bytes).after(pause)) }
    }

    pub(crate) fn not_ours(&self) -> Failed {
        let message = format!("{} did not answer as a crosspoint server does", self.shown());
        Failed::other(message, failed::check_the_address())
    }

    pub(crate) async fn get(&self, path: &str) -> Result<String, Failed> {
        self.send(Method::GET, path, HeaderMap::new(), String::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> Result<String, Failed> {
        self.send(Method::POST, path, HeaderMap::new(), body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<String, Failed> {
        self.send(Method::DELETE, path, HeaderMap::new(), String::new()).await
    }

    /// Sends a request that may be repeated because it has a key, and repeats it while the connection breaks.
    pub(crate) async fn post_once(&self, path: &str, key: Option<&str>, body: &str) -> Result<Job, Failed> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key.and_then(|key| HeaderValue::from_str(key).ok()) {
            headers.insert("idempotency-key", key);
        }
        let (mut client, mut pause) = (self.clone(), RESEND_PAUSE);
        let mut sends = 1;
        // A server found through the data directory has just answered its health check. If it is unreachable now, it is
        // stopping or restarting.
        let mut broken = matches!(self.found, Found::Left(_));
        loop {
            match client.send(Method::POST, path, headers.clone(), body.to_owned()).await {
                Ok(text) => return Job::read(text).map_err(|_| self.not_ours()),
                // If the server was unreachable from the beginning, the caller decides whether to try again.
                Err(failed) if sends < SENDS_MAX && (failed.is_broken() || (broken && failed.is_away())) => {
                    broken = true;
                }
                Err(failed) => return Err(failed),
            }
            tokio::time::sleep(pause).await;
            client.look_again();
            (sends, pause) = (sends + 1, pause * 2);
        }
    }

    pub(crate) async fn job(&self, id: &str) -> Result<Job, Failed> {
        let text = self.get(&format!("/api/v1/jobs/{}", segment(id))).await?;
        Job::read(text).map_err(|_| self.not_ours())
    }

    /// Like `job`, but waits for a server that is restarting.
    pub(crate) async fn job_patiently(&self, id: &str) -> Result<Job, Failed> {
        let (mut client, mut pause) = (self.clone(), RESEND_PAUSE);
        for _ in 1..SENDS_MAX {
            match client.job(id).await {
                Err(failed) if failed.passes() => {}
                done => return done,
            }
            tokio::time::sleep(pause).await;
            client.look_again();
            pause *= 2;
        }
        client.job(id).await
    }

    /// Reads an answer that is JSON of a known shape.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, Failed> {
        serde_json::from_str(text).map_err(|_| self.not_ours())
    }

    pub(crate) fn follow(&self, id: &str, after: u32) -> Follow {
        Follow::new(self.clone(), id, after, follow::Extent::UntilTheEnd)
    }

    /// Returns the events that exist now.
    pub(crate) fn past(&self, id: &str, after: u32) -> Follow {
        Follow::new(self.clone(), id, after, follow::Extent::UntilNow)
    }

    /// Returns what a job printed, from a byte on.
    pub(crate) fn output(&self, id: &str, from: u64, follow: bool, attempt: Option<u32>) -> Printed {
        Printed::new(self.clone(), id, from, follow, attempt)
    }

    async fn stream(&self, path: &str, after: Option<u32>) -> Result<Response, Failed> {
        let mut request = self.line.http.get(format!("{}{path}", self.line.base));
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let broken = |error| Failed::of(&self.shown(), error);
        let response = request.send().await.map_err(broken)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let pause = failed::pause(response.headers());
        let body = response.bytes().await.map_err(broken)?;
        Err(self.refused(status, &body).after(pause))
    }
}

/// Escapes text for use in a path or a query: every character that could have a meaning there.
pub(crate) fn segment(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
