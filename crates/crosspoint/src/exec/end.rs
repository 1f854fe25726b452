//! How a program's end becomes the result of its attempt.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::reply::{Failed, Success};
use serde::Serialize;

use super::control::{Ending, Over, Step};
use super::gathered::ARTIFACTS_BYTES_MAX;
use super::{Program, find};

/// What is known of a program's end.
#[derive(Default)]
pub(super) struct End {
    /// The program's process, once it runs.
    pub(super) pid: Option<i32>,
    /// Why it could not be started.
    pub(super) hindered: Option<(Step, i32)>,
    pub(super) ending: Option<Ending>,
    /// The program was asked to end: however it does then, its work is not done.
    pub(super) stopped: bool,
    /// The program did something that fails the attempt, however it ends.
    pub(super) failed: Option<Failed>,
}

#[derive(Serialize)]
struct Details<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    stderr: &'e str,
}

impl End {
    /// Whether the supervisor has reported how it went.
    pub(super) fn is_known(&self) -> bool {
        self.hindered.is_some() || self.ending.is_some()
    }

    /// How many processes the program left behind.
    pub(super) fn left(&self) -> u32 {
        self.ending.as_ref().map_or(0, |ending| ending.left)
    }

    pub(super) fn result(&mut self, program: &Program, success: impl FnOnce() -> Success) -> Result<Success, Failed> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        if let Some((step, errno)) = self.hindered {
            return Err(find::not_started(program, step, errno));
        }
        if self.stopped {
            return Err(Failed::of(Failure::Cancelled, Dispatched::Yes));
        }
        let Some(ending) = &self.ending else { return Err(unseen()) };
        match (ending.over, ending.code, ending.signal) {
            (Some(over), _, _) => Err(exceeded(over, program, ending)),
            (None, Some(0), _) => Ok(success()),
            (None, Some(code), _) => Err(failed(ending, &format!("The program ended with exit code {code}."))),
            (None, None, Some(signal)) => Err(failed(ending, &format!("The program was killed by signal {signal}."))),
            (None, None, None) => Err(unseen()),
        }
    }
}

fn failed(ending: &Ending, message: &str) -> Failed {
    Failed { details: Some(details(ending)), ..failed_with(Failure::AgentFailed, message) }
}

fn details(ending: &Ending) -> Body {
    Body::of(&Details { exit_code: ending.code, signal: ending.signal, stderr: &ending.stderr })
}

fn exceeded(over: Over, program: &Program, ending: &Ending) -> Failed {
    let message = match over {
        Over::Memory => {
            let limit = program.limits.memory_bytes.unwrap_or_default() >> 20;
            format!("The program was killed: its processes together used more than the {limit} MiB of memory_mb.")
        }
        Over::Processes => {
            let limit = program.limits.processes;
            format!("The program was killed: it had more than the {limit} processes that it may have.")
        }
    };
    Failed {
        details: Some(details(ending)),
        // Part of the work may be done, and a repeat would need as much.
        repeat: Some(Repeat::Never),
        ..failed_with(Failure::ResourceLimit, &message)
    }
}

/// A failure of a program that had begun.
fn failed_with(failure: Failure, message: &str) -> Failed {
    Failed::said(failure, Dispatched::Yes, message)
}

/// The failure when the supervisor ended without a report: it is not known how far the program had come.
fn unseen() -> Failed {
    failed_with(Failure::Unavailable, "The program's supervisor was killed, and the program with it.")
}

pub(super) fn too_many_artifacts() -> Failed {
    let limit = ARTIFACTS_BYTES_MAX >> 20;
    failed_with(Failure::ResourceLimit, &format!("The program's artifacts together are longer than {limit} MiB."))
}

pub(super) fn may_not_ask() -> Failed {
    let message = "The program asks, and its configuration does not say that it may; to let it, set ask = true.";
    failed_with(Failure::BrokenContract, message)
}
