//! Jobs that are set aside, because what happens to them cannot be written, and letting them go on.

use std::sync::Arc;

use super::{Batch, Core, Effect, Reply};
use crate::id::{JobId, Seq};
use crate::job::State;
use crate::machine::{Action, End, Event};
use crate::time::Time;

impl Core {
    /// What happens to this job cannot be written: it stays as it is on disk until an operator says more, and others go on. Once, and
    /// before anything else of its batch.
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
        // Nor that the clock has jumped.
        batch.jobs.remove(&seq);
        batch.aside.insert(seq, Some(now));
        batch.touched.insert(seq);
        if let Some(live) = self.jobs.get_mut(&seq) {
            live.job = Arc::new(job);
        }
    }

    /// Lets a job be begun again that was set aside, or poisoned: an operator has looked at it.
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
            // What its row says of its clocks may be from before a jump; and a pause was long enough.
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
            // Its attempt was stopped when it was set aside.
            let _ = self.apply_event(seq, Event::Interrupted(End::Clean), now, batch);
        }
        if let Some(job) = self.job(seq).cloned() {
            batch.rewritten(&job);
        }
        batch.touched.insert(seq);
        self.job(seq).cloned().map_or(Reply::NotLive, Reply::Job)
    }
}
