//! Programs as agents: runs one program for one job. It knows neither engines nor HTTP.
//!
//! A program is foreign code in a process of its own. Whatever it does, three things must hold:
//!
//! - It does not outlive the process that runs it, which is the server or a worker. A job that such an end cut short is
//!   run again at the next start, and must not run beside its own earlier program.
//! - It does not outlive its job, and neither does anything that it started: no daemons, no zombies.
//! - What it prints neither fills the memory of the server or worker nor gets lost.
//!
//! The obvious way is to start the program as a child and to kill its process group in the end. That keeps neither of
//! the first two: a process that is itself killed kills nothing, and a daemon leaves its group. So each program is
//! started by a supervisor (`supervise`, this same binary), whose connection to its parent closes whenever the parent
//! ends, however it ends. The supervisor is the reaper of all that descends from the program, and ends, or takes the
//! next program, only when no descendant is left. `orphan_lock` makes a new start wait for the supervisors of the last
//! one. If both the parent and the supervisors are killed, programs are left that nothing watches over. So before a
//! job's program is started again, every process that carries the job's id in its environment and has no supervisor is
//! killed.
//!
//! In reading order: `find` says whether there is a program to start, and `launch` starts it with a supervisor,
//! perhaps one of `spare`, when it is its job's `job_lock`; `running` is the parent's side of a running program;
//! `lines` cuts what it prints, `directive` reads the lines that are meant for Crosspoint, `gathered` and
//! `short_text` keep what the outcome will hold, `fail` is what it says of a failure, `end` says how it went;
//! `input` is its stdin; `control` is what parent and supervisor say to each other; `supervise`, `watch` and `tree`
//! are the supervisor, and `kin` says which processes have one.

mod control;
mod directive;
mod end;
mod fail;
mod find;
mod gathered;
mod input;
mod job_lock;
mod kin;
mod launch;
mod lines;
mod orphan_lock;
mod running;
mod short_text;
mod spare;
mod supervise;
pub(crate) mod tree;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Failed, Question, Success};

pub(crate) use orphan_lock::OrphanLock;
pub(crate) use running::{Running, start};
pub(crate) use supervise::{COMMAND as SUPERVISE, run as supervise};

/// The program to run. It has no `Debug`, because its environment may hold secrets.
#[derive(Clone, PartialEq)]
pub(crate) struct Program {
    /// The program and its arguments. A name without a slash is searched in PATH, any other is relative to `home`.
    pub(crate) argv: Vec<String>,
    /// The directory from which it is found: an absolute path.
    pub(crate) home: PathBuf,
    /// Its working directory: an absolute path.
    pub(crate) directory: PathBuf,
    /// The environment variables that it gets besides those that every program gets.
    pub(crate) env: BTreeMap<String, String>,
    /// Whether it may ask questions, for which its stdin stays open.
    pub(crate) ask: bool,
    /// Whether lines that begin with `@crosspoint ` are meant for Crosspoint; if not, they are output like any other.
    pub(crate) has_directives: bool,
    /// The exit codes by which it says that it may work another time, besides [`RETRY_EXIT_CODE`].
    pub(crate) retry_exit_codes: Vec<u8>,
    pub(crate) limits: Limits,
    /// The file that its supervisor holds locked while any of its processes lives, if there is one: see [`OrphanLock`].
    pub(crate) orphan_lock: Option<PathBuf>,
}

/// The exit code by which any program says that it may work another time: `EX_TEMPFAIL` of sysexits.h.
pub(crate) const RETRY_EXIT_CODE: u8 = 75;

impl Program {
    /// Whether this exit code says that the program may work another time.
    fn is_retry_code(&self, code: i32) -> bool {
        u8::try_from(code).is_ok_and(|code| code == RETRY_EXIT_CODE || self.retry_exit_codes.contains(&code))
    }
}

/// Returns the program with the memory that a request allows it, if that is less than the operator does (MSG-6.5).
pub(crate) fn within(program: &Arc<Program>, memory_bytes: Option<u64>) -> Arc<Program> {
    let settled = program.limits.memory_bytes;
    match memory_bytes.filter(|bytes| settled.is_none_or(|settled| *bytes < settled)) {
        None => program.clone(),
        Some(bytes) => {
            let limits = Limits { memory_bytes: Some(bytes), ..program.limits };
            Arc::new(Program { limits, ..(**program).clone() })
        }
    }
}

/// What a program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The resident memory of all its processes together, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// How many processes it may have at one time.
    pub(crate) processes: u32,
    /// How long it has to end after it was asked to.
    pub(crate) grace: Duration,
}

/// How many processes a program may have if that is not configured.
pub(crate) const PROCESSES_DEFAULT: u32 = 256;

/// How long a program has to end if that is not configured.
pub(crate) const GRACE_DEFAULT: Duration = Duration::from_secs(5);

/// The job that a program is run for.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) job_id: String,
    pub(crate) request_id: String,
    pub(crate) work: String,
    pub(crate) attempt: u32,
    /// Whether a program of an earlier attempt may still be there, which nothing watches over.
    pub(crate) may_be_haunted: bool,
    /// How many bytes of output the attempt has already.
    pub(crate) output_offset: u64,
    /// The place of the attempt in a trace.
    pub(crate) traceparent: String,
    /// What tracing systems have noted about the trace; empty if nothing.
    pub(crate) tracestate: String,
    pub(crate) input: Body,
}

/// Something that a program said while it ran.
#[derive(Debug)]
pub(crate) enum ProgramEvent {
    /// A block of what it printed.
    Output(Bytes),
    /// How far it has come.
    Progress { percent: Option<f64>, step: Option<String> },
    /// A question for a person. The program gets the answer by [`Running::answer`].
    Ask(Question),
    /// A sign of life: it printed to stderr.
    Heard,
    /// It broke a rule of Crosspoint; said once for each rule.
    Broken(&'static str),
}

/// What comes next from a program.
#[derive(Debug)]
pub(crate) enum Next {
    /// It said something.
    Event(ProgramEvent),
    /// It has ended, and with it all that it had started. Nothing follows.
    Ended(Result<Success, Failed>),
}

/// Whether Crosspoint sets this variable for every program, so that a configuration may not.
pub(crate) fn is_our_variable(name: &str) -> bool {
    name.starts_with("CROSSPOINT_") || matches!(name, "TRACEPARENT" | "TRACESTATE")
}

/// Checks that the program can be started; the error says in a sentence why it cannot.
pub(crate) fn startable(program: &Program) -> Result<(), String> {
    let why = |failed: Failed| failed.message.and_then(|message| serde_json::from_str(message.get()).ok());
    find::check(program).map_err(|failed| why(failed).unwrap_or_else(|| "it cannot be started".to_owned()))
}

/// Checks that a program of this name could be started from a directory; the error says in a sentence why not.
pub(crate) fn startable_from(home: &Path, name: &str) -> Result<(), String> {
    startable(&Program {
        argv: vec![name.strip_prefix("./").filter(|rest| rest.contains('/')).unwrap_or(name).to_owned()],
        home: home.to_owned(),
        directory: home.to_owned(),
        env: BTreeMap::new(),
        ask: false,
        has_directives: false,
        retry_exit_codes: Vec::new(),
        // Nothing is started, so nothing is limited.
        limits: Limits { memory_bytes: None, processes: 1, grace: Duration::ZERO },
        orphan_lock: None,
    })
}

/// Whether the program could be started, without starting it (MSG-7): a check that ran it would do work that no caller
/// asked for.
pub(crate) async fn check(program: &Program) -> bool {
    let program = program.clone();
    let found = tokio::task::spawn_blocking(move || find::check(&program).is_ok()).await;
    found.unwrap_or(false)
}
