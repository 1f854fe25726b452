//! Programs as agents: runs one program for one job. It knows neither engines nor HTTP.
//!
//! A program is somebody else's code with a process of its own, and three things must hold whatever it does:
//!
//! - it does not outlive us. A job that our end cut short is run again at the next start, and must not run beside its own ghost;
//! - it does not outlive its job, and neither does anything that it started: no daemons, no zombies;
//! - what it prints neither fills our memory nor gets lost.
//!
//! The obvious way, to start it as a child of ours and kill its process group in the end, keeps none of the first two: who is killed
//! kills nobody, and a daemon leaves its group. So each program is started by a supervisor of its own (`supervise`, this same binary),
//! whose connection to us closes whenever we end, however we end. It is the reaper of all that descends from the program, and ends
//! itself only when there is nobody left. `ward` makes a new start of ours wait for the supervisors of the last one. Who kills both
//! us and the supervisors leaves programs that nobody watches over; so before a job's program is started again, whoever carries the job's id in
//! its environment, and has no supervisor, is killed.
//!
//! In reading order: `find` says whether there is a program to start, and `launch` starts it, when it is its job's `turn`; `running` is our side of one that runs; `lines` cuts what it
//! prints, `directive` reads the lines that are meant for us, `gathered` keeps what the outcome will hold, `end` says how it went; `input` is its stdin; `control` is
//! what we and the supervisor say to each other; `supervise`, `watch` and `tree` are the supervisor, and `kin` says who has one.

mod control;
mod directive;
mod end;
mod find;
mod gathered;
mod input;
mod kin;
mod launch;
mod lines;
mod running;
mod supervise;
mod tail;
pub(crate) mod tree;
mod turn;
mod ward;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Failed, Question, Success};

pub(crate) use running::{Running, start};
pub(crate) use supervise::{COMMAND as SUPERVISE, run as supervise};
pub(crate) use ward::Ward;

/// What to run. It has no `Debug`, because its environment may hold secrets.
#[derive(Clone, PartialEq)]
pub(crate) struct Program {
    /// The program and its arguments. Without a slash it is searched in PATH, else it is relative to the directory.
    pub(crate) argv: Vec<String>,
    /// Where it runs: an absolute path.
    pub(crate) directory: PathBuf,
    /// What its environment has besides what every program gets.
    pub(crate) env: BTreeMap<String, String>,
    /// Whether it may ask, for which its stdin stays open.
    pub(crate) ask: bool,
    pub(crate) limits: Limits,
    /// The file that its supervisor holds locked while anything of it lives, where somebody cares: see [`Ward`].
    pub(crate) ward: Option<PathBuf>,
}

/// What it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The resident memory of all its processes together.
    pub(crate) memory_bytes: Option<u64>,
    /// How many processes it may be at one time.
    pub(crate) processes: u32,
    /// How long it has to end after it was asked to.
    pub(crate) grace: Duration,
}

/// How many processes a program may be where nobody says.
pub(crate) const PROCESSES_DEFAULT: u32 = 256;

/// How long a program has to end where nobody says.
pub(crate) const GRACE_DEFAULT: Duration = Duration::from_secs(5);

/// The job it is run for.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) job_id: String,
    pub(crate) request_id: String,
    pub(crate) work: String,
    pub(crate) attempt: u32,
    /// Where in a trace the attempt belongs.
    pub(crate) traceparent: String,
    pub(crate) input: Body,
}

/// Something that a program said while it ran.
#[derive(Debug)]
pub(crate) enum Said {
    /// A block of what it printed.
    Output(Bytes),
    /// How far it is.
    Progress { percent: Option<f64>, step: Option<String> },
    /// A question for a person. It gets the answer by [`Running::answer`].
    Ask(Question),
    /// A sign of life: it printed to stderr.
    Heard,
    /// It broke a rule of ours; said once for each rule.
    Broken(&'static str),
}

/// What comes next of a program.
#[derive(Debug)]
pub(crate) enum Next {
    /// It said something.
    Said(Said),
    /// It has ended, and with it all that it had started. This is the last.
    Ended(Result<Success, Failed>),
}

/// Whether every program gets this variable from us, so that nobody else may set it.
pub(crate) fn is_our_variable(name: &str) -> bool {
    name.starts_with("CROSSPOINT_") || name == "TRACEPARENT"
}

/// Why it could not be started, in a sentence.
pub(crate) fn startable(program: &Program) -> Result<(), String> {
    let why = |failed: Failed| failed.message.and_then(|message| serde_json::from_str(message.get()).ok());
    find::check(program).map_err(|failed| why(failed).unwrap_or_else(|| "it cannot be started".to_owned()))
}

/// Whether it could be started, without starting it (MSG-7): a check that ran it would do somebody's work.
pub(crate) async fn check(program: &Program) -> bool {
    let program = program.clone();
    let found = tokio::task::spawn_blocking(move || find::check(&program).is_ok()).await;
    found.unwrap_or(false)
}
