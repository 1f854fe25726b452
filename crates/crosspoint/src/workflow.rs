//! Runs of workflows. A run is a job, and its stages are jobs of their own.
//!
//! In reading order: `order` is what a run is asked for with; `places` says where it may work and where it keeps its
//! record, `workplace` is where it works, and `began` remembers where it began; `runner` drives a run as the link of a
//! built-in agent, and `stage` has one stage done; `recovery` settles what is half written, and `turns` has outputs
//! written one after the other: `neighbours` has both; `held` waits with a run that cannot go on; `output` reads what a
//! stage gave, and `artifacts` the files in it; `ending` is what a run says at its end; `runs` tells the links of
//! programs where a run works; `judge` looks at what a stage gave before its outcome is stored, and `printed` at
//! envelopes of programs that speak no contract; `sweep` removes what runs left that are gone; `blocking` keeps waits
//! for the disk away from everything else.
//!
//! Where a run goes next is decided in `crosspoint-workflow`, which is pure. Here it is only done.

mod artifacts;
mod began;
mod blocking;
mod ending;
mod held;
mod judge;
mod neighbours;
mod order;
mod output;
mod places;
mod printed;
mod recovery;
mod runner;
mod runs;
mod stage;
mod sweep;
mod turns;
mod workplace;

use crosspoint_exchange::refusal::Refusal;

pub(crate) use held::{HELD, NOT_DRIVEN, why_held};
pub(crate) use judge::Judges;
pub(crate) use order::{Order, about, brings_programs};
pub(crate) use places::{Places, Roots};
pub(crate) use runner::agent;
pub(crate) use runs::Runs;
pub(crate) use stage::WAITS;
pub(crate) use sweep::{settle, sweep};

/// The work of a run. No agent can be configured for it.
pub(crate) use crosspoint_workflow::definition::RUN_ACTION as WORK;
/// The name of the built-in agent that drives runs. No agent can be configured under it.
pub(crate) use crosspoint_workflow::definition::RUNNER_AGENT as AGENT;

/// A run is begun at its own endpoint alone, where its root and its definition are checked before it is accepted.
pub(crate) fn begun_elsewhere() -> Refusal {
    let hint = "send the definition and the root to POST /api/v1/workflows, or use crosspoint workflow run";
    Refusal::unsupported("runs of workflows are not begun as jobs", hint)
}
