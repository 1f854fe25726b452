//! The desk: where agents that joined are given their work and say what came of it.
//!
//! Whoever works under an agent's name is a session, with an id of its own choosing and a lease. Nothing here depends on an answer
//! that arrives: with every call for work a session lists all it holds, and what follows is worked out anew from that list. What
//! we believe it holds and it does not list never arrived, and is given again; what it lists and we do not want is to be
//! stopped. A session that keeps silent for as long as its lease is dead, and what it held died with it.
//!
//! All of this is in memory. After a restart nobody has a session, the engine lays out what was under way, and whoever holds it
//! has as long as a lease to join again and say so.

mod counter;
mod lease;
mod said;
mod session;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crosspoint_engine::core::Member;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{self, Engine, Handed, Told, Unjoined};
use tokio::sync::Notify;
use uuid::Uuid;

use counter::{Counter, Entered, Served, Terms};
pub(crate) use said::{Mistake, Report, Said};
pub(crate) use session::{Given, Holding, Ordered};
use session::{Session, Wanted};

/// So many may work under one name at a time: each is looked at when work is laid out for it.
pub(crate) const SESSIONS_MAX: usize = 1_000;

/// So many jobs a session may have at a time: it lists them all with every call.
pub(crate) const CONCURRENCY_MAX: u32 = 10_000;

/// What one call is given ends with the input that exceeds this, in bytes: the rest is for the next call.
const GIVEN_BYTES_MAX: usize = 8 << 20;

/// All agents that joined, by name.
#[derive(Default)]
pub(crate) struct Desk {
    counters: Mutex<BTreeMap<Arc<str>, Arc<Mutex<Counter>>>>,
    /// Something may be due sooner than the next that was known.
    sooner: Notify,
    /// When it is looked next whether a lease has run out, or something has lain here for too long.
    next_look: Mutex<Option<Instant>>,
}

/// Who joins, and for what.
pub(crate) struct Joining {
    pub(crate) session: Uuid,
    pub(crate) concurrency: u32,
    pub(crate) lease: std::time::Duration,
    pub(crate) spec: crosspoint_engine::core::Spec,
}

/// Why somebody cannot join.
pub(crate) enum NotJoined {
    /// Others are there under this name, for other work or with other limits.
    Otherwise,
    /// Too many are there under this name.
    Crowded,
    /// The engine says no.
    Refused(Unjoined),
}

/// Nobody here knows the session: it must join first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinFirst;

impl Desk {
    /// Takes a session in, or what is new about it. Safe to repeat.
    pub(crate) async fn join(self: &Arc<Desk>, engine: &Engine, joining: Joining) -> Result<(), NotJoined> {
        let name = joining.spec.name.clone();
        if engine.agent(&name).is_some_and(|agent| agent.joined.is_none()) {
            return Err(NotJoined::Refused(Unjoined::Configured));
        }
        let counter = self.counter(&name);
        let (joined, took, is_new, fell) = {
            // Both are put in order with those of others while nobody else can change the counter.
            let mut counter = lock(&counter);
            let Entered { member, is_new, fell } = counter.join(&joining, Instant::now())?;
            (engine.join(member), engine.set_capacity(&name, counter.capacity()), is_new, fell)
        };
        self.sooner.notify_one();
        let joined = match joined.await {
            Ok(()) => took.await,
            refused => refused,
        };
        if joined.is_err() && is_new {
            drop(counter);
            // Nobody waits for it: while nothing can be written, that would be for long.
            let (desk, engine) = (self.clone(), engine.clone());
            tokio::spawn(async move { desk.leave(&engine, &name, joining.session).await });
        } else if fell {
            lease::withdraw_excess(engine, &name, &counter).await;
        }
        joined.map_err(NotJoined::Refused)
    }

    /// Gives a session what there is for it, or waits for it until a time.
    pub(crate) async fn take(
        &self,
        name: &str,
        session: Uuid,
        room: usize,
        holding: &[Holding],
        until: impl Fn(std::time::Duration) -> Instant,
    ) -> Result<Ordered, JoinFirst> {
        let counter = self.known(name)?;
        let mut call = Call::begin(&counter, session)?;
        let wanted = Wanted::new(room, holding);
        let (round, lease, wake) = lock(&counter).begin_take(session)?;
        call.round = Some(round);
        let until = until(lease);
        let mut first = true;
        loop {
            let last = Instant::now() >= until;
            let served = lock(&counter).serve(session, round, &wanted, first);
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

    /// Where reports of a session go in order: whoever has this may report.
    pub(crate) fn turn(&self, name: &str, session: Uuid) -> Result<Arc<tokio::sync::Mutex<()>>, JoinFirst> {
        let counter = self.known(name)?;
        lock(&counter).turn(session).ok_or(JoinFirst)
    }

    /// A session that was to have this will not.
    pub(crate) fn done_with(&self, name: &str, session: Uuid, id: JobId, attempt: u32) {
        if let Ok(counter) = self.known(name) {
            lock(&counter).done_with(session, id, attempt);
        }
    }

    /// Keeps nothing of an agent that nobody knows: names cost memory, and anybody can make them up.
    pub(crate) fn tidy(&self, name: &str) {
        let mut counters = lock(&self.counters);
        // Whoever is about to use it has got hold of it.
        if counters.get(name).is_some_and(|counter| Arc::strong_count(counter) == 1 && lock(counter).is_idle()) {
            counters.remove(name);
        }
    }

    fn known(&self, name: &str) -> Result<Arc<Mutex<Counter>>, JoinFirst> {
        lock(&self.counters).get(name).cloned().ok_or(JoinFirst)
    }

    fn counter(&self, name: &Arc<str>) -> Arc<Mutex<Counter>> {
        lock(&self.counters).entry(name.clone()).or_default().clone()
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<Mutex<Counter>>)> {
        lock(&self.counters).iter().map(|(name, counter)| (name.clone(), counter.clone())).collect()
    }
}

impl runtime::Desk for Desk {
    fn give(&self, handed: Vec<Handed>) {
        let mut by_agent: BTreeMap<Arc<str>, Vec<Handed>> = BTreeMap::new();
        for one in handed {
            if let Some(name) = &one.job.agent {
                by_agent.entry(name.clone()).or_default().push(one);
            }
        }
        let now = Instant::now();
        for (name, handed) in by_agent {
            let due = lock(&self.counter(&name)).lay_out(handed, now);
            let next_look = *lock(&self.next_look);
            if due.is_some_and(|due| next_look.is_none_or(|next| due < next)) {
                self.sooner.notify_one();
            }
        }
    }

    fn told(&self, job: &Arc<Job>, attempt: u32, told: Told) {
        let Some(counter) = job.agent.as_ref().and_then(|name| self.known(name).ok()) else { return };
        match told {
            Told::Stop => lock(&counter).stop(job.id(), attempt),
            Told::Answered => lock(&counter).answered(job, attempt),
        }
    }
}

/// A call of a session that is under way: as long as there is one, the lease does not run.
struct Call {
    counter: Arc<Mutex<Counter>>,
    session: Uuid,
    /// Which call for work it is, if it is one.
    round: Option<u64>,
}

impl Call {
    fn begin(counter: &Arc<Mutex<Counter>>, session: Uuid) -> Result<Call, JoinFirst> {
        lock(counter).call_begins(session)?;
        Ok(Call { counter: counter.clone(), session, round: None })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.counter).call_ends(self.session, self.round);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked while holding it left at worst an attempt with nobody, which a lease or a restart finds.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Joining {
    fn terms(&self) -> Terms {
        Terms { works: self.spec.works.clone(), policy: self.spec.policy.clone() }
    }

    fn member(&self, lease: std::time::Duration) -> Member {
        Member { spec: self.spec.clone(), lease, left_at: None }
    }

    fn session(&self, now: Instant) -> Session {
        Session::new(self.concurrency, self.lease, now)
    }
}
