//! Leases: who has not been heard of for as long as they may is dead, and what they held died with them. What nobody takes goes back to the
//! queue, before its time is up and when there is no place for it any more: the clocks of work run from when it is laid out.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crosspoint_contracts::reply::Failed;
use crosspoint_engine::core::Grip;
use crosspoint_engine::id::JobId;
use crosspoint_engine::machine::Event;
use crosspoint_engine::runtime::Engine;
use uuid::Uuid;

use super::counter::Counter;
use super::session::Laid;
use super::{Desk, lock};

/// Without anybody to watch, it is looked again so much later; whoever joins in between is told of.
const IDLE: Duration = Duration::from_secs(3_600);

/// What ended with a session, or was never taken up again.
struct Lost {
    name: Arc<str>,
    counter: Arc<Mutex<Counter>>,
    dead: Vec<(JobId, u32)>,
    /// What nobody has taken for too long.
    stale: Vec<Laid>,
    /// Whether a session ended, so that less can be taken.
    session: bool,
}

impl Desk {
    /// Watches the leases, for as long as it is polled.
    pub(crate) async fn keep_leases(self: Arc<Desk>, engine: Engine) {
        loop {
            let now = Instant::now();
            // Whatever is laid out while we look, and is due before this, wakes us again.
            *lock(&self.next_look) = Some(now + IDLE);
            for lost in self.lost(now) {
                let (desk, engine) = (self.clone(), engine.clone());
                tokio::spawn(async move { desk.bury(&engine, lost).await });
            }
            let next = self.next_due(Instant::now());
            *lock(&self.next_look) = Some(next);
            let _ = tokio::time::timeout_at(next.into(), self.sooner.notified()).await;
        }
    }

    /// A session says that it does no more: what it holds comes back at once.
    pub(crate) async fn leave(self: &Arc<Desk>, engine: &Engine, name: &str, session: Uuid) {
        let Ok(counter) = self.known(name) else { return };
        let Some(dead) = lock(&counter).leave(session) else { return };
        let lost = Lost { name: name.into(), counter, dead, stale: Vec::new(), session: true };
        let (desk, engine) = (self.clone(), engine.clone());
        // In a task of its own: whoever asked may leave before it is done.
        let _ = tokio::spawn(async move { desk.bury(&engine, lost).await }).await;
    }

    /// What nobody has taken goes back to the queue: for when we are about to end, and nobody will.
    pub(crate) async fn put_back(&self, engine: &Engine) {
        for (name, counter) in self.all() {
            let ready = lock(&counter).ready.drain(..).collect();
            withdraw(engine, &name, ready).await;
        }
    }

    fn lost(&self, now: Instant) -> Vec<Lost> {
        let mut all = Vec::new();
        for (name, counter) in self.all() {
            let mut inside = lock(&counter);
            let is_dead = |session: &super::Session| session.dies_at(now) <= now;
            let dead: Vec<Uuid> = inside.sessions.iter().filter(|(_, one)| is_dead(one)).map(|(id, _)| *id).collect();
            let mut held: Vec<(JobId, u32)> = Vec::new();
            for session in &dead {
                held.extend(inside.leave(*session).unwrap_or_default());
            }
            let over: Vec<JobId> =
                inside.unclaimed.iter().filter(|(_, (_, until))| *until <= now).map(|(id, _)| *id).collect();
            held.extend(
                over.iter().filter_map(|id| inside.unclaimed.remove(id)).map(|(laid, _)| (laid.job.id(), laid.attempt)),
            );
            let stale = inside.stale(now);
            drop(inside);
            if !dead.is_empty() || !held.is_empty() {
                tracing::warn!(
                    agent = &*name,
                    sessions = dead.len(),
                    attempts = held.len(),
                    "not heard of for a lease"
                );
            }
            if !dead.is_empty() || !held.is_empty() || !stale.is_empty() {
                all.push(Lost { name, counter, dead: held, stale, session: !dead.is_empty() });
            }
        }
        all
    }

    fn next_due(&self, now: Instant) -> Instant {
        let next = |counter: &Arc<Mutex<Counter>>| {
            let inside = lock(counter);
            let sessions = inside.sessions.values().map(|session| session.dies_at(now)).min();
            let unclaimed = inside.unclaimed.values().map(|(_, until)| *until).min();
            let ready = inside.ready.iter().map(|laid| laid.until).min();
            sessions.into_iter().chain(unclaimed).chain(ready).min()
        };
        self.all().iter().filter_map(|(_, counter)| next(counter)).min().unwrap_or(now + IDLE)
    }

    async fn bury(&self, engine: &Engine, lost: Lost) {
        let Lost { name, counter, dead, stale, session } = lost;
        let told = session.then(|| {
            let inside = lock(&counter);
            // Put in while nobody can join: a capacity that is told later is a later one.
            engine.set_capacity(&name, inside.capacity())
        });
        let died = |(id, attempt): (JobId, u32)| {
            let result = Err(Failed::dead("Whoever had the work was not heard of any more."));
            (id, Grip::Holds, Event::Finish { attempt, result })
        };
        let dead: Vec<_> = dead.into_iter().map(died).collect();
        if !dead.is_empty() {
            let _ = engine.report(&name, dead).await;
        }
        withdraw(engine, &name, stale).await;
        if let Some(told) = told {
            let _ = told.await;
            // Once that is told, no more is laid out than there is place for; what was before goes back.
            withdraw_excess(engine, &name, &counter).await;
            drop(counter);
            // Of an agent that was forgotten, or never joined, this may have been the last.
            if engine.agent(&name).is_none() {
                self.tidy(&name);
            }
        }
    }
}

/// Gives back what nobody has taken and there is no place for.
pub(super) async fn withdraw_excess(engine: &Engine, name: &Arc<str>, counter: &Mutex<Counter>) {
    let excess = lock(counter).excess();
    withdraw(engine, name, excess).await;
}

async fn withdraw(engine: &Engine, name: &Arc<str>, laid: Vec<Laid>) {
    let one = |laid: &Laid| (laid.job.id(), Grip::Holds, Event::Withdrawn { attempt: laid.attempt });
    let laid: Vec<_> = laid.iter().map(one).collect();
    if !laid.is_empty() {
        let _ = engine.report(name, laid).await;
    }
}
