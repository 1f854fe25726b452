//! `[[agent]]` with `contract = "bridge"`: the keys of agents that answer in a directory.

use std::path::{Path, PathBuf};

use crosspoint_engine::policy::TOTAL_DEFAULT;

use super::agent::Reading;
use super::file::File;
use super::key::Key;
use super::kind::{Kind, Value};
use super::{Agent, Contract};

/// There is one pair of files in a directory.
const CONCURRENCY: u32 = 1;

/// Default limit of an answer, in bytes: the same as for agents behind an address.
const ANSWER_BYTES: u64 = 16 << 20;

/// The keys that are read by hand.
const BY_HAND: [&str; 1] = ["dir"];

/// The configuration of an agent that answers in a directory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bridge {
    /// The directory in which its requests are written and its responses are found.
    pub(crate) dir: PathBuf,
    /// The directory as it was written in the file.
    written: String,
    /// Whether members without a field in the contract are carried.
    pub(crate) carry: bool,
}

impl Agent {
    /// Returns the defaults of an agent that answers in a directory, without a name and work. People take their time,
    /// so there is no limit on silence (ALL-4).
    pub(super) fn in_files(bridge: Bridge) -> Agent {
        Agent {
            name: String::new(),
            contract: Contract::Directory(Box::new(bridge)),
            work: Vec::new(),
            concurrency: CONCURRENCY,
            waiting_max: None,
            silence: None,
            total: TOTAL_DEFAULT,
            repeatable: None,
            output_bytes_max: ANSWER_BYTES,
            agent_type: None,
        }
    }
}

/// The keys that can be read independently.
pub(super) static KEYS: [Key<Bridge>; 1] = [Key {
    name: "carry",
    about: "Whether what the bridge has no field for travels along under `x_crosspoint`.",
    kind: Kind::YesNo,
    get: |bridge| Some(Value::YesNo(bridge.carry)),
    set: |bridge, value| bridge.carry = value == Value::YesNo(true),
}];

/// Returns all keys that only these agents have.
pub(super) fn keys() -> Vec<&'static str> {
    BY_HAND.into_iter().chain(KEYS.iter().map(|key| key.name)).collect()
}

/// Reads the keys. `None` if the directory is missing.
pub(super) fn read(agent: &Reading<'_>, file: &mut File) -> Option<Bridge> {
    let written = dir(agent, file);
    let mut bridge = Bridge { dir: PathBuf::new(), written: String::new(), carry: true };
    for (key, value) in agent.values(file, &KEYS) {
        (key.set)(&mut bridge, value);
    }
    let written = written?;
    let beside = file.source.path.parent().unwrap_or(Path::new(""));
    let path = beside.join(&written);
    // The server may change its working directory, and the path must not change with it.
    let dir = std::path::absolute(&path).unwrap_or(path);
    Some(Bridge { dir, written, ..bridge })
}

fn dir(agent: &Reading<'_>, file: &mut File) -> Option<String> {
    let hint = "write the directory that requests are left in, as dir = \"inbox\"";
    if !agent.keys.contains_key("dir") {
        file.wrong(agent.span_of("dir"), &agent.key("dir"), "the agent's directory is not given", hint);
        return None;
    }
    let text = agent.text(file, "dir", hint)?;
    if text.is_empty() || text.contains('\0') {
        file.wrong(agent.span_of("dir"), &agent.key("dir"), "it names no directory", hint);
        return None;
    }
    Some(text)
}

/// Checks the keys of all agents for values that these agents cannot have.
pub(super) fn settled(agent: &Agent, reading: &Reading<'_>, file: &mut File) {
    if let Contract::Directory(_) = agent.contract
        && agent.concurrency != CONCURRENCY
    {
        let what = "there is one request file in a directory, so that the agent has one job at a time";
        let hint =
            "remove it; for more at a time, configure an agent for each of several directories, with the same work";
        file.wrong(reading.span_of("concurrency"), &reading.key("concurrency"), what, hint);
    }
}

impl Bridge {
    /// The directory as `config show` prints it.
    pub(super) fn shown(&self) -> Option<Value> {
        Some(Value::Text(self.written.clone()))
    }
}
