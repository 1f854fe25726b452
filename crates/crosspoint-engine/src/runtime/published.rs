//! The published state, which is what was committed, for readers: jobs that have not ended, attempts under way, and
//! agents.

mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosspoint_contracts::time::Time;
use tokio::sync::watch;
use uuid::Uuid;

pub use self::watched::Watch;
use super::agent_view::AgentView;
use super::attempt::Handle;
use crate::core::{Agent, Member, Membership, Mode, Presence, Standing};
use crate::grant::Grants;
use crate::id::{JobId, Seq};
use crate::job::{Job, Phase};
use crate::queue::Queues;
use crate::store::Fault;

#[derive(Default)]
pub(super) struct Published {
    jobs: Mutex<BTreeMap<Seq, Watch>>,
    /// The stage that was last asked for by each of the published jobs that have stages, while it goes on.
    stages: Mutex<BTreeMap<Uuid, Seq>>,
    /// The published jobs that wait for an agent, for saying which job goes before which.
    queues: Mutex<Queues>,
    /// How many of the published jobs are in which state.
    phases: [AtomicUsize; Phase::ALL.len()],
    attempts: Mutex<BTreeMap<Seq, Arc<Handle>>>,
    agents: Mutex<BTreeMap<Arc<str>, AgentView>>,
    grants: watch::Sender<Arc<Grants>>,
    fault: Mutex<Option<Arc<Fault>>>,
    closing: Arc<AtomicBool>,
    /// How many jobs were removed, and in how many steps.
    purged: Mutex<Purged>,
    /// Attempts that are over and whose result or traces are still being handled.
    pub(super) ending: AtomicUsize,
    /// Which jobs are driven.
    mode: Mutex<Mode>,
    /// Whether all are: nearly always, so that hardly anything waits for the mode.
    drives_all: AtomicBool,
}

/// How many jobs were removed since the start because they need no longer be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// How many jobs were removed.
    pub jobs: u64,
    /// How many steps were taken, each of which is a short transaction.
    pub steps: u64,
    /// Whether removing was given up because the store is damaged: old jobs stay.
    pub given_up: bool,
    /// Whether more jobs are kept than the operator wants, because they ended too recently to be removed.
    pub overfull: bool,
}

/// The part of an agent's state that changes with nearly every batch.
#[derive(Clone, Copy)]
pub(super) struct Load {
    running: u32,
    waiting: u32,
    joined: Option<Membership>,
    seen: Option<Presence>,
}

impl Load {
    pub(super) fn of(agent: &Agent) -> Load {
        Load { running: agent.running, waiting: agent.waiting, joined: agent.joined, seen: agent.seen }
    }
}

impl Published {
    /// Publishes the agents that there are at a start.
    pub(super) fn post_agents<'a>(&self, agents: impl Iterator<Item = &'a Agent>) {
        let posted = agents.map(|agent| (agent.spec.name.clone(), AgentView::of(agent)));
        *lock(&self.agents) = posted.collect();
    }

    /// Publishes the grants. Only the committing thread does, with what is on disk.
    pub(super) fn post_grants(&self, grants: &Arc<Grants>) {
        self.grants.send_replace(grants.clone());
    }

    pub(super) fn grants(&self) -> Arc<Grants> {
        self.grants.borrow().clone()
    }

    /// Returns the grants, for those who wait until they change.
    pub(super) fn changing_grants(&self) -> watch::Receiver<Arc<Grants>> {
        self.grants.subscribe()
    }

    /// Publishes which agents have joined and which were forgotten.
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
                    let (spec, seen) = (member.spec.clone(), None);
                    let (token_refused_since, reached) = (None, None);
                    let view =
                        AgentView { spec, standing, running, waiting, joined, seen, token_refused_since, reached };
                    agents.insert(name.clone(), view);
                }
            }
        }
    }

    /// Returns the agents that fulfil a condition, ordered by name.
    pub(super) fn agents(&self, wanted: impl Fn(&AgentView) -> bool) -> Vec<AgentView> {
        lock(&self.agents).values().filter(|agent| wanted(agent)).cloned().collect()
    }

    pub(super) fn agent(&self, name: &str) -> Option<AgentView> {
        lock(&self.agents).get(name).cloned()
    }

    /// Returns how long after a start a worker of this agent may take to say that it still has work.
    pub(super) fn lease(&self, name: &str) -> Option<std::time::Duration> {
        Some(lock(&self.agents).get(name)?.joined?.lease)
    }

    /// Publishes jobs as they are now and removes those that have ended. Returns watches of the jobs that tasks may be
    /// waiting for.
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
                    self.began(&job);
                    jobs.insert(seq, Watch::new(job, self.closing.clone()));
                }
            }
            if ended && let Some(watch) = jobs.remove(&seq) {
                self.ended(&watch.job());
            }
        }
        watched
    }

    /// Ends all waits for jobs.
    pub(super) fn end_waits(&self) {
        self.closing.store(true, Ordering::Release);
        let all: Vec<Watch> = lock(&self.jobs).values().cloned().collect();
        for watch in all {
            watch.wake();
        }
    }

    /// Publishes a job that was just accepted, and perhaps has ended already. Returns its watch.
    pub(super) fn post_new(&self, job: &Arc<Job>) -> Watch {
        let watch = Watch::new(job.clone(), self.closing.clone());
        if job.outcome().is_none() {
            self.moved(None, job);
            self.began(job);
            lock(&self.jobs).insert(job.seq(), watch.clone());
        }
        watch
    }

    /// Returns the stage of this job that is under way.
    pub(super) fn stage_of(&self, id: JobId) -> Option<Watch> {
        let stage = *lock(&self.stages).get(&id.uuid())?;
        self.watch_at(stage)
    }

    fn began(&self, job: &Job) {
        if let Some(parent) = job.request.child_of() {
            lock(&self.stages).insert(parent, job.seq());
        }
    }

    fn ended(&self, job: &Job) {
        let Some(parent) = job.request.child_of() else { return };
        let mut stages = lock(&self.stages);
        if stages.get(&parent) == Some(&job.seq()) {
            stages.remove(&parent);
        }
    }

    /// Publishes how many jobs the agents have, in order of their names. The published agents are those of the core at
    /// the end of the batch.
    pub(super) fn post_load(&self, load: &[Load]) {
        for (posted, load) in lock(&self.agents).values_mut().zip(load) {
            (posted.running, posted.waiting) = (load.running, load.waiting);
            (posted.joined, posted.seen) = (load.joined, load.seen);
        }
    }

    /// Publishes the standing of an agent. Returns the one before.
    pub(super) fn post_standing(&self, name: &str, standing: Standing) -> Option<Standing> {
        Some(std::mem::replace(&mut lock(&self.agents).get_mut(name)?.standing, standing))
    }

    pub(super) fn watch(&self, id: JobId) -> Option<Watch> {
        lock(&self.jobs).get(&id.seq()).filter(|watch| watch.job().id() == id).cloned()
    }

    pub(super) fn watch_at(&self, seq: Seq) -> Option<Watch> {
        lock(&self.jobs).get(&seq).cloned()
    }

    /// Returns jobs that have not ended, the youngest first.
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

    /// Publishes which jobs are driven.
    pub(super) fn post_mode(&self, mode: &Mode) {
        self.change_mode(|now| now.clone_from(mode));
    }

    /// Publishes that these jobs are driven from now on, or have ended.
    pub(super) fn post_taken(&self, seqs: &BTreeSet<Seq>) {
        self.change_mode(|mode| mode.take(seqs));
    }

    fn change_mode(&self, change: impl FnOnce(&mut Mode)) {
        let mut mode = lock(&self.mode);
        change(&mut mode);
        self.drives_all.store(*mode == Mode::Serve, Ordering::Release);
    }

    /// Whether this process does not drive the job.
    pub(super) fn is_held(&self, seq: Seq) -> bool {
        !self.drives_all.load(Ordering::Acquire)
            && match &*lock(&self.mode) {
                Mode::Serve | Mode::Held => false,
                Mode::ServeBut { behind } => behind.contains(&seq),
                Mode::HeldBefore { first, taken } => seq < *first && !taken.contains(&seq),
            }
    }

    /// Whether the job is a stage that its job has not come to again since the start.
    pub(super) fn is_behind(&self, seq: Seq) -> bool {
        matches!(&*lock(&self.mode), Mode::ServeBut { behind } if behind.contains(&seq))
    }

    /// Returns how many attempts are under way that do not wait for a person.
    pub(super) fn busy_count(&self) -> usize {
        let seqs: Vec<Seq> = self.attempts().keys().copied().collect();
        let jobs = lock(&self.jobs);
        seqs.iter().filter(|seq| jobs.get(seq).is_none_or(|watch| !watch.job().is_asking())).count()
    }

    /// Returns how many jobs are in each of the states that a job can have before its end.
    pub(super) fn phases(&self) -> [(Phase, usize); 4] {
        let phases = [Phase::Queued, Phase::Running, Phase::Retrying, Phase::Waiting];
        phases.map(|phase| (phase, self.phases[phase as usize].load(Ordering::Relaxed)))
    }

    /// Returns for each work that jobs wait for: its name, how many jobs wait, and when the oldest of them was
    /// accepted.
    pub(super) fn waiting_by_work(&self) -> Vec<(Arc<str>, usize, Time)> {
        let works = lock(&self.queues).works();
        let jobs = lock(&self.jobs);
        // A job that has just left was about as old as the next one. If no job waits any more, the next look shows it.
        let accepted_at = |seq| {
            let next = jobs.range(seq..).next().map(|(_, watch)| watch.job().request.accepted_at);
            next.unwrap_or_else(crate::wall_clock::now)
        };
        works.into_iter().map(|(work, jobs, oldest)| (work, jobs, accepted_at(oldest))).collect()
    }

    /// Returns how many queued jobs go before this one.
    pub(super) fn ahead_of(&self, job: &Job) -> usize {
        lock(&self.queues).ahead_of(job)
    }

    /// Updates the counts of states and the queues.
    fn moved(&self, before: Option<&Job>, now: &Job) {
        if let Some(before) = before {
            if before.phase() == now.phase() {
                return;
            }
            self.phases[before.phase() as usize].fetch_sub(1, Ordering::Relaxed);
            if before.phase() == Phase::Queued {
                // As it was added: what has happened since may bind it to an agent.
                lock(&self.queues).remove(before);
            }
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

    /// Removes an attempt that is over, unless another has taken its place.
    pub(super) fn forget_attempt(&self, seq: Seq, handle: &Arc<Handle>) {
        let mut attempts = self.attempts();
        if attempts.get(&seq).is_some_and(|known| Arc::ptr_eq(known, handle)) {
            attempts.remove(&seq);
        }
    }

    pub(super) fn attempts(&self) -> MutexGuard<'_, BTreeMap<Seq, Arc<Handle>>> {
        lock(&self.attempts)
    }

    /// Counts a step that has removed this many jobs.
    pub(super) fn purged(&self, jobs: u64) {
        let mut purged = lock(&self.purged);
        *purged = Purged { jobs: purged.jobs + jobs, steps: purged.steps + 1, ..*purged };
    }

    /// Publishes whether more jobs are kept than the operator wants.
    pub(super) fn set_overfull(&self, overfull: bool) {
        lock(&self.purged).overfull = overfull;
    }

    /// Publishes that no more jobs are removed.
    pub(super) fn purging_given_up(&self) {
        lock(&self.purged).given_up = true;
    }

    pub(super) fn purged_so_far(&self) -> Purged {
        *lock(&self.purged)
    }

    /// Returns why nothing can be committed at present.
    pub(super) fn fault(&self) -> Option<Arc<Fault>> {
        lock(&self.fault).clone()
    }

    pub(super) fn set_fault(&self, fault: Option<Arc<Fault>>) {
        *lock(&self.fault) = fault;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked while it held the lock had written everything or nothing: these are single assignments.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
