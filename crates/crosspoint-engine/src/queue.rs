//! Jobs that wait for an agent, and which of them goes next.
//!
//! The highest priority goes first, and within it the oldest job. That alone would let a low job wait for ever while
//! higher ones keep coming. So every eighth turn of an agent goes to the oldest of all jobs that it could take.
//! Whatever comes in, the jobs that go before a job are at most eight times as many as the older ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosspoint_contracts::request::Priority;

use crate::id::Seq;
use crate::job::Job;

/// Every turn of an agent that is a multiple of this goes to the oldest job, whatever its priority.
pub const OLDEST_EVERY: u64 = 8;

/// Where a job may go: to any agent that takes the work, to agents of one type, or to one agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The kind of work.
    pub work: Arc<str>,
    /// The one agent that the job must go to: the caller named it, or the job stays with it.
    pub pinned: Option<Arc<str>>,
    /// The type of agent that the job is addressed to.
    pub addressed: Option<Arc<str>>,
}

/// Which jobs of one work an agent takes: those for any agent, or those for this one.
#[derive(Clone, Debug)]
pub struct Takes {
    /// The first of the targets in their order. The others differ from it only in what they are addressed to.
    first: Target,
    agent_type: Option<Arc<str>>,
}

/// All jobs that wait for an agent.
#[derive(Debug, Default)]
pub struct Queues {
    waiting: BTreeMap<Target, Lanes>,
}

/// Jobs by their priority.
type Lanes = [BTreeSet<Seq>; Priority::ALL.len()];

impl Target {
    /// Returns where this job may go.
    pub fn of(job: &Job) -> Target {
        let request = &job.request;
        Target { work: request.work.clone(), pinned: job.bound_to().cloned(), addressed: request.addressed.clone() }
    }
}

/// Whether an agent of this type takes work that is addressed like this (MSG-18). An agent without a type takes any
/// work, and work that names no type goes to any agent.
pub fn is_of_type(agent_type: Option<&str>, addressed: Option<&str>) -> bool {
    match (agent_type, addressed) {
        (Some(own), Some(wanted)) => own == wanted,
        (None, _) | (_, None) => true,
    }
}

impl Takes {
    /// Returns what an agent takes of this work: jobs for any agent, and jobs that must go to it.
    pub fn of(work: &Arc<str>, name: &Arc<str>, agent_type: Option<&Arc<str>>) -> [Takes; 2] {
        let agent_type = agent_type.cloned();
        [None, Some(name.clone())].map(|pinned| Takes {
            first: Target { work: work.clone(), pinned, addressed: None },
            agent_type: agent_type.clone(),
        })
    }

    /// Whether the agent takes jobs that may go there.
    pub fn takes(&self, target: &Target) -> bool {
        self.is_near(target) && is_of_type(self.agent_type.as_deref(), target.addressed.as_deref())
    }

    fn is_near(&self, target: &Target) -> bool {
        target.work == self.first.work && target.pinned == self.first.pinned
    }
}

impl Queues {
    /// Adds a job. An older job that comes back goes before younger ones.
    pub fn add(&mut self, job: &Job) {
        self.waiting.entry(Target::of(job)).or_default()[job.request.priority as usize].insert(job.seq());
    }

    /// Removes a job.
    pub fn remove(&mut self, job: &Job) {
        let target = Target::of(job);
        let Some(lanes) = self.waiting.get_mut(&target) else { return };
        lanes[job.request.priority as usize].remove(&job.seq());
        if lanes.iter().all(BTreeSet::is_empty) {
            self.waiting.remove(&target);
        }
    }

    /// Returns the job that goes next among those that an agent takes. `turn` counts the turns of the agent that asks.
    pub fn next<'t>(&self, taken: impl Iterator<Item = &'t Takes>, turn: u64) -> Option<Seq> {
        let lanes = taken.flat_map(|takes| self.lanes(takes));
        let heads = lanes
            .flat_map(|lanes| lanes.iter().enumerate().filter_map(|(priority, lane)| Some((priority, *lane.first()?))));
        let oldest_goes = turn % OLDEST_EVERY == OLDEST_EVERY - 1;
        let order = |&(priority, seq): &(usize, Seq)| (if oldest_goes { 0 } else { usize::MAX - priority }, seq);
        heads.min_by_key(order).map(|(_, seq)| seq)
    }

    /// Returns the jobs that an agent takes, by priority. Targets that differ only in their type are neighbours.
    fn lanes<'q>(&'q self, takes: &'q Takes) -> impl Iterator<Item = &'q Lanes> {
        let near = self.waiting.range(&takes.first..).take_while(|(target, _)| takes.is_near(target));
        near.filter(|(target, _)| takes.takes(target)).map(|(_, lanes)| lanes)
    }

    /// Returns how many jobs with the same target are older or of a higher priority.
    pub fn ahead_of(&self, job: &Job) -> usize {
        let Some(lanes) = self.waiting.get(&Target::of(job)) else { return 0 };
        let own = job.request.priority as usize;
        let higher: usize = lanes.iter().skip(own + 1).map(BTreeSet::len).sum();
        higher + lanes[own].range(..job.seq()).count()
    }

    /// Returns for each work that jobs wait for: its name, how many jobs wait, and the oldest of them. The other jobs
    /// are not looked at.
    pub fn works(&self) -> Vec<(Arc<str>, usize, Seq)> {
        let mut works: BTreeMap<&Arc<str>, (usize, Seq)> = BTreeMap::new();
        for (target, lanes) in &self.waiting {
            let jobs: usize = lanes.iter().map(BTreeSet::len).sum();
            let Some(oldest) = lanes.iter().filter_map(BTreeSet::first).min() else { continue };
            let work = works.entry(&target.work).or_insert((0, *oldest));
            *work = (work.0 + jobs, work.1.min(*oldest));
        }
        works.into_iter().map(|(work, (jobs, oldest))| (work.clone(), jobs, oldest)).collect()
    }

    /// Returns how many of the jobs that wait an agent takes.
    pub fn len<'t>(&self, taken: impl Iterator<Item = &'t Takes>) -> usize {
        let lanes = taken.flat_map(|takes| self.lanes(takes));
        lanes.map(|lanes| lanes.iter().map(BTreeSet::len).sum::<usize>()).sum()
    }
}
