//! Jobs that wait for an agent, and which of them goes next.
//!
//! An agent goes round the callers that have jobs for it, so that the backlog of one caller does not hold up the work
//! of another. Of one caller the highest priority goes first, and within it the oldest job. That alone would let a low
//! job wait for ever while higher ones keep coming. So every eighth turn of an agent goes to the oldest of all jobs
//! that it could take. Whatever comes in, the jobs that go before a job are at most eight times as many as the older
//! ones. Without tokens all callers are the same caller.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crosspoint_contracts::request::Priority;

use crate::id::Seq;
use crate::job::Job;

/// Every turn of an agent that is a multiple of this goes to the oldest job, whatever its priority and its caller.
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

/// The turn of an agent that has room for a job.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    /// How many turns the agent has had before.
    pub number: u64,
    /// The caller whose job the agent was given last.
    pub last: &'a str,
    /// The callers whose jobs the agent is not given.
    pub barred: Vec<&'a str>,
}

/// All jobs that wait for an agent.
#[derive(Debug, Default)]
pub struct Queues {
    waiting: BTreeMap<Target, Waiting>,
}

/// The jobs that wait with one target.
#[derive(Debug, Default)]
struct Waiting {
    callers: BTreeMap<Arc<str>, Lanes>,
    /// The same jobs by their age: the oldest is found without looking at every caller.
    all: BTreeSet<Seq>,
}

/// The jobs of one caller by their priority.
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

impl Waiting {
    fn add(&mut self, job: &Job) {
        let lanes = self.callers.entry(job.request.caller.clone()).or_default();
        lanes[job.request.priority as usize].insert(job.seq());
        self.all.insert(job.seq());
    }

    fn remove(&mut self, job: &Job) {
        self.all.remove(&job.seq());
        let Some(lanes) = self.callers.get_mut(&job.request.caller) else { return };
        lanes[job.request.priority as usize].remove(&job.seq());
        if lanes.iter().all(BTreeSet::is_empty) {
            self.callers.remove(&job.request.caller);
        }
    }

    /// Returns the oldest job. Only where some callers are barred are the others looked at one by one.
    fn oldest(&self, barred: &[&str]) -> Option<Seq> {
        if barred.is_empty() {
            return self.all.first().copied();
        }
        let others = self.callers.iter().filter(|(caller, _)| !barred.contains(&&***caller));
        others.flat_map(|(_, lanes)| lanes.iter().filter_map(BTreeSet::first)).min().copied()
    }

    /// Returns the caller that is next after this one, and whether a new round begins with it.
    fn caller_after(&self, last: &str, barred: &[&str]) -> Option<(bool, &Arc<str>)> {
        let later = self.callers.range::<str, _>((Bound::Excluded(last), Bound::Unbounded)).map(|next| (false, next.0));
        let first = self.callers.range::<str, _>((Bound::Unbounded, Bound::Included(last))).map(|next| (true, next.0));
        later.chain(first).find(|(_, caller)| !barred.contains(&&***caller))
    }
}

/// Returns how many jobs of a caller go before this one of its jobs, which waits among them.
fn ahead_in(lanes: &Lanes, job: &Job) -> usize {
    let own = job.request.priority as usize;
    let higher: usize = lanes.iter().skip(own + 1).map(BTreeSet::len).sum();
    higher + lanes[own].range(..job.seq()).count()
}

impl Queues {
    /// Adds a job. An older job that comes back goes before younger ones.
    pub fn add(&mut self, job: &Job) {
        self.waiting.entry(Target::of(job)).or_default().add(job);
    }

    /// Removes a job.
    pub fn remove(&mut self, job: &Job) {
        let target = Target::of(job);
        let Some(waiting) = self.waiting.get_mut(&target) else { return };
        waiting.remove(job);
        if waiting.all.is_empty() {
            self.waiting.remove(&target);
        }
    }

    /// Returns the job that goes next among those that an agent takes.
    pub fn next<'t>(&self, taken: impl Iterator<Item = &'t Takes> + Clone, turn: &Turn<'_>) -> Option<Seq> {
        let waiting = taken.flat_map(|takes| self.near(takes));
        if turn.number % OLDEST_EVERY == OLDEST_EVERY - 1 {
            return waiting.filter_map(|waiting| waiting.oldest(&turn.barred)).min();
        }
        let (_, caller) = waiting.clone().filter_map(|waiting| waiting.caller_after(turn.last, &turn.barred)).min()?;
        let lanes = waiting.filter_map(|waiting| waiting.callers.get(caller));
        let heads = lanes
            .flat_map(|lanes| lanes.iter().enumerate().filter_map(|(priority, lane)| Some((priority, *lane.first()?))));
        heads.min_by_key(|&(priority, seq)| (usize::MAX - priority, seq)).map(|(_, seq)| seq)
    }

    /// Returns the jobs that an agent takes, by target. Targets that differ only in their type are neighbours.
    fn near<'q>(&'q self, takes: &'q Takes) -> impl Iterator<Item = &'q Waiting> + Clone {
        let near = self.waiting.range(&takes.first..).take_while(|(target, _)| takes.is_near(target));
        near.filter(|(target, _)| takes.takes(target)).map(|(_, waiting)| waiting)
    }

    /// Returns how many jobs with the same target go before this one, if no others come and every turn goes round the
    /// callers.
    pub fn ahead_of(&self, job: &Job) -> usize {
        let Some(waiting) = self.waiting.get(&Target::of(job)) else { return 0 };
        let own = waiting.callers.get(&job.request.caller).map_or(0, |lanes| ahead_in(lanes, job));
        let others = waiting.callers.iter().filter(|(caller, _)| **caller != job.request.caller);
        let of_other = |lanes: &Lanes| lanes.iter().map(BTreeSet::len).sum::<usize>().min(own + 1);
        own + others.map(|(_, lanes)| of_other(lanes)).sum::<usize>()
    }

    /// Returns for each work that jobs wait for: its name, how many jobs wait, and the oldest of them. The other jobs
    /// are not looked at.
    pub fn works(&self) -> Vec<(Arc<str>, usize, Seq)> {
        let mut works: BTreeMap<&Arc<str>, (usize, Seq)> = BTreeMap::new();
        for (target, waiting) in &self.waiting {
            let Some(oldest) = waiting.all.first() else { continue };
            let work = works.entry(&target.work).or_insert((0, *oldest));
            *work = (work.0 + waiting.all.len(), work.1.min(*oldest));
        }
        works.into_iter().map(|(work, (jobs, oldest))| (work.clone(), jobs, oldest)).collect()
    }

    /// Returns how many of the jobs that wait an agent takes.
    pub fn len<'t>(&self, taken: impl Iterator<Item = &'t Takes>) -> usize {
        taken.flat_map(|takes| self.near(takes)).map(|waiting| waiting.all.len()).sum()
    }
}
