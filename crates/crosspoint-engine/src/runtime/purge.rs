//! When jobs that need no longer be kept are removed: one step after a round, then a pause of twice the length of the
//! step.
//!
//! So a commit waits for one step at most, and however much there is to remove, most of the time is left for commits.

use std::time::{Duration, Instant};

use crosspoint_contracts::time::Time;

use crate::id::Seq;
use crate::keys::Hash;
use crate::retention::Ended;
use crate::store::{Budget, Fault, Store};

/// How many times as long as a step the pause after it is.
const PAUSES: u32 = 2;

/// Longest pause between two steps.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Pause before the next try after a step that failed.
const FAILED_PAUSE: Duration = Duration::from_secs(60);

/// Most jobs that are named to the store at a time. The store itself decides how many of them a step removes.
const NAMED_MAX: usize = 256;

pub(super) struct Purger {
    /// Jobs that are due and have not been removed.
    next: Vec<Seq>,
    /// Whether events of removed jobs may be left, also from before the start.
    leftover: bool,
    rests_until: Instant,
    /// Whether there is nothing to do, or trying is useless.
    idle: bool,
    /// Whether there are more jobs than the rule allows, all of them too young to be removed.
    overfull: bool,
}

/// What came of looking for a step to take.
pub(super) enum Stepped {
    /// A step was taken.
    Done(Step),
    /// No step was due, or it has to be tried again.
    Idle,
    /// The store does not let anything be removed, and never will.
    GaveUp,
    /// The store belongs to another process.
    Lost(Fault),
}

/// What a step has removed.
pub(super) struct Step {
    pub(super) jobs: u64,
    pub(super) keys: Vec<(Hash, Seq)>,
}

impl Purger {
    /// Makes a purger. A process that only visits a store removes nothing from it.
    pub(super) fn new(is_server: bool) -> Purger {
        Purger { next: Vec::new(), leftover: true, rests_until: Instant::now(), idle: !is_server, overfull: false }
    }

    /// Forgets the jobs that were due: the record of ended jobs was rebuilt and holds all of them again.
    pub(super) fn begin_anew(&mut self) {
        self.next.clear();
        self.leftover = true;
    }

    /// Returns how long there is nothing to do; `None` if there is nothing to do before a job ends.
    pub(super) fn wait_time(&self, ended: &Ended, now: Time) -> Option<Duration> {
        if self.idle {
            return None;
        }
        let rest = self.rests_until.saturating_duration_since(Instant::now());
        if self.leftover || !self.next.is_empty() || ended.is_due(now) {
            return Some(rest);
        }
        Some(ended.alarm()?.since(now).max(rest))
    }

    /// Whether there are more jobs than the rule allows, all of them too young to be removed.
    pub(super) fn is_overfull(&self) -> bool {
        self.overfull
    }

    /// Logs once that there are more jobs than the rule allows, and once that there no longer are.
    fn look_at_number(&mut self, ended: &Ended, now: Time) {
        let overfull = !self.idle && ended.is_overfull(now);
        if overfull && !self.overfull {
            let jobs = ended.len();
            tracing::warn!(
                jobs,
                "more jobs are kept than [store] retention_jobs, because they ended too recently to go"
            );
        } else if self.overfull && !overfull {
            tracing::info!("no more jobs are kept than [store] retention_jobs");
        }
        self.overfull = overfull;
    }

    /// Takes a step, if one is due.
    pub(super) fn step(&mut self, store: &mut Store, ended: &mut Ended, now: Time) -> Stepped {
        self.look_at_number(ended, now);
        let began = Instant::now();
        if self.idle || began < self.rests_until {
            return Stepped::Idle;
        }
        if self.next.is_empty() {
            self.next = ended.take(now, NAMED_MAX);
        }
        if self.next.is_empty() && !self.leftover {
            return Stepped::Idle;
        }
        match store.purge(&self.next, Budget::STEP) {
            // No job was named, and no events are left.
            Ok(purged) if purged.rows == 0 && purged.jobs == 0 => {
                self.leftover = purged.leftover;
                Stepped::Idle
            }
            Ok(purged) => {
                self.next.drain(..purged.jobs);
                self.leftover = purged.leftover;
                purged.kept.iter().for_each(|(stage, job)| ended.hold(*stage, *job));
                let took = began.elapsed();
                self.rests_until = began + took + (took * PAUSES).min(PAUSE_MAX);
                Stepped::Done(Step { jobs: (purged.jobs - purged.kept.len()) as u64, keys: purged.keys })
            }
            Err(fault @ Fault::Lost { .. }) => Stepped::Lost(fault),
            Err(fault) => self.failed(&fault),
        }
    }

    /// Handles a step that failed, of which nothing has happened. Work goes on: the next commit finds out whether it
    /// can be written.
    fn failed(&mut self, fault: &Fault) -> Stepped {
        self.idle = matches!(fault, Fault::Damaged { .. } | Fault::Unwritable { .. });
        self.rests_until = Instant::now() + FAILED_PAUSE;
        if self.idle {
            tracing::error!(error = %fault, "old jobs cannot be removed, and stay; crosspoint store check says more");
            return Stepped::GaveUp;
        }
        tracing::warn!(error = %fault, "old jobs cannot be removed at present");
        Stepped::Idle
    }
}
