//! The configuration: defaults, the configuration file, the environment and flags. Each of them overrides those before
//! it.
//!
//! In reading order: `key` has every key with the values that it takes; `file` and `agent` read a file, `env` the
//! environment; `load` puts them together, and `together` finds what contradicts in them; `problem` describes mistakes,
//! and `show` prints the values in effect and where each came from.

pub(crate) mod address;
mod agent;
mod bridge;
mod caller;
mod env;
mod exec;
mod exit_codes;
mod file;
mod key;
mod kind;
mod limits;
mod load;
mod message;
mod names;
#[cfg(test)]
mod page;
mod problem;
mod remote;
mod show;
mod together;
mod token;
mod work;
mod workflow;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_engine::core::Mode;
use crosspoint_engine::policy::{OUTPUT_BYTES_DEFAULT, TOTAL_DEFAULT};
use crosspoint_engine::retention::Rule;
use crosspoint_engine::{audit, runtime, store};

use crate::agent_side::AgentSide;
use crate::link;
use crate::schemas::Schemas;
use crate::workflow::{Judges, Roots};
pub(crate) use bridge::Bridge;
pub(crate) use caller::Caller;
pub(crate) use exec::Exec;
pub(crate) use limits::Limits;
pub(crate) use load::{FILE_NAME, Flags, Loaded};
pub(crate) use message::{ENDPOINT, Message, Via};
pub(crate) use problem::{Invalid, line_and_column};
pub(crate) use remote::{ANSWER_BYTES, CONCURRENCY, Remote};
pub(crate) use show::show;
pub(crate) use token::Token;

/// Default data directory.
const DATA: &str = ".crosspoint";
/// Name of the database file in the data directory.
pub(crate) const DATABASE: &str = "jobs.db";
/// Name of the file in the data directory to which a server writes its address.
pub(crate) const SERVER_FILE: &str = "server.json";
/// Name of the file in the data directory to which a command writes its address that does work without a server.
pub(crate) const COMMAND_FILE: &str = "command.json";

/// Value of `[server] listen` for a server without a port, which listens on a socket file in the data directory
/// instead.
pub(crate) const UNIX: &str = "unix";

/// The whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
    pub(crate) workflow: Workflow,
    /// The agents. If none is configured, the sample agents.
    pub(crate) agents: Vec<Agent>,
    /// The schemas of works, from `[[work]]`.
    pub(crate) schemas: Arc<Schemas>,
    /// The callers that are told of their work later.
    pub(crate) callers: Vec<Caller>,
    /// The data directory. A server leaves its address there ([`SERVER_FILE`]), and the database is there unless its
    /// path is configured.
    pub(crate) data: PathBuf,
    /// The configuration file, if there is one.
    pub(crate) origin: Option<PathBuf>,
}

/// `[server]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    /// An address and a port, or [`UNIX`].
    pub(crate) listen: String,
    /// Host names by which callers may address the server, besides the loopback and the address that it listens on.
    pub(crate) names: Vec<String>,
    /// Agent types beside those of the message contract and those that agents are configured with (MSG-1).
    pub(crate) agent_types: Vec<String>,
    /// Whether the server may listen on an address that other machines reach, although it asks for no token.
    pub(crate) insecure: bool,
    pub(crate) name: String,
    /// Longest wait that `?wait=` may ask for.
    pub(crate) wait_max: Duration,
    /// Longest wait for the outcome on behalf of a caller that must be answered with the outcome (ALL-5.4).
    pub(crate) sync_wait: Duration,
    /// Longest time that running attempts get to end when the server stops.
    pub(crate) drain: Duration,
    /// Log level: `off`, `error`, `warn`, `info` or `debug`.
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// `[store]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Store {
    /// The database file.
    pub(crate) path: PathBuf,
    /// Days for which jobs are kept after they ended; 0 keeps them for ever.
    pub(crate) retention_days: f64,
    /// Most ended jobs that are kept; 0 sets no limit.
    pub(crate) retention_jobs: u64,
    /// Days for which ended jobs are kept in any case, whatever their number.
    pub(crate) retention_min_days: f64,
    /// How long entries of the audit are kept; 0 is for ever.
    pub(crate) audit_days: f64,
}

/// `[workflow]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Workflow {
    /// Where runs may work.
    pub(crate) roots: Roots,
}

/// `[[agent]]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) contract: Contract,
    pub(crate) work: Vec<String>,
    pub(crate) concurrency: u32,
    /// Most jobs of this agent that may wait for people, in addition to `concurrency`. `None` sets no limit.
    pub(crate) waiting_max: Option<u32>,
    pub(crate) silence: Option<Duration>,
    pub(crate) total: Duration,
    pub(crate) repeatable: Option<bool>,
    pub(crate) output_bytes_max: u64,
    /// The type by which work may be addressed to it (MSG-18).
    pub(crate) agent_type: Option<String>,
}

impl Agent {
    /// Returns the token that the agent must present when it comes by itself.
    pub(crate) fn token(&self) -> Option<&Token> {
        match &self.contract {
            Contract::Messages(message) => message.token.as_ref(),
            Contract::Builtin(_) | Contract::Exec(_) | Contract::Remote(_) | Contract::Directory(_) => None,
        }
    }
}

/// Most jobs that a built-in agent has at a time. They cost little, but each holds its input.
const BUILTIN_CONCURRENCY: u32 = 256;

/// How an agent is reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Contract {
    /// The agent is built in.
    Builtin(Builtin),
    /// The agent is a program.
    Exec(Box<Exec>),
    /// The agent is behind an address.
    Remote(Box<Remote>),
    /// The agent takes and sends messages.
    Messages(Box<Message>),
    /// Requests are written to a directory, and any program or person may answer them there.
    Directory(Box<Bridge>),
}

/// The agents that are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Echo,
    SlowEcho,
    Ask,
    Fail,
}

impl Config {
    /// Returns the engine's configuration.
    pub(crate) fn engine(&self, mode: Mode, side: &AgentSide) -> runtime::Config {
        runtime::Config {
            store: store::Options { path: self.store.path.clone(), bytes_max: self.limits.store_bytes_max },
            agents: link::configured(self, side),
            queues: Some(side.queues.clone()),
            member_link: Some(side.member_link()),
            limits: runtime::Limits {
                room: self.limits.room(),
                waiting_max: self.limits.waiting_max,
                waiting_bytes_max: self.limits.waiting_bytes_max,
            },
            retention: self.store.retention(),
            audit_age: self.store.audit_age(),
            mode,
            judge: Some(Arc::new(Judges { schemas: self.schemas.clone(), runs: side.runs.clone() })),
        }
    }
}

const DAY_SECONDS: f64 = 86_400.0;

impl Store {
    fn audit_age(&self) -> Option<Duration> {
        (self.audit_days > 0.0).then(|| Duration::from_secs_f64(self.audit_days * DAY_SECONDS))
    }

    fn retention(&self) -> Rule {
        let age = (self.retention_days > 0.0).then(|| Duration::from_secs_f64(self.retention_days * DAY_SECONDS));
        let age_min = Duration::from_secs_f64(self.retention_min_days * DAY_SECONDS);
        Rule { age, jobs: (self.retention_jobs > 0).then_some(self.retention_jobs), age_min }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            server: Server::default(),
            store: Store::default(),
            limits: Limits::default(),
            workflow: Workflow { roots: Roots::Below(Vec::new()) },
            agents: Builtin::ALL.map(Agent::sample).to_vec(),
            schemas: Arc::default(),
            callers: Vec::new(),
            data: PathBuf::from(DATA),
            origin: None,
        }
    }
}

impl Default for Server {
    fn default() -> Server {
        Server {
            listen: "127.0.0.1:7420".to_owned(),
            names: Vec::new(),
            agent_types: Vec::new(),
            insecure: false,
            name: "crosspoint".to_owned(),
            wait_max: Duration::from_secs(300),
            sync_wait: Duration::from_secs(300),
            drain: Duration::from_secs(10),
            log: "info".to_owned(),
            log_format: LogFormat::Text,
        }
    }
}

impl Default for Store {
    fn default() -> Store {
        Store {
            path: PathBuf::from(DATA).join(DATABASE),
            retention_days: 30.0,
            retention_jobs: 10_000_000,
            retention_min_days: 1.0,
            audit_days: audit::AGE_DEFAULT.as_secs_f64() / DAY_SECONDS,
        }
    }
}

impl Agent {
    /// Returns a built-in agent under its own name, which takes the work of that name.
    pub(crate) fn sample(builtin: Builtin) -> Agent {
        Agent {
            name: builtin.name().to_owned(),
            contract: Contract::Builtin(builtin),
            work: vec![builtin.name().to_owned()],
            concurrency: BUILTIN_CONCURRENCY,
            waiting_max: None,
            silence: None,
            total: TOTAL_DEFAULT,
            repeatable: None,
            output_bytes_max: OUTPUT_BYTES_DEFAULT,
            agent_type: None,
        }
    }
}

impl Builtin {
    pub(crate) const ALL: [Builtin; 4] = [Builtin::Echo, Builtin::SlowEcho, Builtin::Ask, Builtin::Fail];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Builtin::Echo => "echo",
            Builtin::SlowEcho => "slow_echo",
            Builtin::Ask => "ask",
            Builtin::Fail => "fail",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Builtin> {
        Builtin::ALL.into_iter().find(|builtin| builtin.name() == name)
    }
}
