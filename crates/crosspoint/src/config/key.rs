//! Every key of one value, with the values that it takes. The file, the environment, `config show` and the suggestions
//! use this list, so that a new key is one entry.

mod limits;

use crosspoint_engine::policy::OUTPUT_BYTES_MAX;

use super::kind::{Kind, STORE_PREFIX, Value, store_path};
use super::{Agent, Config, LogFormat};
use crate::workflow::Roots;

/// A key of `T`.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    /// What it is, for the page of the configuration.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test writes the page"))]
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    /// Returns its value, or `None` if it is optional and not set.
    pub(super) get: fn(&T) -> Option<Value>,
    pub(super) set: fn(&mut T, Value),
}

/// A table of the file.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) keys: &'static [Key<Config>],
}

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

pub(super) const LOG_LEVELS: [&str; 5] = ["off", "error", "warn", "info", "debug"];
const LOG_FORMATS: [&str; 2] = ["text", "json"];

pub(super) const SECTIONS: [Section; 4] = [
    Section { name: "server", keys: &SERVER },
    Section { name: "store", keys: &STORE },
    Section { name: "limits", keys: &limits::LIMITS },
    Section { name: "workflow", keys: &WORKFLOW },
];

static SERVER: [Key<Config>; 10] = [
    Key {
        name: "listen",
        about: "Where callers connect: an address and port, or `unix` for a socket in the data directory. Port 0 is any free one.",
        kind: Kind::Address,
        get: |config| Some(Value::Text(config.server.listen.clone())),
        set: |config, value| config.server.listen = value.text(),
    },
    Key {
        name: "names",
        about: "Further host names of this server. Requests that are meant for another host are refused.",
        kind: Kind::Hosts,
        get: |config| Some(Value::Texts(config.server.names.clone())),
        set: |config, value| config.server.names = value.texts(),
    },
    Key {
        name: "insecure",
        about: "Whether an address that other machines reach is served although no token is asked for.",
        kind: Kind::YesNo,
        get: |config| Some(Value::YesNo(config.server.insecure)),
        set: |config, value| config.server.insecure = value == Value::YesNo(true),
    },
    Key {
        name: "name",
        about: "What this server calls itself in a delegation chain.",
        kind: Kind::Name,
        get: |config| Some(Value::Text(config.server.name.clone())),
        set: |config, value| config.server.name = value.text(),
    },
    Key {
        name: "agent_types",
        about: "Agent types of the message contract, beside its own five and those that agents are configured with.",
        kind: Kind::Names,
        get: |config| Some(Value::Texts(config.server.agent_types.clone())),
        set: |config, value| config.server.agent_types = value.texts(),
    },
    Key {
        name: "wait_seconds_max",
        about: "Longest time that a caller may ask to wait for an outcome.",
        kind: Kind::Seconds(DAY),
        get: |config| Some(Value::Time(config.server.wait_max)),
        set: |config, value| config.server.wait_max = value.time(),
    },
    Key {
        name: "sync_wait_seconds",
        about: "How long a caller waits that can only be answered with the outcome.",
        kind: Kind::Seconds(DAY),
        get: |config| Some(Value::Time(config.server.sync_wait)),
        set: |config, value| config.server.sync_wait = value.time(),
    },
    Key {
        name: "drain_seconds",
        about: "How long work under way may go on when the server stops.",
        kind: Kind::Seconds(DAY),
        get: |config| Some(Value::Time(config.server.drain)),
        set: |config, value| config.server.drain = value.time(),
    },
    Key {
        name: "log",
        about: "How much is logged, on stderr.",
        kind: Kind::Choice(&LOG_LEVELS),
        get: |config| Some(Value::Text(config.server.log.clone())),
        set: |config, value| config.server.log = value.text(),
    },
    Key {
        name: "log_format",
        about: "How it is logged.",
        kind: Kind::Choice(&LOG_FORMATS),
        get: |config| Some(Value::Text(config.server.log_format.name().to_owned())),
        set: |config, value| config.server.log_format = LogFormat::from_name(&value.text()),
    },
];

static WORKFLOW: [Key<Config>; 1] = [Key {
    name: "roots",
    about: "Directories below which runs of workflows may work. Without any: the directory of the configuration.",
    kind: Kind::Paths,
    get: |config| {
        let Roots::Below(roots) = &config.workflow.roots else { return None };
        Some(Value::Texts(roots.iter().map(|root| root.display().to_string()).collect()))
    },
    set: |config, value| {
        config.workflow.roots = Roots::Below(value.texts().into_iter().map(Into::into).collect());
    },
}];

static STORE: [Key<Config>; 5] = [
    Key {
        name: "url",
        about: "The database.",
        kind: Kind::Store,
        get: |config| Some(Value::Text(format!("{STORE_PREFIX}{}", config.store.path.display()))),
        set: |config, value| config.store.path = store_path(&value.text()),
    },
    Key {
        name: "retention_days",
        about: "How long jobs that have ended are kept; 0 keeps them for ever.",
        kind: Kind::Days(100 * 365),
        get: |config| Some(Value::Days(config.store.retention_days)),
        set: |config, value| config.store.retention_days = value.days(),
    },
    Key {
        name: "retention_jobs",
        about: "Most jobs that have ended and are kept; 0 sets no limit.",
        kind: Kind::Count(1_000_000_000),
        get: |config| Some(Value::Whole(config.store.retention_jobs)),
        set: |config, value| config.store.retention_jobs = value.whole(),
    },
    Key {
        name: "audit_days",
        about: "How long it is kept who did what; 0 keeps it for ever.",
        kind: Kind::Days(100 * 365),
        get: |config| Some(Value::Days(config.store.audit_days)),
        set: |config, value| config.store.audit_days = value.days(),
    },
    Key {
        name: "retention_min_days",
        about: "Least time that a job is kept after its end, whatever the other two say.",
        kind: Kind::Days(100 * 365),
        get: |config| Some(Value::Days(config.store.retention_min_days)),
        set: |config, value| config.store.retention_min_days = value.days(),
    },
];

/// The keys of an agent that can be read independently. `name`, `contract`, `run` and `work` depend on each other and
/// are read by hand.
pub(super) static AGENT: [Key<Agent>; 7] = [
    Key {
        name: "type",
        about: "The agent's type. Of work that is addressed to a type it takes only what is addressed to this one.",
        kind: Kind::Name,
        get: |agent| agent.agent_type.clone().map(Value::Text),
        set: |agent, value| agent.agent_type = Some(value.text()),
    },
    Key {
        name: "concurrency",
        about: "Most jobs that the agent has at one time.",
        kind: Kind::Whole(1_000_000),
        get: |agent| Some(Value::Whole(u64::from(agent.concurrency))),
        set: |agent, value| agent.concurrency = u32::try_from(value.whole()).unwrap_or(u32::MAX),
    },
    Key {
        name: "waiting",
        about: "Most of its jobs that may wait for people, in addition to `concurrency`.",
        kind: Kind::Whole(1_000_000),
        get: |agent| agent.waiting_max.map(|most| Value::Whole(u64::from(most))),
        set: |agent, value| agent.waiting_max = Some(u32::try_from(value.whole()).unwrap_or(u32::MAX)),
    },
    Key {
        name: "silence_seconds",
        about: "Longest time in which the agent may give no sign of life.",
        kind: Kind::Seconds(YEAR),
        get: |agent| agent.silence.map(Value::Time),
        set: |agent, value| agent.silence = Some(value.time()),
    },
    Key {
        name: "total_seconds",
        about: "Longest time that a job may take in all. Time spent waiting for people does not count.",
        kind: Kind::Seconds(YEAR),
        get: |agent| Some(Value::Time(agent.total)),
        set: |agent, value| agent.total = value.time(),
    },
    Key {
        name: "repeatable",
        about: "Whether work that may have begun may be begun again.",
        kind: Kind::YesNo,
        get: |agent| agent.repeatable.map(Value::YesNo),
        set: |agent, value| agent.repeatable = Some(value == Value::YesNo(true)),
    },
    Key {
        name: "output_bytes",
        about: "Most output of one job, in bytes.",
        kind: Kind::Whole(OUTPUT_BYTES_MAX),
        get: |agent| Some(Value::Whole(agent.output_bytes_max)),
        set: |agent, value| agent.output_bytes_max = value.whole(),
    },
];

impl LogFormat {
    fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }

    fn from_name(name: &str) -> LogFormat {
        if name == LogFormat::Json.name() { LogFormat::Json } else { LogFormat::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed values can be read, and reading them changes nothing.
    #[test]
    fn every_key_reads_what_it_prints() {
        let defaults = Config {
            limits: super::super::Limits {
                store_bytes_max: Some(7),
                jobs_per_work_max: Some(8),
                jobs_per_agent_max: Some(9),
                jobs_per_caller_max: Some(6),
                connections_per_address: Some(10),
                requests_per_address: Some(11),
                requests_per_token: Some(12),
                failures_per_address: Some(13),
                streams_per_caller: Some(14),
                ..Default::default()
            },
            ..Config::default()
        };
        let mut config = defaults.clone();
        for key in SECTIONS.iter().flat_map(|section| section.keys) {
            let value = (key.get)(&config).expect("every key has a value here");
            let printed = value.to_string();
            let document = format!("key = {printed}");
            let table = toml::de::DeTable::parse(&document).expect("it is TOML");
            let read = table.get_ref().values().next().expect("it has a value");
            let read = key.kind.of_toml(read.get_ref()).unwrap_or_else(|wrong| panic!("{}: {wrong:?}", key.name));
            (key.set)(&mut config, read);
            assert_eq!((key.get)(&config), Some(value), "{}", key.name);
        }
        assert_eq!(config, defaults);
    }
}
