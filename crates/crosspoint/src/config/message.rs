//! `[[agent]]` with `contract = "message"`: the keys of agents that take and send messages.

use std::time::Duration;

use crosspoint_engine::policy::TOTAL_DEFAULT;
use reqwest::Url;
use toml::de::DeValue;

use super::agent::{MESSAGE, Reading};
use super::file::File;
use super::key::Key;
use super::kind::{Kind, Value};
use super::remote::{ANSWER_BYTES, CONCURRENCY};
use super::token::{self, TOKEN_FILE, Token};
use super::{Agent, Contract, address};

/// How long such an agent may be silent if that is not configured (MSG-6).
const SILENCE: Duration = Duration::from_secs(30);

/// The end of an address that belongs to the endpoint, and not to the agent.
pub(crate) const ENDPOINT: &str = "/api/agent/message";

/// The keys that are read by hand.
const BY_HAND: [&str; 2] = ["via", TOKEN_FILE];

/// An address, for hints.
const EXAMPLE: &str = "http://127.0.0.1:8000";

const HINT: &str = "write via = \"pull\" for an agent that asks for its work, or via = \"push:http://127.0.0.1:8000\"";

/// The configuration of an agent that takes and sends messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    /// How messages reach it.
    pub(crate) via: Via,
    /// The token that it must present, and that is presented to it (MSG-13).
    pub(crate) token: Option<Token>,
    /// The file of the token, as it was written.
    pub(crate) token_file: Option<String>,
    /// Whether members without a field in the contract are carried.
    pub(crate) carry: bool,
}

/// How messages reach an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// They are posted below this address.
    Push(Url),
    /// The agent asks for them.
    Pull,
}

impl Agent {
    /// Returns the defaults of an agent that takes and sends messages, without a name and work.
    pub(super) fn of_messages(message: Message) -> Agent {
        Agent {
            name: String::new(),
            contract: Contract::Messages(Box::new(message)),
            work: Vec::new(),
            concurrency: CONCURRENCY,
            waiting_max: None,
            silence: Some(SILENCE),
            total: TOTAL_DEFAULT,
            repeatable: None,
            output_bytes_max: ANSWER_BYTES,
            agent_type: None,
        }
    }
}

/// The keys that can be read independently.
pub(super) static KEYS: [Key<Message>; 1] = [Key {
    name: "carry",
    about: "Whether what the contract has no field for travels along under `x_crosspoint`.",
    kind: Kind::YesNo,
    get: |message| Some(Value::YesNo(message.carry)),
    set: |message, value| message.carry = value == Value::YesNo(true),
}];

/// Returns all keys that only these agents have.
pub(super) fn keys() -> Vec<&'static str> {
    BY_HAND.into_iter().chain(KEYS.iter().map(|key| key.name)).collect()
}

/// Reads the keys. `None` if it is not said how the agent is reached.
pub(super) fn read(agent: &Reading<'_>, file: &mut File) -> Option<Message> {
    let via = via(agent, file);
    let (token_file, token) = token::read(agent, file);
    let values = agent.values(file, &KEYS);
    let mut message = Message { via: via?, token, token_file, carry: true };
    for (key, value) in values {
        (key.set)(&mut message, value);
    }
    Some(message)
}

/// Says what an agent of messages has in place of a key of other agents behind an address.
pub(super) fn instead(contract: &str, key: &str, value: &DeValue<'_>) -> Option<String> {
    match (contract == MESSAGE, key, value) {
        (true, "url", DeValue::String(url)) => {
            let url = address::mended(url, &[ENDPOINT]);
            Some(format!("write via = {} in its place", pushed(url.as_deref().unwrap_or(EXAMPLE))))
        }
        (true, "stream", _) => Some("remove it: an agent of messages sends a work_status whenever it likes".to_owned()),
        (_, _, _) => None,
    }
}

/// Returns how messages reach an agent at this address, as it is written in the file.
fn pushed(url: &str) -> Value {
    Value::Text(format!("push:{url}"))
}

fn via(agent: &Reading<'_>, file: &mut File) -> Option<Via> {
    if !agent.keys.contains_key("via") {
        file.wrong(agent.span_of("via"), &agent.key("via"), "it is not said how messages reach the agent", HINT);
        return None;
    }
    let text = agent.text(file, "via", HINT)?;
    let problem = match (text.as_str(), text.strip_prefix("push:")) {
        ("pull", _) => return Some(Via::Pull),
        (_, Some(text)) => match address::base(text, [ENDPOINT].into_iter()) {
            Ok(url) => return Some(Via::Push(url)),
            Err(problem) => problem,
        },
        ("amqp", _) => "agents of a queue come with a later version",
        (_, None) => "it is neither \"pull\" nor \"push:\" and an address",
    };
    let address = text.strip_prefix("push:").or_else(|| text.contains("://").then_some(text.as_str()));
    let mended = address.and_then(|text| address::mended(text, &[ENDPOINT]));
    let hint = mended.map_or_else(|| HINT.to_owned(), |url| format!("write via = {}", pushed(&url)));
    file.wrong(agent.span_of("via"), &agent.key("via"), problem, &hint);
    None
}

impl Message {
    /// The keys and values that `config show` prints.
    pub(super) fn shown(&self) -> Vec<(&'static str, Option<Value>)> {
        let via = match &self.via {
            Via::Push(url) => format!("push:{url}"),
            Via::Pull => "pull".to_owned(),
        };
        vec![("via", Some(Value::Text(via))), (TOKEN_FILE, self.token_file.clone().map(Value::Text))]
    }
}
