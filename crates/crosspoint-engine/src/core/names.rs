//! Further names of jobs (ALL-1).
//!
//! A request may have two names: its `Idempotency-Key`, and its caller's id for the task. A repeat that is found by one
//! of them makes the other one a name of the same job too. Otherwise the same request under that name alone would be
//! new work, and its caller would not find the job that it was told of.

use super::{Batch, Core, Rejected, Repeats, Reply, Submission};
use crate::keys::{Hash, Other, TooManyNames};

impl Core {
    /// Claims the names of a repeat that the job lacks. The reply names another job where it may have one of them.
    /// `None` where the request repeats nothing, or what it repeats has been removed since: then it is a new job.
    pub(super) fn claim_names(&mut self, submission: &Submission, batch: &mut Batch) -> Option<Reply> {
        let Repeats { seq, names, had } = submission.repeats.as_ref()?;
        if !self.keys.has(submission.hashes, *seq) {
            return None;
        }
        // Another repeat was faster, and may have come with the same names.
        if self.keys.further(*seq) != *had {
            return Some(Reply::Known(*seq));
        }
        let mut others = submission.others.clone();
        others.push(Other { seq: *seq, had: *had });
        if let Some(other) = names.iter().find_map(|name| self.keys.find(name.hash, &others)) {
            return Some(Reply::MayBeOf(other));
        }
        let hashes: Vec<Hash> = names.iter().map(|name| name.hash).collect();
        if let Err(TooManyNames) = self.keys.claim_further(&hashes, *seq) {
            return Some(Reply::Rejected(Rejected::TooManyNames));
        }
        batch.names.extend(names.iter().map(|name| (*seq, name.clone())));
        Some(Reply::Claimed)
    }
}
