//! Why a job does not move.

use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::agent_view::AgentView;
use super::engine::{Engine, Readiness};
use crate::breaker::Breaker;
use crate::id::JobId;
use crate::job::{Job, Origin, State};
use crate::queue::is_of_type;

/// How long an agent gives no sign of life before it is shown as silent.
const SILENT_AFTER: Duration = Duration::from_secs(10);

/// Why a job is not begun again (ALL-13).
const POISON: &str = "poison: the server ended uncleanly each of the last times that an agent had this job, perhaps because of it; \
    crosspoint jobs retry runs it again, crosspoint jobs cancel ends it";

/// Why a job does not move that no orchestrator drives.
pub const NO_SERVER: &str = "no server is running; it goes on when one is";

/// Why a stage does not move after a start.
const BEHIND: &str = "it goes on when the job that it is a stage of does";

const ASIDE: &str = "set aside: what happens to it cannot be written to the store, see crosspoint store check; \
    crosspoint jobs retry tries again, crosspoint jobs cancel ends it";

const UNWRITABLE: &str = "nothing can be written to the store at present; see the log";

/// Why a job may wait although its agent is free.
const SUSPECT: &str =
    "the server ended uncleanly the last times that an agent had this job, and such jobs run one at a time";

/// Most agents that are named as the reason why a job waits.
const AGENTS_NAMED_MAX: usize = 5;

/// Why a job does not move, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The reason, for people to read.
    pub reason: String,
    /// Since when the job does not move.
    pub since: Time,
    /// The stage that does not move, where the job waits for one.
    pub stage: Option<JobId>,
}

/// What is said of the other jobs that a job in the queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// How many are ahead, which means looking at all of them: for one job.
    Counted,
    /// How many the agent has: for a list of jobs.
    Left,
    /// Nothing: for a caller that may know its own jobs alone.
    Hidden,
}

impl Engine {
    /// Returns why a job does not move; `None` where it does, or has ended.
    pub fn stuck(&self, job: &Job, ahead: Ahead) -> Option<Stuck> {
        let (reason, since) = match &job.state {
            State::Ended(_) => return None,
            _ if job.aside.is_some() => (ASIDE.to_owned(), job.aside.unwrap_or(job.updated_at)),
            State::Poisoned => (POISON.to_owned(), job.updated_at),
            // A person can answer whether the job is driven now or not.
            State::Running(_)
                if let Some(stage) = self.resting_stage(job)
                    && stage.needs_a_person() =>
            {
                return self.stuck_at(&stage, ahead);
            }
            State::Queued | State::Running(_) | State::Retrying { .. } if self.is_held(job.seq()) => {
                let why = if self.published().is_behind(job.seq()) { BEHIND } else { NO_SERVER };
                (why.to_owned(), job.updated_at)
            }
            State::Queued if job.is_suspect() => {
                (format!("{SUSPECT}; {}", self.why_queued(job, ahead)), job.updated_at)
            }
            State::Queued => (self.why_queued(job, ahead), job.updated_at),
            State::Retrying { until, after } => {
                let attempt = job.attempts + 1;
                (
                    format!("attempt {} ended with {after}; attempt {attempt} is due at {until}", job.attempts),
                    job.updated_at,
                )
            }
            State::Waiting { .. } => ("waiting for a person's answer".to_owned(), job.updated_at),
            State::Running(_) if let Some(stage) = self.resting_stage(job) => return self.stuck_at(&stage, ahead),
            State::Running(running) => {
                let agent = job.agent.as_deref().unwrap_or_default();
                if self.published().agent(agent).is_none() {
                    let why = format!("agent {agent} was given it, and is not configured here");
                    return Some(Stuck { reason: why, since: job.updated_at, stage: None });
                }
                if crate::wall_clock::now().since(running.heard_at) < SILENT_AFTER {
                    return None;
                }
                if let Some(stage) = self.stage_of(job) {
                    return self.stuck_at(&stage.job(), ahead);
                }
                // It may have said something that could not be stored.
                let why = match self.readiness() {
                    Readiness::Failing(_) => UNWRITABLE.to_owned(),
                    Readiness::Ready => format!("agent {agent} has been silent since {}", running.heard_at),
                };
                (why, running.heard_at)
            }
        };
        Some(Stuck { reason, since, stage: None })
    }

    /// Returns why a job does not move that moves as its stage does.
    fn stuck_at(&self, stage: &Job, ahead: Ahead) -> Option<Stuck> {
        let Stuck { reason, since, stage: deeper } = self.stuck(stage, ahead)?;
        let name = stage.request.origin.as_ref().and_then(Origin::stage).unwrap_or_default();
        Some(Stuck { reason: format!("stage {name}: {reason}"), since, stage: deeper.or(Some(stage.id())) })
    }

    fn why_queued(&self, job: &Job, ahead: Ahead) -> String {
        let (work, bound_to, addressed) = (&job.request.work, job.bound_to(), job.request.addressed.as_deref());
        let takes = |agent: &AgentView| {
            agent.spec.works.contains(work)
                && bound_to.is_none_or(|name| *name == agent.spec.name)
                && is_of_type(agent.spec.agent_type.as_deref(), addressed)
        };
        let agents: Vec<AgentView> = self.published().agents(takes);
        if agents.is_empty() {
            let of_type = addressed.map(|addressed| format!(" for type {addressed}")).unwrap_or_default();
            return match bound_to {
                Some(name) if job.stays => {
                    format!("agent {name}, which may have done it, is not there or does not take {work}{of_type}")
                }
                Some(name) => format!("agent {name} is not configured, or does not take {work}{of_type}"),
                None => format!("no agent takes {work}{of_type}"),
            };
        }
        let is_open = |agent: &&AgentView| {
            !agent.standing.drained && agent.standing.breaker.is_closed() && agent.away_since().is_none()
        };
        if let Some(open) = agents.iter().find(is_open) {
            let place = match ahead {
                Ahead::Hidden => return "in the queue".to_owned(),
                Ahead::Left => "in the queue".to_owned(),
                Ahead::Counted => place(self.published().ahead_of(job)),
            };
            return format!("{place}; {}", why_busy(open));
        }
        let mut reasons: Vec<String> = agents.iter().take(AGENTS_NAMED_MAX).map(why_closed).collect();
        if agents.len() > AGENTS_NAMED_MAX {
            reasons.push(format!("{} more agents are closed to new work, too", agents.len() - AGENTS_NAMED_MAX));
        }
        reasons.join("; ")
    }
}

fn place(ahead: usize) -> String {
    match ahead {
        0 => "next in the queue".to_owned(),
        1 => "1 job is ahead of it in the queue".to_owned(),
        ahead => format!("{ahead} jobs are ahead of it in the queue"),
    }
}

fn why_busy(agent: &AgentView) -> String {
    let name = &agent.spec.name;
    if agent.waiting >= agent.spec.waiting_max {
        return format!("agent {name} has {} jobs that wait for people, and may have no more", agent.waiting);
    }
    format!("agent {name} is busy with {} of {}", agent.running, agent.capacity())
}

/// Returns why an agent gets no new work. Its absence comes first: nothing else about it matters until it is back.
fn why_closed(agent: &AgentView) -> String {
    let name = &agent.spec.name;
    if let Some(since) = agent.away_since() {
        return format!("agent {name} is away since {since}");
    }
    match (agent.standing.drained, agent.standing.breaker) {
        (true, _) => format!("agent {name} is paused by an operator"),
        (false, Breaker::Open { until: Time::NEVER }) => format!("agent {name}'s breaker was opened by an operator"),
        (false, Breaker::Open { until }) => format!("agent {name}'s breaker is open until {until}"),
        (false, Breaker::HalfOpen) => format!("agent {name}'s breaker is half open, and its health is being checked"),
        (false, Breaker::Closed { .. }) => format!("agent {name} is there"),
    }
}
