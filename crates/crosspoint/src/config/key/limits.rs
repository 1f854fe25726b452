//! The keys of `[limits]`.

use super::{HOUR, Key};
use crate::config::Config;
use crate::config::kind::{Kind, Value};

/// Largest body, in bytes. An input is a 32-bit range within its document, and a quarter of that is more than memory
/// should hold anyway.
const BODY_BYTES_MAX: u64 = 1 << 30;
/// Largest limit in bytes: more than any machine has. It only keeps sums from overflowing.
const BYTES_MAX: u64 = 1 << 50;

/// Longest head that the HTTP library takes, in bytes.
const HEAD_BYTES_MAX: u64 = 64 << 10;

pub(super) static LIMITS: [Key<Config>; 23] = [
    Key {
        name: "jobs",
        about: "Most jobs that have not ended. Over it requests are refused with 429.",
        kind: Kind::Whole(100_000_000),
        get: |config| Some(Value::count(config.limits.jobs_max)),
        set: |config, value| config.limits.jobs_max = value.whole_usize(),
    },
    Key {
        name: "jobs_per_work",
        about: "Most jobs of one work that have not ended; half of `jobs` if not set.",
        kind: Kind::Whole(100_000_000),
        get: |config| config.limits.jobs_per_work_max.map(Value::count),
        set: |config, value| config.limits.jobs_per_work_max = Some(value.whole_usize()),
    },
    Key {
        name: "jobs_per_agent",
        about: "Most jobs that only one agent can take; half of `jobs` if not set.",
        kind: Kind::Whole(100_000_000),
        get: |config| config.limits.jobs_per_agent_max.map(Value::count),
        set: |config, value| config.limits.jobs_per_agent_max = Some(value.whole_usize()),
    },
    Key {
        name: "jobs_per_caller",
        about: "Most jobs of one caller with a token that have not ended; if not set a quarter of `jobs`, and at most half of `jobs_per_work` and of `jobs_per_agent`.",
        kind: Kind::Whole(100_000_000),
        get: |config| config.limits.jobs_per_caller_max.map(Value::count),
        set: |config, value| config.limits.jobs_per_caller_max = Some(value.whole_usize()),
    },
    Key {
        name: "waiting",
        about: "Most requests that wait to be committed.",
        kind: Kind::Whole(10_000_000),
        get: |config| Some(Value::count(config.limits.waiting_max)),
        set: |config, value| config.limits.waiting_max = value.whole_usize(),
    },
    Key {
        name: "waiting_bytes",
        about: "Most bytes of the requests that wait to be committed.",
        kind: Kind::Whole(BYTES_MAX),
        get: |config| Some(Value::count(config.limits.waiting_bytes_max)),
        set: |config, value| config.limits.waiting_bytes_max = value.whole_usize(),
    },
    Key {
        name: "body_bytes",
        about: "Largest body, in bytes.",
        kind: Kind::Whole(BODY_BYTES_MAX),
        get: |config| Some(Value::count(config.limits.body_bytes_max)),
        set: |config, value| config.limits.body_bytes_max = value.whole_usize(),
    },
    Key {
        name: "bodies_bytes",
        about: "Most bytes of all bodies that are being read at one time. One address or caller has a quarter of it, and always room for one body; not so callers on the loopback without a token.",
        kind: Kind::Whole(BYTES_MAX),
        get: |config| Some(Value::count(config.limits.bodies_bytes_max)),
        set: |config, value| config.limits.bodies_bytes_max = value.whole_usize(),
    },
    Key {
        name: "connections",
        about: "Most connections at one time.",
        kind: Kind::Whole(1_000_000),
        get: |config| Some(Value::count(config.limits.connections_max)),
        set: |config, value| config.limits.connections_max = value.whole_usize(),
    },
    Key {
        name: "connections_per_address",
        about: "Most connections of one address at one time; 0 sets no limit. 256 if not set, and no limit on the loopback.",
        kind: Kind::Count(1_000_000),
        get: |config| config.limits.connections_per_address.map(Value::count),
        set: |config, value| config.limits.connections_per_address = Some(value.whole_usize()),
    },
    Key {
        name: "requests_per_address",
        about: "Most requests of one address in a second, on average; twice as many may come at once. 0 sets no limit. 1000 if not set, and no limit on the loopback.",
        kind: Kind::Count(1_000_000),
        get: |config| config.limits.requests_per_address.map(Value::count),
        set: |config, value| config.limits.requests_per_address = Some(value.whole_usize()),
    },
    Key {
        name: "requests_per_token",
        about: "Most requests with one token in a second, in the same way.",
        kind: Kind::Count(1_000_000),
        get: |config| config.limits.requests_per_token.map(Value::count),
        set: |config, value| config.limits.requests_per_token = Some(value.whole_usize()),
    },
    Key {
        name: "failures_per_address",
        about: "Most failures of one address within a minute to show by a token who it is; then requests without a good token get 429 for a minute. 0 sets no limit. 10 if not set, and no limit on the loopback.",
        kind: Kind::Count(1_000),
        get: |config| config.limits.failures_per_address.map(Value::count),
        set: |config, value| config.limits.failures_per_address = Some(value.whole_usize()),
    },
    Key {
        name: "streams_per_caller",
        about: "Most event streams of one caller at one time. A caller without a token is an address. 0 sets no limit. 100 if not set, and no limit for callers on the loopback without a token.",
        kind: Kind::Count(1_000_000),
        get: |config| config.limits.streams_per_caller.map(Value::count),
        set: |config, value| config.limits.streams_per_caller = Some(value.whole_usize()),
    },
    Key {
        name: "header_bytes",
        about: "Longest headers of a request, in bytes. Over it 431.",
        kind: Kind::Whole(HEAD_BYTES_MAX),
        get: |config| Some(Value::count(config.limits.header_bytes_max)),
        set: |config, value| config.limits.header_bytes_max = value.whole_usize(),
    },
    Key {
        name: "url_bytes",
        about: "Longest address of a request, path and query, in bytes. Over it 414.",
        kind: Kind::Whole(HEAD_BYTES_MAX),
        get: |config| Some(Value::count(config.limits.url_bytes_max)),
        set: |config, value| config.limits.url_bytes_max = value.whole_usize(),
    },
    Key {
        name: "header_seconds",
        about: "Longest time in which the head of a request must arrive.",
        kind: Kind::Seconds(HOUR),
        get: |config| Some(Value::Time(config.limits.header_time_max)),
        set: |config, value| config.limits.header_time_max = value.time(),
    },
    Key {
        name: "body_seconds",
        about: "Longest time in which a body must arrive.",
        kind: Kind::Seconds(HOUR),
        get: |config| Some(Value::Time(config.limits.body_time_max)),
        set: |config, value| config.limits.body_time_max = value.time(),
    },
    Key {
        name: "write_seconds",
        about: "Longest time in which a caller may take less than 16 KiB of an answer that waits for it.",
        kind: Kind::Seconds(HOUR),
        get: |config| Some(Value::Time(config.limits.write_time_max)),
        set: |config, value| config.limits.write_time_max = value.time(),
    },
    Key {
        name: "idle_seconds",
        about: "Longest time for which nothing is asked over a connection that is kept open.",
        kind: Kind::Seconds(HOUR),
        get: |config| Some(Value::Time(config.limits.idle_time_max)),
        set: |config, value| config.limits.idle_time_max = value.time(),
    },
    Key {
        name: "answers_bytes",
        about: "Most bytes of all answers of agents that are being read. An answer beyond its first 256 KiB waits for room.",
        kind: Kind::Whole(BYTES_MAX),
        get: |config| Some(Value::count(config.limits.answers_bytes_max)),
        set: |config, value| config.limits.answers_bytes_max = value.whole_usize(),
    },
    Key {
        name: "unsent_bytes",
        about: "Most bytes of all answers over 64 KiB that callers have not taken. Over it the address with most of them loses its oldest.",
        kind: Kind::Whole(BYTES_MAX),
        get: |config| Some(Value::count(config.limits.unsent_bytes_max)),
        set: |config, value| config.limits.unsent_bytes_max = value.whole_usize(),
    },
    Key {
        name: "store_bytes",
        about: "Largest size of the database, in bytes. Over it new work is refused with 503.",
        kind: Kind::Whole(BYTES_MAX),
        get: |config| config.limits.store_bytes_max.map(Value::Whole),
        set: |config, value| config.limits.store_bytes_max = Some(value.whole()),
    },
];
