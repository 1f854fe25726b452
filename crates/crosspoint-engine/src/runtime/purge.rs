//! When jobs that need no longer be kept are removed: one step after a round, and then a pause that is longer than the step was.
//!
//! So whoever wants to commit waits for one step at most, and however much there is to remove, most of the time is theirs.

use std::time::{Duration, Instant};

use crate::id::Seq;
use crate::keys::Hash;
use crate::retention::Ended;
use crate::store::{Budget, Fault, Store};
use crate::time::Time;

/// After a step there is none for so many times as long as it took.
const PAUSES: u32 = 2;

/// A pause is no longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// After a step that failed the next is tried so much later.
const FAILED_PAUSE: Duration = Duration::from_secs(60);

/// So many jobs are named to the store at a time; how many of them a step removes it decides itself.
const NAMED_MAX: usize = 256;

pub(super) struct Purger {
    /// Jobs that are due and have yet to go.
    next: Vec<Seq>,
    /// Whether events of jobs that are gone may be left, as they may be from before we were started.
    leftover: bool,
    rests_until: Instant,
    /// Whether there is nothing to do, or no use in trying.
    idle: bool,
    /// Whether there are more jobs than the rule wants, all of them too young to go.
    overfull: bool,
}

/// Whether there was a step.
pub(super) enum Stepped {
    /// There was.
    Done(Step),
    /// None was due, or it has to be tried again.
    Idle,
    /// The store does not let anything be removed, and never will.
    GaveUp,
    /// The store is another's.
    Lost(Fault),
}

/// What a step came to.
pub(super) struct Step {
    pub(super) jobs: u64,
    pub(super) keys: Vec<(Hash, Seq)>,
}

impl Purger {
    /// What only visits a store removes nothing from it.
    pub(super) fn new(is_server: bool) -> Purger {
        Purger { next: Vec::new(), leftover: true, rests_until: Instant::now(), idle: !is_server, overfull: false }
    }

    /// Forgets what was due: whoever knows which jobs have ended has been told of all of them again.
    pub(super) fn begin_anew(&mut self) {
        self.next.clear();
        self.leftover = true;
    }

    /// How long there is nothing to do; `None` is until something ends.
    pub(super) fn patience(&self, ended: &Ended, now: Time) -> Option<Duration> {
        if self.idle {
            return None;
        }
        let rest = self.rests_until.saturating_duration_since(Instant::now());
        if self.leftover || !self.next.is_empty() || ended.is_due(now) {
            return Some(rest);
        }
        Some(ended.alarm()?.since(now).max(rest))
    }

    /// Whether there are more jobs than the rule wants, all of them too young to go.
    pub(super) fn is_overfull(&self) -> bool {
        self.overfull
    }

    /// Says once that the number cannot be kept, and once that it can again.
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
            // Nothing was named, and nothing is left.
            Ok(purged) if purged.rows == 0 && purged.jobs == 0 => {
                self.leftover = purged.leftover;
                Stepped::Idle
            }
            Ok(purged) => {
                self.next.drain(..purged.jobs);
                self.leftover = purged.leftover;
                let took = began.elapsed();
                self.rests_until = began + took + (took * PAUSES).min(PAUSE_MAX);
                Stepped::Done(Step { jobs: purged.jobs as u64, keys: purged.keys })
            }
            Err(fault @ Fault::Lost { .. }) => Stepped::Lost(fault),
            Err(fault) => self.failed(&fault),
        }
    }

    /// Nothing of the step has happened. Work goes on: whether that can be committed is found out by whoever tries.
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
