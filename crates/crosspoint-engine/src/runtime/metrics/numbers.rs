//! All numbers at one moment: what was counted, and what can be seen by looking.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Counted, Distribution, Metrics, Way};
use crate::breaker::Breaker;
use crate::job::Phase;
use crate::runtime::board::lock;
use crate::runtime::engine::Engine;
use crate::runtime::{AgentView, Purged};
use crate::store::Sizes;
use crate::time::Time;

/// Numbers since the start, and as they are now. No name in them is a caller's, and there are no more than a limit of them.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Jobs accepted, by work.
    pub accepted: Vec<(Arc<str>, u64)>,
    /// Jobs ended.
    pub ended: Vec<Ended>,
    /// Attempts ended.
    pub attempts: Vec<AttemptResult>,
    /// From the start of an attempt to its end, in seconds, by agent.
    pub attempt_times: Vec<(Arc<str>, Distribution)>,
    /// From acceptance to outcome, in seconds, by work.
    pub job_times: Vec<(Arc<str>, Distribution)>,
    /// What was committed.
    pub commits: Commits,
    /// How many jobs are in each of the states in which a job can be that has not ended.
    pub phases: [(Phase, usize); 4],
    /// Jobs that wait for an agent, by work.
    pub queues: Vec<Queue>,
    /// What the agents do.
    pub agents: BTreeMap<Arc<str>, Load>,
    /// How large the store is.
    pub sizes: Sizes,
    /// Jobs that were not kept any longer.
    pub purged: Purged,
}

/// How many jobs of one work ended with one agent in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The work.
    pub work: Arc<str>,
    /// The agent that had it last.
    pub agent: Arc<str>,
    /// `completed`, `failed` or `cancelled`.
    pub outcome: &'static str,
    /// The failure's name; empty where there is none.
    pub failure: &'static str,
    /// How many.
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
    /// How many.
    pub count: u64,
}

/// What was committed.
#[derive(Clone, Debug)]
pub struct Commits {
    /// Commands in one commit.
    pub commands: Distribution,
    /// How long a commit took, in seconds.
    pub time: Distribution,
    /// How long the last step of it took, which writes the log and syncs it, in seconds.
    pub sync: Distribution,
    /// Commits that failed.
    pub failed: u64,
}

/// Jobs of one work that wait for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The work.
    pub work: Arc<str>,
    /// How many.
    pub jobs: usize,
    /// How long ago the oldest of them was accepted.
    pub oldest: Duration,
}

/// What one agent does, or all those together that are not told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Jobs it has.
    pub running: u64,
    /// Jobs it may have.
    pub concurrency: u64,
    /// How many of these agents an operator drained.
    pub drained: u64,
    /// How many of these agents have a breaker that is closed, open and half open.
    pub breakers: [u64; 3],
}

impl Engine {
    /// All numbers at this moment. It reads two sizes of files, and nothing else from the disk.
    pub fn numbers(&self) -> Numbers {
        let metrics = self.metrics();
        let (waiting, phases) = (self.board().waiting_by_work(), self.board().phases());
        let (agents, sizes, now) = (self.agents(), self.readers().sizes(), Time::on_the_wall());
        // From here on the releasing task would have to wait, so nothing is asked of anybody else.
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
