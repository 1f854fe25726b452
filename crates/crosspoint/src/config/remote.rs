//! `[[agent]]` with a contract that is spoken over HTTP: the keys that only such agents have.

use crosspoint_engine::policy::TOTAL_DEFAULT;
use reqwest::Url;

use super::agent::Reading;
use super::file::File;
use super::key::Key;
use super::kind::{Kind, Value};
use super::token::{self, TOKEN_FILE, Token};
use super::{Agent, Contract, address};
use crate::link::Spoken;

/// Default number of jobs that such an agent has at a time.
pub(crate) const CONCURRENCY: u32 = 16;

/// Default limit of an answer, in bytes. Unlike the output of programs, an answer is gathered in memory before it is
/// read.
pub(crate) const ANSWER_BYTES: u64 = 16 << 20;

/// The keys that are read by hand.
const BY_HAND: [&str; 3] = [URL, TOKEN_FILE, "mode"];

/// The key of the address.
pub(super) const URL: &str = "url";

/// The configuration of an agent behind an address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remote {
    /// The contract that it speaks.
    pub(crate) spoken: &'static Spoken,
    /// The address. The paths of its contract are below it, if the contract has any.
    pub(crate) url: Url,
    /// The token that is presented to the agent.
    pub(crate) token: Option<Token>,
    /// The file of the token, as it was written.
    pub(crate) token_file: Option<String>,
    /// The `mode` if the caller gives none (RUN-2).
    pub(crate) mode: Option<String>,
    /// Whether members without a field in the contract are carried.
    pub(crate) carry: bool,
    /// Whether the agent is asked for a stream, where its contract has one (RUN-6).
    pub(crate) stream: bool,
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
    let url = url(agent, spoken, file);
    let (token_file, token) = token::read(agent, file);
    let mode = agent.text(file, "mode", "write it in quotes, as \"LIVE\"");
    if mode.is_some() && !spoken.has_mode {
        misplaced(agent, file, "mode", |spoken| spoken.has_mode);
    }
    if agent.keys.contains_key("stream") && !spoken.has_stream {
        misplaced(agent, file, "stream", |spoken| spoken.has_stream);
    }
    let values = agent.values(file, &KEYS);
    let mut remote = Remote { spoken, url: url?, token, token_file, mode, carry: true, stream: true };
    for (key, value) in values {
        (key.set)(&mut remote, value);
    }
    Some(remote)
}

/// Names a key that only agents of some contracts have.
fn misplaced(agent: &Reading<'_>, file: &mut File, key: &str, has_key: fn(&Spoken) -> bool) {
    let with_key: Vec<&str> = Spoken::all().filter(|spoken| has_key(spoken)).map(Spoken::name).collect();
    let what = format!("only agents of the contract \"{}\" have a {key}", with_key.join("\" or \""));
    file.wrong(agent.span_of(key), &agent.key(key), &what, "remove it");
}

fn url(agent: &Reading<'_>, spoken: &Spoken, file: &mut File) -> Option<Url> {
    let hint = match spoken.whole_address {
        true => "write the address that its requests are posted to, as url = \"http://127.0.0.1:8000/envelope\"",
        false => "write its address, as url = \"http://127.0.0.1:8000\"",
    };
    let shown = agent.key(URL);
    if !agent.keys.contains_key(URL) {
        file.wrong(agent.span_of(URL), &shown, "the agent's address is not given", hint);
        return None;
    }
    let text = agent.text(file, URL, hint)?;
    let endpoints: Vec<&str> = Spoken::all().flat_map(|spoken| spoken.endpoints).copied().collect();
    let endpoints = if spoken.whole_address { Vec::new() } else { endpoints };
    let read = match spoken.whole_address {
        true => address::whole(&text),
        false => address::base(&text, endpoints.iter().copied()),
    };
    let problem = match read {
        Ok(url) => return Some(url),
        Err(problem) => problem,
    };
    let mended = address::mended(&text, &endpoints).map(|url| format!("write url = {}", Value::Text(url)));
    file.wrong(agent.span_of(URL), &shown, problem, mended.as_deref().unwrap_or(hint));
    None
}

impl Remote {
    /// The keys and values that `config show` prints.
    pub(super) fn shown(&self) -> Vec<(&'static str, Option<Value>)> {
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        vec![
            (URL, Some(Value::Text(self.url.to_string()))),
            (TOKEN_FILE, text(&self.token_file)),
            ("mode", text(&self.mode)),
        ]
    }
}
