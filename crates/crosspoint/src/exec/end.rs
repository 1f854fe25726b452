//! How a program's end becomes the result of its attempt.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::reply::{Failed, Success};
use serde::Serialize;

use super::control::{Ending, Over, Step};
use super::fail::{self, Fail};
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
    /// What the program said last about its own failure.
    pub(super) said: Option<Fail>,
}

#[derive(Serialize)]
struct Details<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    stderr: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail: Option<&'e Body>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    limit: Option<Limit>,
}

/// The limit that a program went over, in the words of contracts that must name it.
#[derive(Serialize)]
struct Limit {
    limit_name: &'static str,
    available: u64,
    /// At least. How much it would have been is not known.
    required: u64,
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

    /// Whether the supervisor takes another order.
    pub(super) fn is_free(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.free)
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
        if let Some(over) = ending.over {
            return Err(exceeded(over, program, ending));
        }
        if let Some(said) = &self.said {
            return Err(said_failed(said, ending));
        }
        match (ending.code, ending.signal) {
            (Some(0), _) => Ok(success()),
            (Some(code), _) if program.is_retry_code(code) => Err(without_room(ending)),
            (Some(_), _) | (None, Some(_)) => Err(Failed {
                details: Some(details(ending, None)),
                ..failed_with(Failure::AgentFailed, &words(ending))
            }),
            (None, None) => Err(unseen()),
        }
    }
}

/// The failure that a program reported itself, in its own words.
fn said_failed(said: &Fail, ending: &Ending) -> Failed {
    // Nothing was done if the program says so: then the work is repeated like work that never began.
    let (failure, dispatched) = match said.retry {
        true => (Failure::ResourceLimit, Dispatched::No),
        false => (Failure::AgentFailed, Dispatched::Yes),
    };
    let message = said.message.as_deref().map_or_else(|| words(ending), str::to_owned);
    Failed {
        code: said.code.as_ref().map(Body::of),
        details: Some(details(ending, Some(said))),
        ..Failed::said(failure, dispatched, &message)
    }
}

/// The failure of a program whose exit code says that it may work another time. How far it came is not known.
fn without_room(ending: &Ending) -> Failed {
    Failed {
        details: Some(details(ending, None)),
        repeat: Some(Repeat::Unknown),
        ..failed_with(Failure::ResourceLimit, &words(ending))
    }
}

/// What callers are told: the program's last words, else how it ended.
fn words(ending: &Ending) -> String {
    fail::last_words(&ending.stderr).unwrap_or_else(|| match (ending.code, ending.signal) {
        (Some(0), _) => "The program reported that the work failed.".to_owned(),
        (Some(code), _) => format!("The program ended with exit code {code}."),
        (None, Some(signal)) => format!("The program was killed by signal {signal}."),
        (None, None) => "The program has ended.".to_owned(),
    })
}

fn details(ending: &Ending, said: Option<&Fail>) -> Body {
    Body::of(&known(ending, said))
}

fn known<'e>(ending: &'e Ending, said: Option<&'e Fail>) -> Details<'e> {
    Details {
        code: said.and_then(|said| said.code.as_deref()),
        exit_code: ending.code,
        signal: ending.signal,
        stderr: &ending.stderr,
        fail: said.and_then(|said| said.whole.as_ref()),
        limit: None,
    }
}

fn exceeded(over: Over, program: &Program, ending: &Ending) -> Failed {
    let (limit_name, available, message) = match over {
        Over::Memory => {
            let limit = program.limits.memory_bytes.unwrap_or_default() >> 20;
            let what = format!("its processes together used more than the {limit} MiB of memory_mb");
            ("memory_mb", limit, what)
        }
        Over::Processes => {
            let limit = u64::from(program.limits.processes);
            ("processes", limit, format!("it had more than the {limit} processes that it may have"))
        }
    };
    let limit = Some(Limit { limit_name, available, required: available + 1 });
    Failed {
        details: Some(Body::of(&Details { limit, ..known(ending, None) })),
        // Part of the work may be done, and a repeat would need as much.
        repeat: Some(Repeat::Never),
        ..failed_with(Failure::ResourceLimit, &format!("The program was killed: {message}."))
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
    let message = "The program asks, and its configuration does not say that it may; to let it, set ask = true (--ask of crosspoint agent).";
    failed_with(Failure::BrokenContract, message)
}
