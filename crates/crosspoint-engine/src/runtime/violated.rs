//! Which jobs have broken rules on record.
//!
//! Hardly any job has one, and every answer about a job that has ended shows them. So that not every answer costs a
//! read of the store, the jobs with broken rules are remembered here, as far back as there is room.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::published::lock;
use crate::core::Batch;
use crate::id::Seq;

/// Most jobs that are remembered. For older ones the store is asked.
const REMEMBERED_MAX: usize = 10_000;

/// The jobs with broken rules.
#[derive(Default)]
pub(super) struct Violated(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The first job from which on all are known; `None` until one was accepted since the start.
    from: Option<Seq>,
    jobs: BTreeSet<Seq>,
}

impl Violated {
    /// Notes what a batch says, before any caller learns of it.
    pub(super) fn released(&self, batch: &Batch) {
        let accepted = batch.jobs.iter().find(|(_, written)| written.accepted.is_some()).map(|(seq, _)| *seq);
        if accepted.is_none() && batch.violations.is_empty() {
            return;
        }
        let mut known = lock(&self.0);
        known.from = known.from.or(accepted);
        known.jobs.extend(batch.violations.iter().map(|(seq, ..)| *seq));
        while known.jobs.len() > REMEMBERED_MAX {
            let oldest = known.jobs.pop_first();
            known.from = known.from.max(oldest.map(|oldest| Seq(oldest.0 + 1)));
        }
    }

    /// Whether the store may have a broken rule of this job.
    pub(super) fn may_have(&self, seq: Seq) -> bool {
        let known = lock(&self.0);
        known.from.is_none_or(|from| seq < from) || known.jobs.contains(&seq)
    }
}
