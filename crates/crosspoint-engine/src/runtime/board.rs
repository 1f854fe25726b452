//! What was committed, for all to see: jobs that have not ended, attempts under way, and agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use super::attempt::Handle;
use super::engine::AgentView;
use crate::core::{Agent, Member, Membership, Presence, Standing};
use crate::id::{JobId, Seq};
use crate::job::{Job, Phase};
use crate::queue::Queues;
use crate::store::Fault;
use crate::time::Time;

#[derive(Default)]
pub(super) struct Board {
    jobs: Mutex<BTreeMap<Seq, Watch>>,
    /// The jobs among them that wait for an agent, for saying who goes before whom.
    queues: Mutex<Queues>,
    /// How many of them are in which state.
    phases: [AtomicUsize; Phase::ALL.len()],
    attempts: Mutex<BTreeMap<Seq, Arc<Handle>>>,
    agents: Mutex<BTreeMap<Arc<str>, AgentView>>,
    fault: Mutex<Option<Arc<Fault>>>,
    closing: Arc<AtomicBool>,
    /// Jobs that were removed, and the steps that took.
    purged: Mutex<Purged>,
    /// Attempts that are over, and whose result or traces are being dealt with.
    pub(super) ending: AtomicUsize,
    /// Jobs before this number are somebody else's to drive, but for those that were taken up.
    driven_from: AtomicU64,
    taken: Mutex<BTreeSet<Seq>>,
}

/// How much was removed since the start, of jobs that need no longer be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Jobs.
    pub jobs: u64,
    /// Steps, each of which is a short transaction.
    pub steps: u64,
    /// Whether it was given up, because the store is damaged: old jobs stay.
    pub given_up: bool,
    /// Whether more jobs are kept than the operator wants, because they ended too recently to go.
    pub overfull: bool,
}

/// What changes of an agent with nearly every batch.
#[derive(Clone, Copy)]
pub(super) struct Load {
    running: u32,
    waiting: u32,
    joined: Option<Membership>,
}

impl Load {
    pub(super) fn of(agent: &Agent) -> Load {
        Load { running: agent.running, waiting: agent.waiting, joined: agent.joined }
    }
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

    /// Waits until the job has ended or asks a person, until a time, or until [`super::Engine::end_waits`].
    pub async fn settled(&self, until: Instant) -> Arc<Job> {
        self.wait_for(until, |job| job.outcome().is_some() || job.is_asking()).await
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
    /// Shows the agents there are at a start.
    pub(super) fn post_agents<'a>(&self, agents: impl Iterator<Item = &'a Agent>) {
        let posted = agents.map(|agent| (agent.spec.name.clone(), AgentView::of(agent)));
        *lock(&self.agents) = posted.collect();
    }

    /// Shows who has joined and who was forgotten.
    pub(super) fn post_members(&self, members: &BTreeMap<Arc<str>, Option<Member>>) {
        if members.is_empty() {
            return;
        }
        let mut agents = lock(&self.agents);
        for (name, member) in members {
            match member {
                None => drop(agents.remove(name)),
                Some(member) => {
                    let known = agents.remove(name);
                    let (standing, running, waiting) =
                        known.map_or_else(Default::default, |known| (known.standing, known.running, known.waiting));
                    let presence = Presence::Away { since: member.left_at.unwrap_or_default() };
                    let joined = Some(Membership { lease: member.lease, presence });
                    let spec = member.spec.clone();
                    agents.insert(name.clone(), AgentView { spec, standing, running, waiting, joined });
                }
            }
        }
    }

    /// The agents of which something holds, by name.
    pub(super) fn agents(&self, wanted: impl Fn(&AgentView) -> bool) -> Vec<AgentView> {
        lock(&self.agents).values().filter(|agent| wanted(agent)).cloned().collect()
    }

    pub(super) fn agent(&self, name: &str) -> Option<AgentView> {
        lock(&self.agents).get(name).cloned()
    }

    /// After a start, whoever has work of this agent has so long to say so.
    pub(super) fn lease(&self, name: &str) -> Option<std::time::Duration> {
        Some(lock(&self.agents).get(name)?.joined?.lease)
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

    /// How many jobs the agents have, in order of their names: those of the board are those of the core at the end of the batch.
    pub(super) fn post_load(&self, load: &[Load]) {
        for (posted, load) in lock(&self.agents).values_mut().zip(load) {
            (posted.running, posted.waiting, posted.joined) = (load.running, load.waiting, load.joined);
        }
    }

    pub(super) fn post_standing(&self, name: &str, standing: Standing) {
        if let Some(posted) = lock(&self.agents).get_mut(name) {
            posted.standing = standing;
        }
    }

    pub(super) fn watch(&self, id: JobId) -> Option<Watch> {
        lock(&self.jobs).get(&id.seq()).filter(|watch| watch.job().id() == id).cloned()
    }

    pub(super) fn watch_at(&self, seq: Seq) -> Option<Watch> {
        lock(&self.jobs).get(&seq).cloned()
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

    /// Shows which jobs nobody drives: those before the first, but for those that were taken up.
    pub(super) fn post_held(&self, first: Seq, taken: &BTreeSet<Seq>) {
        self.driven_from.store(first.0, Ordering::Relaxed);
        lock(&self.taken).clone_from(taken);
    }

    /// Whether nobody drives this job.
    pub(super) fn is_held(&self, seq: Seq) -> bool {
        seq.0 < self.driven_from.load(Ordering::Relaxed) && !lock(&self.taken).contains(&seq)
    }

    /// How many attempts are under way that wait for nobody.
    pub(super) fn busy_count(&self) -> usize {
        let seqs: Vec<Seq> = self.attempts().keys().copied().collect();
        let jobs = lock(&self.jobs);
        seqs.iter().filter(|seq| jobs.get(seq).is_none_or(|watch| !watch.job().is_asking())).count()
    }

    /// How many jobs are in which state, of those in which a job can be that has not ended.
    pub(super) fn phases(&self) -> [(Phase, usize); 4] {
        let phases = [Phase::Queued, Phase::Running, Phase::Retrying, Phase::Waiting];
        phases.map(|phase| (phase, self.phases[phase as usize].load(Ordering::Relaxed)))
    }

    /// The works that jobs wait for, how many do, and when the oldest of them was accepted.
    pub(super) fn waiting_by_work(&self) -> Vec<(Arc<str>, usize, Time)> {
        let works = lock(&self.queues).works();
        let jobs = lock(&self.jobs);
        // One that has left in this very moment was as old as the next, about; that nobody waits any more is seen the next time.
        let accepted_at = |seq| {
            let next = jobs.range(seq..).next().map(|(_, watch)| watch.job().request.accepted_at);
            next.unwrap_or_else(Time::on_the_wall)
        };
        works.into_iter().map(|(work, jobs, oldest)| (work, jobs, accepted_at(oldest))).collect()
    }

    /// How many jobs go before this one.
    pub(super) fn ahead_of(&self, job: &Job) -> usize {
        lock(&self.queues).ahead_of(job)
    }

    /// Keeps count of who waits for what.
    fn moved(&self, before: Option<&Job>, now: &Job) {
        match (before.map(Job::phase), now.phase()) {
            (Some(before), now) if before == now => return,
            (Some(before), _) => {
                self.phases[before as usize].fetch_sub(1, Ordering::Relaxed);
                if before == Phase::Queued {
                    lock(&self.queues).remove(now);
                }
            }
            (None, _) => {}
        }
        let phase = now.phase();
        if phase == Phase::Queued {
            lock(&self.queues).add(now);
        }
        if !phase.is_end() {
            self.phases[phase as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn live_count(&self) -> usize {
        lock(&self.jobs).len()
    }

    /// An attempt is over, unless another has taken its place.
    pub(super) fn forget_attempt(&self, seq: Seq, handle: &Arc<Handle>) {
        let mut attempts = self.attempts();
        if attempts.get(&seq).is_some_and(|known| Arc::ptr_eq(known, handle)) {
            attempts.remove(&seq);
        }
    }

    pub(super) fn attempts(&self) -> MutexGuard<'_, BTreeMap<Seq, Arc<Handle>>> {
        lock(&self.attempts)
    }

    /// A step has removed so many jobs.
    pub(super) fn purged(&self, jobs: u64) {
        let mut purged = lock(&self.purged);
        *purged = Purged { jobs: purged.jobs + jobs, steps: purged.steps + 1, ..*purged };
    }

    /// Whether more jobs are kept than the operator wants.
    pub(super) fn set_overfull(&self, overfull: bool) {
        lock(&self.purged).overfull = overfull;
    }

    /// No more jobs are removed.
    pub(super) fn purging_given_up(&self) {
        lock(&self.purged).given_up = true;
    }

    pub(super) fn purged_so_far(&self) -> Purged {
        *lock(&self.purged)
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
