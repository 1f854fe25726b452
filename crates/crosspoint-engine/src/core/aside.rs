//! Jobs that are set aside because their changes cannot be written, and how they are released.

use std::sync::Arc;

use crosspoint_contracts::time::Time;

use super::{Batch, Core, Effect, Reply};
use crate::id::{JobId, Seq};
use crate::job::State;
use crate::machine::{Action, End, Event};

impl Core {
    /// Sets a job aside because its changes cannot be written. It stays as it is on disk until an operator releases or
    /// cancels it, and other jobs go on. Must be called once, and before anything else of the job's batch.
    pub fn set_aside(&mut self, seq: Seq, now: Time, batch: &mut Batch) {
        let Some(live) = self.jobs.get(&seq).filter(|live| live.job.aside.is_none()) else { return };
        let mut job = (*live.job).clone();
        self.unwatch(seq);
        self.count(seq, -1);
        if let Some(running) = job.running() {
            let action = Action::Stop { attempt: running.attempt };
            batch.effects.push(Effect::Job { job: Arc::new(job.clone()), action });
        }
        job.aside = Some(now);
        // A change of the job's clocks after a jump cannot be written either.
        batch.jobs.remove(&seq);
        batch.aside.insert(seq, Some(now));
        batch.touched.insert(seq);
        if let Some(live) = self.jobs.get_mut(&seq) {
            live.job = Arc::new(job);
        }
    }

    /// Lets a job that was set aside or poisoned be begun again: an operator has looked at it.
    pub(super) fn release(&mut self, id: JobId, now: Time, batch: &mut Batch) -> Reply {
        let seq = id.seq();
        let Some(job) = self.job(seq).filter(|job| job.id() == id).cloned() else { return Reply::NotLive };
        if job.aside.is_none() {
            return match self.apply_event(seq, Event::Release, now, batch) {
                Ok(job) => Reply::Job(job),
                Err(refused) => Reply::Refused(refused),
            };
        }
        if let Some(live) = self.jobs.get_mut(&seq) {
            let job = Arc::make_mut(&mut live.job);
            job.aside = None;
            // The clocks in its row may be from before a jump, and any pause was long enough.
            job.begin_anew(now);
            job.updated_at = now;
            if let State::Retrying { until, .. } = &mut job.state {
                *until = now;
            }
        }
        batch.aside.insert(seq, None);
        self.count(seq, 1);
        self.watch(seq);
        if self.is_driven(seq) {
            // The job's attempt was stopped when the job was set aside.
            let _ = self.apply_event(seq, Event::Interrupted(End::Clean), now, batch);
        }
        if let Some(job) = self.job(seq).cloned() {
            batch.rewritten(&job);
        }
        batch.touched.insert(seq);
        self.job(seq).cloned().map_or(Reply::NotLive, Reply::Job)
    }
}
