//! `[[agent]]` with `contract = "exec"`, or with a contract that programs speak: the keys that only programs have.

use std::collections::BTreeMap;
use std::fmt;

use crosspoint_engine::policy::{OUTPUT_BYTES_DEFAULT, TOTAL_DEFAULT};
use toml::de::DeValue;

use super::agent::Reading;
use super::file::File;
use super::key::Key;
use super::kind::{Kind, Value, described};
use super::{ANSWER_BYTES, Agent, Contract};
use crate::exec::{GRACE_DEFAULT, Limits, PROCESSES_DEFAULT, is_our_variable};
use crate::link::Spoken;

/// Default number of programs that an agent runs at a time. Each is a process, and some are large.
const CONCURRENCY: u32 = 4;

/// Longest grace, in seconds. An attempt that was told to stop is given up after 30.
const GRACE_SECONDS_MAX: u64 = 20;

/// Largest memory limit, in MiB: more than any machine has. It only keeps sums from overflowing.
const MEMORY_MB_MAX: u64 = 1 << 30;

/// Most processes that a system can have.
const PROCESSES_MAX: u64 = 1 << 22;

/// What a program may use where nothing is configured.
pub(super) const LIMITS: Limits = Limits { memory_bytes: None, processes: PROCESSES_DEFAULT, grace: GRACE_DEFAULT };

/// The keys that are read by hand.
const BY_HAND: [&str; 2] = [ARGV, "env"];

/// The key of the program and its arguments.
pub(super) const ARGV: &str = "exec";

/// The configuration of a program.
#[derive(Clone, PartialEq)]
pub(crate) struct Exec {
    /// The contract that it speaks, if it does.
    pub(crate) speaks: Option<&'static Spoken>,
    /// Whether members without a field in that contract are carried.
    pub(crate) carry: bool,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) ask: bool,
    pub(crate) retry_exit_codes: Vec<u8>,
    pub(crate) limits: Limits,
}

/// Arguments and environments may hold secrets, so they are left out.
impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exec({:?}, ask: {}, {:?})", self.argv.first(), self.ask, self.limits)
    }
}

/// Default limit of a program's jobs that wait for people. Each of them is a process that does nothing.
const WAITING_DEFAULT: u32 = 64;

impl Agent {
    /// Returns the defaults of a program, without a name and work.
    pub(super) fn program(exec: Exec) -> Agent {
        let output_bytes_max = if exec.speaks.is_some() { ANSWER_BYTES } else { OUTPUT_BYTES_DEFAULT };
        Agent {
            name: String::new(),
            contract: Contract::Exec(Box::new(exec)),
            work: Vec::new(),
            concurrency: CONCURRENCY,
            waiting_max: Some(WAITING_DEFAULT),
            silence: None,
            total: TOTAL_DEFAULT,
            repeatable: None,
            output_bytes_max,
            agent_type: None,
        }
    }
}

/// The keys that can be read independently.
pub(super) static KEYS: [Key<Exec>; 6] = [
    Key {
        name: CARRY,
        about: "Whether what the program's contract has no field for travels along under `x_crosspoint`. Only for programs that speak a contract.",
        kind: Kind::YesNo,
        get: |exec| Some(Value::YesNo(exec.carry)),
        set: |exec, value| exec.carry = value == Value::YesNo(true),
    },
    Key {
        name: ASK,
        about: "Whether the program may ask people. Its standard input then stays open for the answers.",
        kind: Kind::YesNo,
        get: |exec| Some(Value::YesNo(exec.ask)),
        set: |exec, value| exec.ask = value == Value::YesNo(true),
    },
    Key {
        name: "retry_exit_codes",
        about: "Exit codes of the program that mean \"not now\", besides 75: resource_limit, repeated where `repeatable` is true.",
        kind: Kind::ExitCodes,
        get: |exec| Some(Value::Codes(exec.retry_exit_codes.clone())),
        set: |exec, value| exec.retry_exit_codes = value.codes(),
    },
    Key {
        name: "memory_mb",
        about: "Most memory of the program and all that it starts, in MiB.",
        kind: Kind::Whole(MEMORY_MB_MAX),
        get: |exec| exec.limits.memory_bytes.map(|bytes| Value::Whole(bytes >> 20)),
        set: |exec, value| exec.limits.memory_bytes = Some(value.whole() << 20),
    },
    Key {
        name: "processes",
        about: "Most processes of the program at one time.",
        kind: Kind::Whole(PROCESSES_MAX),
        get: |exec| Some(Value::Whole(exec.limits.processes.into())),
        set: |exec, value| exec.limits.processes = u32::try_from(value.whole()).unwrap_or(u32::MAX),
    },
    Key {
        name: "grace_seconds",
        about: "How long a program that is asked to end may take before it is killed.",
        kind: Kind::Seconds(GRACE_SECONDS_MAX),
        get: |exec| Some(Value::Time(exec.limits.grace)),
        set: |exec, value| exec.limits.grace = value.time(),
    },
];

/// The key that only programs without a contract have: a contract has no questions on the way.
const ASK: &str = "ask";

/// The key that only programs with a contract have.
const CARRY: &str = "carry";

/// Returns the keys of programs that speak this contract, if any, which can be read independently.
pub(super) fn keys_of(speaks: Option<&Spoken>) -> impl Iterator<Item = &'static Key<Exec>> + use<> {
    let other = if speaks.is_some() { ASK } else { CARRY };
    KEYS.iter().filter(move |key| key.name != other)
}

/// Returns all keys that only such programs have.
pub(super) fn keys(speaks: Option<&Spoken>) -> Vec<&'static str> {
    BY_HAND.into_iter().chain(keys_of(speaks).map(|key| key.name)).collect()
}

/// Reads the keys. `None` if the program is missing.
pub(super) fn read(agent: &Reading<'_>, speaks: Option<&'static Spoken>, file: &mut File) -> Option<Exec> {
    let argv = argv(agent, file);
    let limits = LIMITS;
    let mut exec = Exec {
        speaks,
        carry: true,
        argv: Vec::new(),
        env: env(agent, file),
        ask: false,
        retry_exit_codes: Vec::new(),
        limits,
    };
    for (key, value) in agent.values(file, &KEYS) {
        (key.set)(&mut exec, value);
    }
    Some(Exec { argv: argv?, ..exec })
}

fn argv(agent: &Reading<'_>, file: &mut File) -> Option<Vec<String>> {
    let hint = "write the program and each argument apart, as exec = [\"./agent\", \"--fast\"]";
    let shown = agent.key("exec");
    let Some(value) = agent.keys.get("exec") else {
        file.wrong(agent.span_of("exec"), &shown, "the program is not given", hint);
        return None;
    };
    let DeValue::Array(list) = value.get_ref() else {
        let what = format!("it must be a list, and this is {}", described(value.get_ref()));
        file.wrong(value.span(), &shown, &what, hint);
        return None;
    };
    let mut argv = Vec::new();
    for item in list {
        let DeValue::String(text) = item.get_ref() else {
            let what = format!("arguments are texts, and this is {}", described(item.get_ref()));
            file.wrong(item.span(), &shown, &what, "write it in quotes");
            continue;
        };
        if text.contains('\0') {
            file.wrong(item.span(), &shown, "there is a null byte in it", "remove it");
        }
        argv.push(text.to_string());
    }
    if list.is_empty() || argv.first().is_some_and(String::is_empty) {
        file.wrong(value.span(), &shown, "it names no program", hint);
        return None;
    }
    Some(argv)
}

/// Reads the table of variables. Values may be secrets: no message here repeats one.
fn env(agent: &Reading<'_>, file: &mut File) -> BTreeMap<String, String> {
    let hint = "write env = { NAME = \"value\" }";
    let Some(value) = agent.keys.get("env") else { return BTreeMap::new() };
    let DeValue::Table(table) = value.get_ref() else {
        let what = format!("it must be a table, and this is {}", described(value.get_ref()));
        file.wrong(value.span(), &agent.key("env"), &what, hint);
        return BTreeMap::new();
    };
    let mut env = BTreeMap::new();
    for (name, value) in table {
        let key = name.get_ref().as_ref();
        match variable(key, value.get_ref()) {
            Ok(value) => drop(env.insert(key.to_owned(), value)),
            Err((what, hint)) => file.wrong(name.span(), &agent.key(&format!("env.{key}")), &what, hint),
        }
    }
    env
}

/// Returns the value of a variable, or what is wrong with it and how to mend it.
fn variable(name: &str, value: &DeValue<'_>) -> Result<String, (String, &'static str)> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(("no variable can have this name".to_owned(), "write a name without ="));
    }
    if is_our_variable(name) {
        return Err(("crosspoint sets this one itself".to_owned(), "give yours another name"));
    }
    let DeValue::String(text) = value else {
        return Err((format!("it must be a text, and this is {}", described(value)), "write it in quotes"));
    };
    if text.contains('\0') {
        return Err(("there is a null byte in it".to_owned(), "remove it"));
    }
    Ok(text.to_string())
}
