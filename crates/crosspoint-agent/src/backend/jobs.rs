//! The jobs that are in memory: all that have not ended, and the last of those that have.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crosspoint_exchange::backend::Followed;
use crosspoint_exchange::refusal::{Limit, Refusal};
use uuid::Uuid;

use super::Name;
use crate::record::{Asked, Job};

/// Most jobs that have not ended, and most bytes of the documents that they came as.
const LIVE_MAX: usize = 10_000;
const LIVE_BYTES_MAX: usize = 256 << 20;

/// Most jobs that have ended and are in memory, and most bytes of them: those that repeat a request soon are answered
/// without a look at the disk.
const ENDED_MAX: usize = 1_000;
const ENDED_BYTES_MAX: usize = 64 << 20;

/// Most names that one job gets from repeats of its request, of at most 512 bytes each. A caller that gives each repeat
/// a new name would fill memory and disk without any work being done.
pub(super) const FURTHER_NAMES_MAX: usize = 64;

/// The job has [`FURTHER_NAMES_MAX`] further names already.
pub(super) struct TooManyNames;

#[derive(Default)]
pub(super) struct Jobs {
    pub(super) named: BTreeMap<Name, Job>,
    pub(super) by_id: BTreeMap<Uuid, Job>,
    /// Names that repeats of requests came with, by their jobs.
    further: BTreeMap<Uuid, Vec<Name>>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<Ended>,
    ended_bytes: usize,
    live: usize,
    live_bytes: usize,
    /// Whether no new work is taken any more: the agent stops.
    is_closed: bool,
}

struct Ended {
    id: Uuid,
    bytes: usize,
}

impl Jobs {
    /// Whether all jobs have ended.
    pub(super) fn are_ended(&self) -> bool {
        self.live == 0
    }

    /// Takes no new job from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns why no other job is taken, if none is.
    pub(super) fn full(&self, asked: &Asked) -> Option<Refusal> {
        if self.is_closed {
            return Some(Refusal::stopping());
        }
        let has_room = self.live_bytes + asked.document.0.len() <= LIVE_BYTES_MAX;
        (self.live >= LIVE_MAX || !has_room).then(|| Refusal::full(Limit::Jobs, LIVE_MAX))
    }

    /// Adds a job that has not ended.
    pub(super) fn add(&mut self, asked: &Arc<Asked>, job: &Job) {
        self.live += 1;
        self.live_bytes += asked.document.0.len();
        self.by_id.insert(asked.id, job.clone());
        for name in &asked.names {
            self.named.insert(name.clone(), job.clone());
        }
    }

    /// Notes that a job has ended, and forgets those that ended long ago. They are given back, so that their memory is
    /// freed when others may look at the jobs again.
    #[must_use]
    pub(super) fn end(&mut self, job: &Job) -> Vec<Job> {
        let now = job.now();
        let document_bytes = now.asked.document.0.len();
        let step = now.progress.as_ref().and_then(|progress| progress.step.as_ref());
        let step_bytes = step.map_or(0, |step| step.get().len());
        let bytes = document_bytes + step_bytes + Job::snapshot(&now).outcome_bytes();
        self.live -= 1;
        self.live_bytes -= document_bytes;
        self.ended_bytes += bytes;
        self.ended.push_back(Ended { id: now.asked.id, bytes });
        let mut forgotten = Vec::new();
        while (self.ended.len() > ENDED_MAX || self.ended_bytes > ENDED_BYTES_MAX)
            && let Some(oldest) = self.ended.pop_front()
        {
            self.ended_bytes -= oldest.bytes;
            forgotten.extend(self.forget(oldest.id));
        }
        forgotten
    }

    /// Makes names that a repeat of its request came with names of a job.
    pub(super) fn claim(&mut self, job: &Job, names: &[Name]) -> Result<(), TooManyNames> {
        if names.is_empty() {
            return Ok(());
        }
        let further = self.further.entry(job.now().asked.id).or_default();
        if further.len() + names.len() > FURTHER_NAMES_MAX {
            return Err(TooManyNames);
        }
        further.extend_from_slice(names);
        self.named.extend(names.iter().map(|name| (name.clone(), job.clone())));
        Ok(())
    }

    /// Gives names free that could not be kept.
    pub(super) fn unclaim(&mut self, job: &Job, names: &[Name]) {
        if let Some(further) = self.further.get_mut(&job.now().asked.id) {
            further.retain(|name| !names.contains(name));
        }
        names.iter().for_each(|name| self.unname(name, job));
    }

    fn forget(&mut self, id: Uuid) -> Option<Job> {
        let job = self.by_id.remove(&id)?;
        let further = self.further.remove(&id).unwrap_or_default();
        for name in job.now().asked.names.iter().chain(&further) {
            self.unname(name, &job);
        }
        Some(job)
    }

    fn unname(&mut self, name: &Name, job: &Job) {
        // The same request may have been done again under this name.
        if self.named.get(name).is_some_and(|named| named.is(job)) {
            self.named.remove(name);
        }
    }
}
