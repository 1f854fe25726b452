//! What was committed, for all to see: jobs that have not ended, attempts under way, and agents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use super::attempt::Handle;
use crate::core::{Spec, Standing};
use crate::id::{JobId, Seq};
use crate::job::{Job, Phase};
use crate::queue::Queues;
use crate::store::Fault;

#[derive(Default)]
pub(super) struct Board {
    jobs: Mutex<BTreeMap<Seq, Watch>>,
    /// The jobs among them that wait for an agent, for saying who goes before whom.
    queues: Mutex<Queues>,
    /// How many of them wait for a person.
    waiting: AtomicUsize,
    attempts: Mutex<BTreeMap<Seq, Arc<Handle>>>,
    pub(super) agents: BTreeMap<Arc<str>, Posted>,
    fault: Mutex<Option<Arc<Fault>>>,
    closing: Arc<AtomicBool>,
    /// Jobs before this number are somebody else's to drive.
    pub(super) driven_from: AtomicU64,
}

/// What is known of an agent.
pub(super) struct Posted {
    pub(super) spec: Spec,
    pub(super) standing: Mutex<Standing>,
    pub(super) running: AtomicU32,
}

/// A job that can be watched; cloning watches the same.
#[derive(Clone)]
pub struct Watch(Arc<Watched>);

struct Watched {
    job: Mutex<Arc<Job>>,
    changed: Notify,
    /// Whether nobody should wait any longer.
    closing: Arc<AtomicBool>,
}

impl Watch {
    fn new(job: Arc<Job>, closing: Arc<AtomicBool>) -> Watch {
        Watch(Arc::new(Watched { job: Mutex::new(job), changed: Notify::new(), closing }))
    }

    /// A job that has ended, so that there is nothing to wait for.
    pub(super) fn of_ended(job: Arc<Job>) -> Watch {
        Watch::new(job, Arc::new(AtomicBool::new(true)))
    }

    /// The job as it was last committed.
    pub fn job(&self) -> Arc<Job> {
        lock(&self.0.job).clone()
    }

    /// Waits until the job has ended, until a time, or until [`super::Engine::end_waits`]; gives the job as it is then.
    pub async fn ended(&self, until: Instant) -> Arc<Job> {
        self.wait_for(until, |job| job.outcome().is_some()).await
    }

    /// Waits until the job has had more events than this or has ended, or until a time.
    pub async fn moved(&self, events: u32, until: Instant) -> Arc<Job> {
        self.wait_for(until, |job| job.events > events || job.outcome().is_some()).await
    }

    async fn wait_for(&self, until: Instant, done: impl Fn(&Job) -> bool) -> Arc<Job> {
        loop {
            // In this order: a change between the look and the wait must not be missed.
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

    /// Whoever waits has yet to be woken.
    fn post(&self, job: Arc<Job>) {
        *lock(&self.0.job) = job;
    }

    pub(super) fn wake(&self) {
        self.0.changed.notify_waiters();
    }
}

impl Board {
    pub(super) fn new(agents: &[Spec]) -> Board {
        let post = |spec: &Spec| {
            let posted = Posted { spec: spec.clone(), standing: Mutex::default(), running: AtomicU32::new(0) };
            (spec.name.clone(), posted)
        };
        Board { agents: agents.iter().map(post).collect(), ..Board::default() }
    }

    /// Shows jobs as they are now; those that have ended leave the board. Gives those that somebody may be waiting for.
    pub(super) fn post(&self, changed: impl Iterator<Item = Arc<Job>>) -> Vec<Watch> {
        let mut jobs = lock(&self.jobs);
        let mut watched = Vec::new();
        for job in changed {
            let seq = job.seq();
            let ended = job.outcome().is_some();
            match jobs.get(&seq) {
                Some(watch) => {
                    self.moved(Some(&watch.job()), &job);
                    watch.post(job);
                    watched.push(watch.clone());
                }
                None if ended => {}
                None => {
                    self.moved(None, &job);
                    jobs.insert(seq, Watch::new(job, self.closing.clone()));
                }
            }
            if ended {
                jobs.remove(&seq);
            }
        }
        watched
    }

    /// Whoever waits for a job waits no longer.
    pub(super) fn end_waits(&self) {
        self.closing.store(true, Ordering::Release);
        let all: Vec<Watch> = lock(&self.jobs).values().cloned().collect();
        for watch in all {
            watch.wake();
        }
    }

    /// Shows a job that was just accepted, perhaps ended already, and gives what it can be watched by.
    pub(super) fn post_new(&self, job: &Arc<Job>) -> Watch {
        let watch = Watch::new(job.clone(), self.closing.clone());
        if job.outcome().is_none() {
            self.moved(None, job);
            lock(&self.jobs).insert(job.seq(), watch.clone());
        }
        watch
    }

    /// How many jobs the agents have, in order of their names.
    pub(super) fn post_running(&self, running: &[u32]) {
        for (posted, running) in self.agents.values().zip(running) {
            posted.running.store(*running, Ordering::Relaxed);
        }
    }

    pub(super) fn post_standing(&self, name: &str, standing: Standing) {
        if let Some(posted) = self.agents.get(name) {
            *lock(&posted.standing) = standing;
        }
    }

    pub(super) fn watch(&self, id: JobId) -> Option<Watch> {
        lock(&self.jobs).get(&id.seq()).filter(|watch| watch.job().id() == id).cloned()
    }

    /// Jobs that have not ended, the youngest first.
    pub(super) fn live(
        &self,
        before: Option<Seq>,
        mut wanted: impl FnMut(&Job) -> bool,
        limit: usize,
    ) -> Vec<Arc<Job>> {
        let jobs = lock(&self.jobs);
        let end = before.unwrap_or(Seq(u64::MAX));
        jobs.range(..end).rev().map(|(_, watch)| watch.job()).filter(|job| wanted(job)).take(limit).collect()
    }

    /// How many jobs wait for a person.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many jobs go before this one.
    pub(super) fn ahead_of(&self, job: &Job) -> usize {
        lock(&self.queues).ahead_of(job)
    }

    /// Keeps count of who waits for what.
    fn moved(&self, before: Option<&Job>, now: &Job) {
        match (before.map(Job::phase), now.phase()) {
            (Some(before), now) if before == now => return,
            (Some(Phase::Waiting), _) => drop(self.waiting.fetch_sub(1, Ordering::Relaxed)),
            (Some(Phase::Queued), _) => lock(&self.queues).remove(now),
            (Some(_) | None, _) => {}
        }
        match now.phase() {
            Phase::Waiting => drop(self.waiting.fetch_add(1, Ordering::Relaxed)),
            Phase::Queued => lock(&self.queues).add(now),
            Phase::Running | Phase::Retrying | Phase::Completed | Phase::Failed | Phase::Cancelled => {}
        }
    }

    pub(super) fn live_count(&self) -> usize {
        lock(&self.jobs).len()
    }

    pub(super) fn attempts(&self) -> MutexGuard<'_, BTreeMap<Seq, Arc<Handle>>> {
        lock(&self.attempts)
    }

    /// Why nothing can be committed at present.
    pub(super) fn fault(&self) -> Option<Arc<Fault>> {
        lock(&self.fault).clone()
    }

    pub(super) fn set_fault(&self, fault: Option<Arc<Fault>>) {
        *lock(&self.fault) = fault;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked while holding it had written all of it or nothing: these are single assignments.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
