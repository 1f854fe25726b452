//! The built-in agents, programs, and how a configuration becomes the engine's agents.
//!
//! A built-in agent is a [`Link`] like any other: the engine hands it an attempt, and it knows neither queues nor
//! stores.

mod ask;
mod bridge;
mod cancelling;
#[cfg(feature = "demo-contract")]
#[path = "../tests/demo/demo.rs"]
mod demo;
mod echo;
mod exec;
mod fail;
pub(crate) mod message;
mod record;
mod remote;
mod run;
mod slow_echo;
mod spoken;
mod status;
mod task;
mod token;
mod whole;
mod workflow;

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::core::Spec;
use crosspoint_engine::policy::{CUT_SHORT_MAX, Policy, Recovery, Repeats, TAKE_UP_DEFAULT};
use crosspoint_engine::runtime::{Gone, Link};

pub(crate) use self::spoken::{Fate, Spoken};
use crate::agent_side::AgentSide;
use crate::config::{Agent, Builtin, Config, Contract};
use crate::workflow as workflows;

/// Returns the agents of a configuration and their links; the sample agents if it configures none.
pub(crate) fn configured(config: &Config, side: &AgentSide) -> Vec<(Spec, Arc<dyn Link>)> {
    let program_directory = exec::ProgramDirectory::of(config);
    let ways = Ways { program_directory: &program_directory, side, server: &config.server.name };
    let mut agents: Vec<(Spec, Arc<dyn Link>)> = match config.agents.is_empty() {
        true => Builtin::ALL.into_iter().map(|builtin| agent(&Agent::sample(builtin), &ways)).collect(),
        false => config.agents.iter().map(|settled| agent(settled, &ways)).collect(),
    };
    agents.push(workflows::agent(side.places.clone(), &side.runs, &config.schemas));
    agents
}

/// What the links of one server share.
struct Ways<'w> {
    program_directory: &'w exec::ProgramDirectory,
    side: &'w AgentSide,
    server: &'w str,
}

fn agent(settled: &Agent, ways: &Ways<'_>) -> (Spec, Arc<dyn Link>) {
    let spec = Spec {
        name: settled.name.as_str().into(),
        contract: settled.contract.name().into(),
        agent_type: settled.agent_type.as_deref().map(Into::into),
        works: settled.work.iter().map(|work| work.as_str().into()).collect(),
        awaited: matches!(&settled.contract, Contract::Messages(message) if message.is_awaited()),
        concurrency: settled.concurrency,
        waiting_max: waiting_max(settled),
        policy: policy_of(settled),
    };
    (spec, link(settled, ways))
}

/// Returns how many of an agent's jobs may wait for people. A program that may not ask has none of them, and callers do
/// not have to leave places to each other.
fn waiting_max(settled: &Agent) -> u32 {
    let asks_nobody = matches!(&settled.contract, Contract::Exec(program) if !program.ask);
    settled.waiting_max.filter(|_| !asks_nobody).unwrap_or(u32::MAX)
}

fn link(settled: &Agent, ways: &Ways<'_>) -> Arc<dyn Link> {
    let Ways { program_directory, side, server } = ways;
    match &settled.contract {
        Contract::Builtin(Builtin::Echo) => Arc::new(echo::Echo),
        Contract::Builtin(Builtin::SlowEcho) => Arc::new(slow_echo::SlowEcho),
        Contract::Builtin(Builtin::Ask) => Arc::new(ask::Ask),
        Contract::Builtin(Builtin::Fail) => Arc::new(fail::Fail),
        Contract::Exec(program) => Arc::new(exec::Exec::new(settled, program, program_directory, side, server)),
        Contract::Directory(files) => Arc::new(bridge::Bridge::new(settled, files, server)),
        Contract::Messages(message) => side.hub.configured(settled, message),
        Contract::Remote(remote) => {
            (remote.spoken.link)(remote::Agent::new(settled, remote, server, &side.answers), settled)
        }
    }
}

/// Longest time until the programs of a configuration have ended after they were asked to.
pub(crate) fn parting_time(config: &Config) -> Duration {
    let grace = config.agents.iter().filter_map(|agent| match &agent.contract {
        Contract::Exec(program) => Some(program.limits.grace),
        Contract::Builtin(_) | Contract::Directory(_) | Contract::Messages(_) | Contract::Remote(_) => None,
    });
    grace.max().map_or(Duration::ZERO, |grace| grace.saturating_add(exec::KILL_TIME_MAX))
}

/// What happens to work that the end of the server cut short (ALL-3). Built-in agents and programs died with the
/// server, so they run again unless the operator says otherwise. Task agents, message agents and agents that answer in
/// files went on, so their work is taken up. What became of a run or of a posted envelope cannot be known, so it is
/// sent again only if the operator says so.
fn recovery_of(settled: &Agent) -> Recovery {
    let fate = match &settled.contract {
        Contract::Builtin(_) | Contract::Exec(_) => Fate::Died,
        Contract::Directory(_) | Contract::Messages(_) => Fate::WentOn,
        Contract::Remote(remote) => remote.spoken.fate,
    };
    match (fate, settled.repeatable) {
        (Fate::WentOn, Some(false)) => Recovery::ResumeOnce,
        (Fate::WentOn, Some(true) | None) => Recovery::Resume,
        (Fate::Unknown, Some(true)) | (Fate::Died, Some(true) | None) => Recovery::Rerun,
        (Fate::Unknown, Some(false) | None) | (Fate::Died, Some(false)) => Recovery::Fail,
    }
}

/// Whether work that may have begun is begun again (ALL-3). An agent of the message contract promises not to do the
/// same request twice.
fn repeats_of(settled: &Agent) -> Repeats {
    match (&settled.contract, settled.repeatable) {
        (_, Some(true)) => Repeats::Always,
        (Contract::Messages(_), None) => Repeats::SameAgent,
        (_, Some(false) | None) => Repeats::BeforeStart,
    }
}

fn policy_of(settled: &Agent) -> Policy {
    Policy {
        silence: settled.silence,
        total: settled.total,
        repeats: repeats_of(settled),
        recovery: recovery_of(settled),
        // A poll is answered by then, or the agent is silent.
        take_up: settled.silence.unwrap_or(TAKE_UP_DEFAULT),
        cut_short_max: match &settled.contract {
            Contract::Builtin(_) | Contract::Exec(_) => Some(CUT_SHORT_MAX),
            Contract::Directory(_) | Contract::Messages(_) | Contract::Remote(_) => None,
        },
        output_bytes_max: settled.output_bytes_max,
        ..Policy::DEFAULT
    }
}

/// The result of an attempt that was given up: the job goes on without it, and its further reports are dropped.
fn gone(_: Gone) -> Failed {
    Failed::of(Failure::Cancelled, Dispatched::Yes)
}

fn success(outputs: Body) -> Success {
    Success::of(outputs)
}

/// Longest time that a sample agent takes over one job, in seconds, whatever its input asks for.
const SECONDS_MAX: f64 = 3_600.0;

fn seconds(asked: Option<f64>, default: f64) -> Duration {
    let seconds = asked.filter(|seconds| seconds.is_finite()).unwrap_or(default);
    Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX))
}
