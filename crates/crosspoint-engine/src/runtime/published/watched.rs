//! A job that can be watched: how it is now, and waits until it is otherwise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;

use super::lock;
use crate::job::Job;

/// A job that can be watched. Clones watch the same job.
#[derive(Clone)]
pub struct Watch(Arc<Watched>);

struct Watched {
    job: Mutex<Arc<Job>>,
    changed: Notify,
    /// Whether all waits are to end.
    closing: Arc<AtomicBool>,
}

impl Watch {
    pub(super) fn new(job: Arc<Job>, closing: Arc<AtomicBool>) -> Watch {
        Watch(Arc::new(Watched { job: Mutex::new(job), changed: Notify::new(), closing }))
    }

    /// Makes a watch of a job as it is at this moment. Nothing waits for it: every wait is over at once.
    pub fn at_rest(job: Arc<Job>) -> Watch {
        Watch::new(job, Arc::new(AtomicBool::new(true)))
    }

    /// Returns the job as it was last committed.
    pub fn job(&self) -> Arc<Job> {
        lock(&self.0.job).clone()
    }

    /// Waits until the job has ended, until a time, or until [`crate::runtime::Engine::end_waits`]. Returns the job as
    /// it is then.
    pub async fn ended(&self, until: Instant) -> Arc<Job> {
        self.wait_for(until, |job| job.outcome().is_some()).await
    }

    /// Waits until the job has ended or asks a person, until a time, or until [`crate::runtime::Engine::end_waits`].
    pub async fn settled(&self, until: Instant) -> Arc<Job> {
        self.wait_for(until, |job| job.outcome().is_some() || job.is_asking()).await
    }

    /// Waits until the job has had more events than this or has ended, until a time, or until
    /// [`crate::runtime::Engine::end_waits`].
    pub async fn moved(&self, events: u32, until: Instant) -> Arc<Job> {
        self.wait_for(until, |job| job.events > events || job.outcome().is_some()).await
    }

    async fn wait_for(&self, until: Instant, done: impl Fn(&Job) -> bool) -> Arc<Job> {
        loop {
            // In this order, so that no change between the look and the wait is missed.
            let changed = self.0.changed.notified();
            let job = self.job();
            if done(&job) || self.0.closing.load(Ordering::Acquire) {
                return job;
            }
            if tokio::time::timeout_at(until.into(), changed).await.is_err() {
                return self.job();
            }
        }
    }

    /// Replaces the job, without waking the tasks that wait for it.
    pub(super) fn post(&self, job: Arc<Job>) {
        *lock(&self.0.job) = job;
    }

    pub(in crate::runtime) fn wake(&self) {
        self.0.changed.notify_waiters();
    }
}
