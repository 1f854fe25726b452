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

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_engine::core::{Mode, Room};
use crosspoint_engine::policy::{OUTPUT_BYTES_DEFAULT, TOTAL_DEFAULT};
use crosspoint_engine::retention::Rule;
use crosspoint_engine::{audit, runtime, store};
use crosspoint_http::limit::Each;
use crosspoint_http::site;

use crate::agent_side::AgentSide;
use crate::link;
use crate::schemas::Schemas;
pub(crate) use bridge::Bridge;
pub(crate) use caller::Caller;
pub(crate) use exec::Exec;
pub(crate) use load::{Flags, Loaded};
pub(crate) use message::{ENDPOINT, Message, Via};
pub(crate) use problem::Invalid;
pub(crate) use remote::{ANSWER_BYTES, CONCURRENCY, Remote};
pub(crate) use show::show;
pub(crate) use token::Token;

/// Default data directory.
const DATA: &str = ".crosspoint";
/// Name of the database file in the data directory.
const DATABASE: &str = "jobs.db";
/// Name of the file in the data directory to which a server writes its address.
pub(crate) const SERVER_FILE: &str = "server.json";

/// Value of `[server] listen` for a server without a port, which listens on a socket file in the data directory
/// instead.
pub(crate) const UNIX: &str = "unix";

/// The whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
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

/// `[limits]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Most jobs that have not ended.
    pub(crate) jobs_max: usize,
    /// Most jobs of one work, and most jobs that only one agent can take. Half of `jobs_max` if not configured, so that
    /// the backlog of one work or agent does not cause jobs of the others to be refused.
    pub(crate) jobs_per_work_max: Option<usize>,
    pub(crate) jobs_per_agent_max: Option<usize>,
    /// Most jobs of one caller that has a token. A quarter of `jobs_max` if not configured, so that no caller can fill
    /// the room of a work.
    pub(crate) jobs_per_caller_max: Option<usize>,
    /// Most requests that wait to be committed.
    pub(crate) waiting_max: usize,
    /// Most bytes of the requests that wait to be committed.
    pub(crate) waiting_bytes_max: usize,
    /// Most bytes of one body.
    pub(crate) body_bytes_max: usize,
    /// Most bytes of all bodies that are being read or waiting at one time.
    pub(crate) bodies_bytes_max: usize,
    /// Most connections at one time.
    pub(crate) connections_max: usize,
    /// Longest time in which the head of a request must arrive.
    pub(crate) header_time_max: Duration,
    /// Longest time in which a body must arrive.
    pub(crate) body_time_max: Duration,
    /// Longest time for which a caller may read nothing of an answer.
    pub(crate) write_time_max: Duration,
    /// Longest time for which nothing is asked over a connection that is kept open.
    pub(crate) idle_time_max: Duration,
    /// Most bytes of the headers of a request, and of its address.
    pub(crate) header_bytes_max: usize,
    pub(crate) url_bytes_max: usize,
    /// What each address or caller may have or do; 0 sets no limit. If not configured, the limit is that of
    /// `site::Limits`, and there is none on the loopback.
    pub(crate) connections_per_address: Option<usize>,
    pub(crate) requests_per_address: Option<usize>,
    pub(crate) requests_per_token: Option<usize>,
    pub(crate) failures_per_address: Option<usize>,
    pub(crate) streams_per_caller: Option<usize>,
    /// Most bytes of all answers of agents that are being read.
    pub(crate) answers_bytes_max: usize,
    /// Largest size of the database, in bytes.
    pub(crate) store_bytes_max: Option<u64>,
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
            judge: (!self.schemas.works().is_empty()).then(|| self.schemas.clone() as Arc<dyn runtime::Judge>),
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

impl Limits {
    /// Returns the limits of connections and bodies.
    pub(crate) fn site(&self) -> site::Limits {
        let default = site::Limits::default();
        let each = |set, default| Each { set, ..default };
        site::Limits {
            body_bytes_max: self.body_bytes_max,
            bodies_bytes_max: self.bodies_bytes_max,
            header_time_max: self.header_time_max,
            body_time_max: self.body_time_max,
            write_time_max: self.write_time_max,
            idle_time_max: self.idle_time_max,
            header_bytes_max: self.header_bytes_max,
            url_bytes_max: self.url_bytes_max,
            connections_per_address: each(self.connections_per_address, default.connections_per_address),
            requests_per_address: each(self.requests_per_address, default.requests_per_address),
            requests_per_token: each(self.requests_per_token, default.requests_per_token),
            failures_per_address: each(self.failures_per_address, default.failures_per_address),
            streams_per_caller: each(self.streams_per_caller, default.streams_per_caller),
        }
    }

    fn room(&self) -> Room {
        let room = Room::of(self.jobs_max);
        Room {
            of_work: self.jobs_per_work_max.unwrap_or(room.of_work),
            of_agent: self.jobs_per_agent_max.unwrap_or(room.of_agent),
            of_caller: self.jobs_per_caller_max.unwrap_or(room.of_caller),
            ..room
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            server: Server::default(),
            store: Store::default(),
            limits: Limits::default(),
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

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            jobs_max: 200_000,
            jobs_per_work_max: None,
            jobs_per_agent_max: None,
            jobs_per_caller_max: None,
            waiting_max: 10_000,
            waiting_bytes_max: 64 << 20,
            body_bytes_max: 16 << 20,
            bodies_bytes_max: 128 << 20,
            connections_max: 10_000,
            header_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(60),
            write_time_max: Duration::from_secs(60),
            idle_time_max: Duration::from_secs(75),
            header_bytes_max: 32 << 10,
            url_bytes_max: 8 << 10,
            connections_per_address: None,
            requests_per_address: None,
            requests_per_token: None,
            failures_per_address: None,
            streams_per_caller: None,
            answers_bytes_max: 256 << 20,
            store_bytes_max: None,
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
