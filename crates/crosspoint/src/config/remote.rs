//! `[[agent]]` with a contract that is spoken over HTTP: the keys that only such agents have.

use std::fmt;
use std::fs;
use std::path::Path;

use crosspoint_engine::policy::TOTAL_DEFAULT;
use reqwest::Url;

use super::agent::Reading;
use super::file::File;
use super::key::Key;
use super::kind::{Kind, Value};
use super::{Agent, Contract};
use crate::link::Spoken;

/// Default number of jobs that such an agent has at a time.
pub(crate) const CONCURRENCY: u32 = 16;

/// Default limit of an answer, in bytes. Unlike the output of programs, an answer is gathered in memory before it is
/// read.
pub(crate) const ANSWER_BYTES: u64 = 16 << 20;

/// Longest token, in bytes. A longer file holds something else.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// The keys that are read by hand.
const BY_HAND: [&str; 3] = ["url", "token_file", "mode"];

/// The configuration of an agent behind an address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remote {
    /// The contract that it speaks.
    pub(crate) spoken: &'static Spoken,
    /// The base address. The paths of its contract are below it.
    pub(crate) url: Url,
    /// The token that is presented to the agent.
    pub(crate) token: Option<Token>,
    /// The file of the token, as it was written.
    token_file: Option<String>,
    /// The `mode` if the caller gives none (RUN-2).
    pub(crate) mode: Option<String>,
    /// Whether members without a field in the contract are carried.
    pub(crate) carry: bool,
    /// Whether the agent is asked for a stream, where its contract has one (RUN-6).
    pub(crate) stream: bool,
}

/// A secret, which never prints itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Returns the secret, for the one place that presents it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

impl Agent {
    /// Returns the defaults of an agent behind an address, without a name and work.
    pub(super) fn remote(remote: Remote) -> Agent {
        let silence = remote.spoken.silence;
        Agent {
            name: String::new(),
            contract: Contract::Remote(Box::new(remote)),
            work: Vec::new(),
            concurrency: CONCURRENCY,
            waiting_max: None,
            silence: Some(silence),
            total: TOTAL_DEFAULT,
            repeatable: None,
            output_bytes_max: ANSWER_BYTES,
            agent_type: None,
        }
    }
}

/// The keys that can be read independently.
pub(super) static KEYS: [Key<Remote>; 2] = [
    Key {
        name: "carry",
        about: "Whether what the agent's contract has no field for travels along under `x_crosspoint`.",
        kind: Kind::YesNo,
        get: |remote| Some(Value::YesNo(remote.carry)),
        set: |remote, value| remote.carry = value == Value::YesNo(true),
    },
    Key {
        name: "stream",
        about: "Whether the agent is asked for a stream. With `false` it is asked for the whole answer alone. Only for the contract `run`.",
        kind: Kind::YesNo,
        get: |remote| remote.spoken.has_stream.then_some(Value::YesNo(remote.stream)),
        set: |remote, value| remote.stream = value == Value::YesNo(true),
    },
];

/// Returns all keys that only these agents have.
pub(super) fn keys() -> Vec<&'static str> {
    BY_HAND.into_iter().chain(KEYS.iter().map(|key| key.name)).collect()
}

/// Reads the keys. `None` if the address is missing.
pub(super) fn read(agent: &Reading<'_>, spoken: &'static Spoken, file: &mut File) -> Option<Remote> {
    let url = url(agent, file);
    let token_file = agent.text(file, "token_file", "write the path of a file in quotes");
    let token = token_file.as_deref().and_then(|path| token(agent, file, path));
    let mode = agent.text(file, "mode", "write it in quotes, as \"LIVE\"");
    if mode.is_some() && !spoken.has_mode {
        misplaced(agent, file, "mode", |spoken| spoken.has_mode);
    }
    if agent.keys.contains_key("stream") && !spoken.has_stream {
        misplaced(agent, file, "stream", |spoken| spoken.has_stream);
    }
    let mut remote = Remote { spoken, url: url?, token, token_file, mode, carry: true, stream: true };
    for key in &KEYS {
        let Some(value) = agent.keys.get(key.name) else { continue };
        match key.kind.of_toml(value.get_ref()) {
            Ok(value) => (key.set)(&mut remote, value),
            Err(wrong) => file.wrong(value.span(), &agent.key(key.name), &wrong.what, &wrong.hint),
        }
    }
    Some(remote)
}

/// Names a key that only agents of some contracts have.
fn misplaced(agent: &Reading<'_>, file: &mut File, key: &str, has_key: fn(&Spoken) -> bool) {
    let with_key: Vec<&str> = Spoken::all().filter(|spoken| has_key(spoken)).map(Spoken::name).collect();
    let what = format!("only agents of the contract \"{}\" have a {key}", with_key.join("\" or \""));
    file.wrong(agent.span_of(key), &agent.key(key), &what, "remove it");
}

fn url(agent: &Reading<'_>, file: &mut File) -> Option<Url> {
    let hint = "write its address, as url = \"http://127.0.0.1:8000\"";
    let shown = agent.key("url");
    if !agent.keys.contains_key("url") {
        file.wrong(agent.span_of("url"), &shown, "the agent's address is not given", hint);
        return None;
    }
    let text = agent.text(file, "url", hint)?;
    let ends: Vec<&str> = Spoken::all().flat_map(|spoken| spoken.endpoints).copied().collect();
    match base_address(&text, &ends) {
        Ok(url) => Some(url),
        Err(problem) => {
            file.wrong(agent.span_of("url"), &shown, problem, hint);
            None
        }
    }
}

/// Reads an address to which the paths of a contract are added, or says what is wrong with it. `endpoints` are ends
/// that belong to endpoints.
pub(crate) fn base_address(text: &str, endpoints: &[&str]) -> Result<Url, &'static str> {
    Err(match Url::parse(text) {
        Err(_) if !text.contains("://") => "http:// is missing before it",
        Err(_) => "this is not an address",
        Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => "it is neither http nor https",
        // A password in an address ends up in logs.
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "it holds a name or a password; give a token by token_file"
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => "it has a query or a fragment",
        Ok(url) if endpoints.iter().any(|end| url.path().trim_end_matches('/').ends_with(end)) => {
            "it is that of an endpoint; write the part before it, to which the contract's paths are added"
        }
        Ok(url) => return Ok(below(url)),
    })
}

/// Returns an address to which paths can be added.
fn below(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url
}

/// Reads the token. A relative path is relative to the configuration file.
pub(super) fn token(agent: &Reading<'_>, file: &mut File, path: &str) -> Option<Token> {
    let beside = file.source.path.parent().unwrap_or(Path::new(""));
    let problem = match fs::metadata(beside.join(path)).and_then(|found| {
        if found.len() > TOKEN_BYTES_MAX { Ok(None) } else { fs::read_to_string(beside.join(path)).map(Some) }
    }) {
        Err(_) => "the file cannot be read",
        Ok(None) => "the file is too long for a token",
        Ok(Some(text)) => {
            let token = text.trim();
            if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Some(Token(token.to_owned()));
            }
            "the file does not hold a token: one line of visible ASCII characters"
        }
    };
    file.wrong(
        agent.span_of("token_file"),
        &agent.key("token_file"),
        problem,
        "write the path of a file that holds the token alone",
    );
    None
}

impl Remote {
    /// The keys and values that `config show` prints.
    pub(super) fn shown(&self) -> Vec<(&'static str, Option<Value>)> {
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        vec![
            ("url", Some(Value::Text(self.url.to_string()))),
            ("token_file", text(&self.token_file)),
            ("mode", text(&self.mode)),
        ]
    }
}
