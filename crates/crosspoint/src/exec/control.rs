//! What parent and supervisor say to each other, over one socket. The parent sends the order, as JSON after its length
//! in four bytes, which come with the program's stdin and stdout; and later perhaps a single byte that asks for the
//! program's end. The supervisor sends a line of JSON for each report. If it is free afterwards, it gets another order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Sent to a supervisor: the program is to end. If the connection closes without it, the program is killed at once.
pub(super) const STOP: u8 = b's';

/// The order to a supervisor. It goes over the socket and not into arguments, which every user of the machine can read.
///
/// Paths are bytes, because not every path is UTF-8.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// The program's file.
    pub(super) path: Vec<u8>,
    pub(super) argv: Vec<String>,
    pub(super) directory: Vec<u8>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) processes: u32,
    pub(super) grace_millis: u64,
    pub(super) orphan_lock: Option<Vec<u8>>,
}

/// What a supervisor reports.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The program runs.
    Started { pid: i32 },
    /// The program could not be started, for the system's reason.
    NotStarted { step: Step, errno: i32 },
    /// The program printed to stderr.
    Heard,
    /// The program has ended, and everything that it had started.
    Ended(Ending),
}

/// A step before a program runs that may fail.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Taking the lock in the data directory.
    Lock,
    /// Setting up what the supervisor needs for itself.
    Supervisor,
    /// Starting the program.
    Program,
}

/// How a program ended.
#[derive(Serialize, Deserialize)]
pub(super) struct Ending {
    /// Its exit code, unless a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// How many processes it had left behind, which were killed.
    pub(super) left: u32,
    /// The limit that it exceeded, for which it was killed.
    pub(super) over: Option<Over>,
    /// The end of what it printed to stderr.
    pub(super) stderr: String,
    /// Whether the supervisor takes another order: the program ended by itself, and left nothing behind.
    pub(super) free: bool,
}

/// A limit that a supervisor watches.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    Memory,
    Processes,
}
