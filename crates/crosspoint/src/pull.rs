//! The pull queues: agents that joined take their work from here and report what came of it.
//!
//! Each worker under an agent's name is a session, with an id that it chose itself and a lease. Nothing here depends on
//! an answer arriving. With every call for work a session lists all attempts that it holds, and the reply is worked out
//! anew from that list. An attempt that the server believes the session holds and that is not listed never arrived, and
//! is given again. An attempt that is listed and not wanted is to be stopped. A session that is silent for as long as
//! its lease is dead, and the attempts that it held died with it.
//!
//! All of this is in memory. After a restart there are no sessions. The engine hands out again what was under way, and
//! the worker that holds an attempt has as long as a lease to join again and list it.

mod lease;
mod queue;
mod report;
mod session;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crosspoint_engine::core::Member;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{self, Engine, Handed, Instruction, Unjoined};
use tokio::sync::Notify;
use uuid::Uuid;

use queue::{Entered, Queue, Served, Terms};
pub(crate) use report::{Mistake, Report, ReportBody};
pub(crate) use session::{Given, Holding, Ordered};
use session::{Session, Wanted};

/// Most sessions under one name at a time: each is looked at when work is queued for the agent.
pub(crate) const SESSIONS_MAX: usize = 1_000;

/// Most jobs a session may hold at a time: it lists them all with every call.
pub(crate) const CONCURRENCY_MAX: u32 = 10_000;

/// Most bytes of input in the answer to one call. The job whose input exceeds this is the last of the answer; the rest
/// is for the next call.
const GIVEN_BYTES_MAX: usize = 8 << 20;

/// All agents that joined, by name.
#[derive(Default)]
pub(crate) struct Queues {
    queues: Mutex<BTreeMap<Arc<str>, Arc<Mutex<Queue>>>>,
    /// Wakes the lease loop: something may be due sooner than the time it waits for.
    sooner: Notify,
    /// When the lease loop next checks for leases that ran out and for work that was queued for too long.
    next_look: Mutex<Option<Instant>>,
}

/// What a session says when it joins.
pub(crate) struct Joining {
    pub(crate) session: Uuid,
    pub(crate) concurrency: u32,
    pub(crate) lease: std::time::Duration,
    pub(crate) spec: crosspoint_engine::core::Spec,
}

/// Why a session cannot join.
pub(crate) enum NotJoined {
    /// Other sessions under this name joined for other work or with other limits.
    Otherwise,
    /// There are too many sessions under this name.
    Crowded,
    /// The engine refuses the agent.
    Refused(Unjoined),
}

/// The session is not known: it must join first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinFirst;

impl Queues {
    /// Adds a session, or updates it. Safe to repeat.
    pub(crate) async fn join(self: &Arc<Queues>, engine: &Engine, joining: Joining) -> Result<(), NotJoined> {
        let name = joining.spec.name.clone();
        if engine.agent(&name).is_some_and(|agent| agent.joined.is_none()) {
            return Err(NotJoined::Refused(Unjoined::Configured));
        }
        let queue = self.queue(&name);
        let (joined, took, is_new, fell) = {
            // Both commands go into the inbox while the queue is locked, so that they are in order with those of other
            // sessions.
            let mut queue = lock(&queue);
            let Entered { member, is_new, fell } = queue.join(&joining, Instant::now())?;
            (engine.join(member), engine.set_capacity(&name, queue.capacity()), is_new, fell)
        };
        self.sooner.notify_one();
        let joined = match joined.await {
            Ok(()) => took.await,
            refused => refused,
        };
        if joined.is_err() && is_new {
            drop(queue);
            // In a task of its own, because the caller must not wait for it: while the store cannot be written, that
            // takes long.
            let (queues, engine) = (self.clone(), engine.clone());
            tokio::spawn(async move { queues.leave(&engine, &name, joining.session).await });
        } else if fell {
            lease::withdraw_excess(engine, &name, &queue).await;
        }
        joined.map_err(NotJoined::Refused)
    }

    /// Gives a session what there is for it, or waits for something until a point in time.
    pub(crate) async fn take(
        &self,
        name: &str,
        session: Uuid,
        room: usize,
        holding: &[Holding],
        until: impl Fn(std::time::Duration) -> Instant,
    ) -> Result<Ordered, JoinFirst> {
        let queue = self.known(name)?;
        let mut call = Call::begin(&queue, session)?;
        let wanted = Wanted::new(room, holding);
        let (round, lease, wake) = lock(&queue).begin_take(session)?;
        call.round = Some(round);
        let until = until(lease);
        let mut first = true;
        loop {
            let last = Instant::now() >= until;
            let served = lock(&queue).serve(session, round, &wanted, first);
            match served {
                Served::Ordered(ordered) if last || !ordered.is_empty() => return Ok(ordered),
                Served::Ordered(_) => {}
                Served::Left => return Err(JoinFirst),
                Served::AskedAgain => return Ok(Ordered::default()),
            }
            first = false;
            let _ = tokio::time::timeout_at(until.into(), wake.notified()).await;
        }
    }

    /// Returns the lock that orders the reports of a session: only its holder may report.
    pub(crate) fn turn(&self, name: &str, session: Uuid) -> Result<Arc<tokio::sync::Mutex<()>>, JoinFirst> {
        let queue = self.known(name)?;
        lock(&queue).turn(session).ok_or(JoinFirst)
    }

    /// Takes back an attempt that a session was to be given and will not get.
    pub(crate) fn done_with(&self, name: &str, session: Uuid, id: JobId, attempt: u32) {
        if let Ok(queue) = self.known(name) {
            lock(&queue).done_with(session, id, attempt);
        }
    }

    /// Drops the queue of an agent that is not known to the engine: names cost memory, and any caller can make them up.
    pub(crate) fn tidy(&self, name: &str) {
        let mut queues = lock(&self.queues);
        // A call that is about to use the queue holds a reference to it.
        if queues.get(name).is_some_and(|queue| Arc::strong_count(queue) == 1 && lock(queue).is_idle()) {
            queues.remove(name);
        }
    }

    fn known(&self, name: &str) -> Result<Arc<Mutex<Queue>>, JoinFirst> {
        lock(&self.queues).get(name).cloned().ok_or(JoinFirst)
    }

    fn queue(&self, name: &Arc<str>) -> Arc<Mutex<Queue>> {
        lock(&self.queues).entry(name.clone()).or_default().clone()
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<Mutex<Queue>>)> {
        lock(&self.queues).iter().map(|(name, queue)| (name.clone(), queue.clone())).collect()
    }
}

impl runtime::PullQueues for Queues {
    fn give(&self, handed: Vec<Handed>) {
        let mut by_agent: BTreeMap<Arc<str>, Vec<Handed>> = BTreeMap::new();
        for one in handed {
            if let Some(name) = &one.job.agent {
                by_agent.entry(name.clone()).or_default().push(one);
            }
        }
        let now = Instant::now();
        for (name, handed) in by_agent {
            let due = lock(&self.queue(&name)).enqueue(handed, now);
            let next_look = *lock(&self.next_look);
            if due.is_some_and(|due| next_look.is_none_or(|next| due < next)) {
                self.sooner.notify_one();
            }
        }
    }

    fn instruct(&self, job: &Arc<Job>, attempt: u32, instruction: Instruction) {
        let Some(queue) = job.agent.as_ref().and_then(|name| self.known(name).ok()) else { return };
        match instruction {
            Instruction::Stop => lock(&queue).stop(job.id(), attempt),
            Instruction::Answered => lock(&queue).answered(job, attempt),
        }
    }
}

/// A call of a session that is under way. The lease does not run while there is one.
struct Call {
    queue: Arc<Mutex<Queue>>,
    session: Uuid,
    /// The number of the call for work, if it is one.
    round: Option<u64>,
}

impl Call {
    fn begin(queue: &Arc<Mutex<Queue>>, session: Uuid) -> Result<Call, JoinFirst> {
        lock(queue).call_begins(session)?;
        Ok(Call { queue: queue.clone(), session, round: None })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.queue).call_ends(self.session, self.round);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held leaves at worst an attempt without a session, which a lease or a restart finds.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Joining {
    fn terms(&self) -> Terms {
        Terms { works: self.spec.works.clone(), policy: self.spec.policy.clone() }
    }

    fn member(&self, lease: std::time::Duration) -> Member {
        Member { spec: self.spec.clone(), lease, left_at: None, registration: None }
    }

    fn session(&self, now: Instant) -> Session {
        Session::new(self.concurrency, self.lease, now)
    }
}
