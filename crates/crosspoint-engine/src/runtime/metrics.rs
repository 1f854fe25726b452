//! Counts jobs, attempts and commits since the start, for the server's monitoring.
//!
//! The committing thread and the releasing task see everything that happens, so they count, and the store is never
//! asked. The thread only adds to atomics. The task takes one lock a batch. Only a scrape takes the same lock, for as
//! long as it takes to copy some numbers. What can be seen in the present state, such as queues and breakers, is not
//! counted but read when it is needed.
//!
//! A series has the names of works and agents, and those may come and go at run time. So there is a limit on how many
//! names are counted separately, and all others count as `other`. Nothing that a caller wrote is ever a name here: work
//! that no agent takes is refused before it is counted.

mod histogram;
mod names;
mod numbers;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::time::Time;

use super::published::lock;
use crate::core::{Batch, Spec, Written};
use crate::event::What;
use crate::id::Seq;
use crate::job::{self, Job};
pub use histogram::Distribution;
use histogram::Histogram;
use names::{Name, Names};
pub use numbers::{AttemptResult, Commits, Ended, Load, Numbers, Queue};

/// Most works, and most agents, that are counted separately.
pub const NAMES_MAX: usize = 200;

/// Most combinations of work, agent and outcome that are counted separately: all of them could be half a million.
pub const SERIES_MAX: usize = 4_000;

/// Bounds for the times of jobs and attempts: from one millisecond to one hour, in seconds.
const TIMES: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];

/// Bounds for the times of commits, in seconds: a disk syncs in a tenth of a millisecond or in some seconds.
const COMMIT_TIMES: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

const BATCH_SIZES: &[f64] =
    &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];

/// Everything that is counted.
pub(super) struct Metrics {
    commands: Histogram,
    commit_time: Histogram,
    sync_time: Histogram,
    commits_failed: AtomicU64,
    counted: Mutex<Counted>,
}

/// What the releasing task counts.
struct Counted {
    works: Names,
    agents: Names,
    accepted: BTreeMap<Name, u64>,
    ended: BTreeMap<(Name, Name, Way), u64>,
    attempts: BTreeMap<(Name, Way), u64>,
    attempt_times: BTreeMap<Name, Histogram>,
    job_times: BTreeMap<Name, Histogram>,
    violations: BTreeMap<Level, u64>,
    /// Attempts under way.
    begun: BTreeMap<Seq, Begun>,
}

/// How a job or an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Completed,
    Cancelled,
    Failed(Failure),
    /// By the orchestrator's own end, or because the attempt was withdrawn; only attempts end so.
    Interrupted,
}

/// An attempt under way.
#[derive(Clone, Copy)]
struct Begun {
    agent: Name,
    /// When it began; `None` for an attempt that was under way before the start.
    at: Option<Time>,
}

impl Metrics {
    /// Makes the counts. Configured names are counted separately before any that come later.
    pub(super) fn new(agents: &[Spec]) -> Metrics {
        let mut counted = Counted::new(NAMES_MAX);
        for spec in agents {
            counted.agents.of(&spec.name);
            for work in &spec.works {
                counted.works.of(work);
            }
        }
        Metrics {
            commands: Histogram::new(BATCH_SIZES),
            commit_time: Histogram::new(COMMIT_TIMES),
            sync_time: Histogram::new(COMMIT_TIMES),
            commits_failed: AtomicU64::new(0),
            counted: Mutex::new(counted),
        }
    }

    /// Counts a commit that is on disk.
    pub(super) fn committed(&self, commands: usize, took: Duration, sync: Duration) {
        self.commands.observe(commands as f64);
        self.commit_time.observe(took.as_secs_f64());
        self.sync_time.observe(sync.as_secs_f64());
    }

    /// Counts a commit that failed.
    pub(super) fn commit_failed(&self) {
        self.commits_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the attempts that were under way before the start; most of them end with it.
    pub(super) fn took_up<'j>(&self, jobs: impl Iterator<Item = &'j Arc<Job>>) {
        let mut counted = lock(&self.counted);
        for job in jobs.filter(|job| job.running().is_some()) {
            let Some(agent) = &job.agent else { continue };
            let agent = counted.agents.of(agent);
            counted.begun.entry(job.seq()).or_insert(Begun { agent, at: None });
        }
    }

    /// Counts what became of jobs in one batch.
    pub(super) fn released(&self, batch: &Batch) {
        let mut counted = lock(&self.counted);
        for (seq, written) in &batch.jobs {
            counted.add(*seq, written);
        }
        for (_, _, violation) in &batch.violations {
            *counted.violations.entry(violation.level).or_default() += 1;
        }
    }
}

impl Counted {
    fn new(names_max: usize) -> Counted {
        Counted {
            works: Names::new(names_max),
            agents: Names::new(names_max),
            accepted: BTreeMap::new(),
            ended: BTreeMap::new(),
            attempts: BTreeMap::new(),
            attempt_times: BTreeMap::new(),
            job_times: BTreeMap::new(),
            violations: BTreeMap::from([(Level::Error, 0), (Level::Warning, 0)]),
            begun: BTreeMap::new(),
        }
    }

    fn add(&mut self, seq: Seq, written: &Written) {
        let job = &*written.job;
        if written.accepted.is_some() {
            let work = self.works.of(&job.request.work);
            *self.accepted.entry(work).or_default() += 1;
        }
        for entry in &written.entries {
            match &entry.what {
                What::Started { agent, .. } => {
                    let begun = Begun { agent: self.agents.of(agent), at: Some(entry.at) };
                    self.begun.insert(seq, begun);
                }
                What::Retrying { failure, .. } => self.attempt_ended(seq, Way::Failed(*failure), entry.at),
                What::Interrupted { .. } => self.attempt_ended(seq, Way::Interrupted, entry.at),
                What::Ended(outcome) => {
                    self.attempt_ended(seq, Way::of(outcome), entry.at);
                    self.job_ended(job, outcome);
                }
                What::Accepted
                | What::Progress(_)
                | What::Output { .. }
                | What::Asked { .. }
                | What::Answered { .. }
                | What::Step { .. } => {}
            }
        }
    }

    /// Counts the end of an attempt. A job can also end while no agent has it; then no attempt ends.
    fn attempt_ended(&mut self, seq: Seq, way: Way, at: Time) {
        let Some(begun) = self.begun.remove(&seq) else { return };
        *self.attempts.entry((begun.agent, way)).or_default() += 1;
        if let Some(began_at) = begun.at {
            let times = self.attempt_times.entry(begun.agent).or_insert_with(|| Histogram::new(TIMES));
            times.observe(at.since(began_at).as_secs_f64());
        }
    }

    fn job_ended(&mut self, job: &Job, outcome: &job::Ending) {
        let work = self.works.of(&job.request.work);
        let agent = job.agent.as_ref().map_or(Name::NONE, |agent| self.agents.of(agent));
        let way = Way::of(outcome);
        let mut series = (work, agent, way);
        if self.ended.len() >= SERIES_MAX && !self.ended.contains_key(&series) {
            series = (Name::OTHER, Name::OTHER, way);
        }
        *self.ended.entry(series).or_default() += 1;
        let times = self.job_times.entry(work).or_insert_with(|| Histogram::new(TIMES));
        times.observe(outcome.at.since(job.request.accepted_at).as_secs_f64());
    }
}

impl Way {
    fn of(outcome: &job::Ending) -> Way {
        match (outcome.status, outcome.failure()) {
            (Status::Completed, _) => Way::Completed,
            (Status::Cancelled, _) => Way::Cancelled,
            (Status::Failed, Some(failure)) => Way::Failed(failure),
            (Status::Failed, None) => Way::Failed(Failure::Internal),
        }
    }
}

#[cfg(test)]
mod tests;
