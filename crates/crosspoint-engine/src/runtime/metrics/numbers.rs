//! All numbers at one moment: what was counted, and what is read from the present state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Counted, Distribution, Metrics, Way};
use crate::breaker::Breaker;
use crate::job::Phase;
use crate::runtime::engine::Engine;
use crate::runtime::published::lock;
use crate::runtime::{AgentView, Purged};
use crate::store::Sizes;

/// Numbers since the start, and as they are now. No name in them comes from a caller, and their number is limited.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Jobs accepted, by work.
    pub accepted: Vec<(Arc<str>, u64)>,
    /// Jobs that ended.
    pub ended: Vec<Ended>,
    /// Attempts that ended.
    pub attempts: Vec<AttemptResult>,
    /// Time from the start of an attempt to its end, in seconds, by agent.
    pub attempt_times: Vec<(Arc<str>, Distribution)>,
    /// Time from acceptance to the outcome, in seconds, by work.
    pub job_times: Vec<(Arc<str>, Distribution)>,
    /// Rules that were broken about jobs, by level: `error` or `warning`.
    pub violations: Vec<(&'static str, u64)>,
    /// The commits.
    pub commits: Commits,
    /// How many jobs are in each of the states that a job can have before its end.
    pub phases: [(Phase, usize); 4],
    /// Jobs that wait for an agent, by work.
    pub queues: Vec<Queue>,
    /// The load of the agents, by name.
    pub agents: BTreeMap<Arc<str>, Load>,
    /// The size of the store.
    pub sizes: Sizes,
    /// Jobs that were removed because they need no longer be kept.
    pub purged: Purged,
}

/// How many jobs of one work ended with one agent in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The work.
    pub work: Arc<str>,
    /// The agent that had the jobs last.
    pub agent: Arc<str>,
    /// `completed`, `failed` or `cancelled`.
    pub outcome: &'static str,
    /// The failure's name; empty where there is none.
    pub failure: &'static str,
    /// How many jobs.
    pub count: u64,
}

/// How many attempts of one agent ended in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    /// The agent.
    pub agent: Arc<str>,
    /// `completed`, `failed`, `cancelled` or `interrupted`.
    pub outcome: &'static str,
    /// The failure's name; empty where there is none.
    pub failure: &'static str,
    /// How many attempts.
    pub count: u64,
}

/// The commits since the start.
#[derive(Clone, Debug)]
pub struct Commits {
    /// How many commands were in one commit.
    pub commands: Distribution,
    /// How long a commit took, in seconds.
    pub time: Distribution,
    /// How long the last step of a commit took, which writes the log and syncs it, in seconds.
    pub sync: Distribution,
    /// How many commits failed.
    pub failed: u64,
}

/// The jobs of one work that wait for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The work.
    pub work: Arc<str>,
    /// How many jobs wait.
    pub jobs: usize,
    /// How long ago the oldest of them was accepted.
    pub oldest: Duration,
}

/// The load of one agent, or of all agents together that are not counted separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many jobs the agents have, without those that wait for a person.
    pub running: u64,
    /// How many jobs the agents may have at a time.
    pub concurrency: u64,
    /// How many of the agents are drained by an operator.
    pub drained: u64,
    /// How many of the agents have a closed, an open and a half-open breaker.
    pub breakers: [u64; 3],
}

impl Engine {
    /// Returns all numbers at this moment. It reads the sizes of two files, and nothing else from the disk.
    pub fn numbers(&self) -> Numbers {
        let metrics = self.metrics();
        let (waiting, phases) = (self.published().waiting_by_work(), self.published().phases());
        let (agents, sizes, now) = (self.agents(), self.readers().sizes(), crate::wall_clock::now());
        // From here on the releasing task would have to wait, so nothing else is asked for while the lock is held.
        let mut counted = lock(&metrics.counted);
        let mut queues: BTreeMap<Arc<str>, Queue> = BTreeMap::new();
        for (work, jobs, accepted_at) in waiting {
            let work = counted.work(&work);
            let oldest = now.since(accepted_at);
            let queue = queues.entry(work.clone()).or_insert(Queue { work, jobs: 0, oldest });
            queue.jobs += jobs;
            queue.oldest = queue.oldest.max(oldest);
        }
        Numbers {
            accepted: counted.accepted.iter().map(|(work, count)| (counted.works.spelled(*work), *count)).collect(),
            ended: counted.ended(),
            attempts: counted.attempts(),
            attempt_times: counted.attempt_times(),
            job_times: counted.job_times(),
            violations: counted.violations.iter().map(|(level, count)| (level.name(), *count)).collect(),
            commits: metrics.commits(),
            phases,
            queues: queues.into_values().collect(),
            agents: counted.loads(&agents),
            sizes,
            purged: self.purged(),
        }
    }
}

impl Metrics {
    fn commits(&self) -> Commits {
        Commits {
            commands: self.commands.look(),
            time: self.commit_time.look(),
            sync: self.sync_time.look(),
            failed: self.commits_failed.load(Ordering::Relaxed),
        }
    }
}

impl Counted {
    pub(super) fn work(&mut self, work: &str) -> Arc<str> {
        let name = self.works.of(work);
        self.works.spelled(name)
    }

    pub(super) fn ended(&self) -> Vec<Ended> {
        let shown = |((work, agent, way), count): (&(_, _, Way), &u64)| Ended {
            work: self.works.spelled(*work),
            agent: self.agents.spelled(*agent),
            outcome: way.outcome(),
            failure: way.failure(),
            count: *count,
        };
        self.ended.iter().map(shown).collect()
    }

    fn attempts(&self) -> Vec<AttemptResult> {
        let shown = |((agent, way), count): (&(_, Way), &u64)| AttemptResult {
            agent: self.agents.spelled(*agent),
            outcome: way.outcome(),
            failure: way.failure(),
            count: *count,
        };
        self.attempts.iter().map(shown).collect()
    }

    fn attempt_times(&self) -> Vec<(Arc<str>, Distribution)> {
        self.attempt_times.iter().map(|(agent, times)| (self.agents.spelled(*agent), times.look())).collect()
    }

    fn job_times(&self) -> Vec<(Arc<str>, Distribution)> {
        self.job_times.iter().map(|(work, times)| (self.works.spelled(*work), times.look())).collect()
    }

    pub(super) fn loads(&mut self, agents: &[AgentView]) -> BTreeMap<Arc<str>, Load> {
        let mut loads: BTreeMap<Arc<str>, Load> = BTreeMap::new();
        for agent in agents {
            let name = self.agents.of(&agent.spec.name);
            let load = loads.entry(self.agents.spelled(name)).or_default();
            load.running += u64::from(agent.running);
            load.concurrency += u64::from(agent.capacity());
            load.drained += u64::from(agent.standing.drained);
            let state = match agent.standing.breaker {
                Breaker::Closed { .. } => 0,
                Breaker::Open { .. } => 1,
                Breaker::HalfOpen => 2,
            };
            load.breakers[state] += 1;
        }
        loads
    }
}

impl Way {
    fn outcome(self) -> &'static str {
        match self {
            Way::Completed => "completed",
            Way::Cancelled => "cancelled",
            Way::Failed(_) => "failed",
            Way::Interrupted => "interrupted",
        }
    }

    fn failure(self) -> &'static str {
        match self {
            Way::Failed(failure) => failure.name(),
            Way::Completed | Way::Cancelled | Way::Interrupted => "",
        }
    }
}
