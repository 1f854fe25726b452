//! Leases: a session that has not been heard of for its lease is dead, and the attempts that it held died with it. An
//! attempt that no session takes goes back to the engine's queue before its time is up, because the clocks of an
//! attempt run from the moment it is queued here. It also goes back when there is no room for it any more.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crosspoint_contracts::reply::Failed;
use crosspoint_engine::core::Grip;
use crosspoint_engine::id::JobId;
use crosspoint_engine::machine::Event;
use crosspoint_engine::runtime::Engine;
use uuid::Uuid;

use super::queue::Queue;
use super::session::Queued;
use super::{Queues, lock};

/// Pause of the lease loop when there is nothing to watch. A session that joins meanwhile wakes the loop.
const IDLE: Duration = Duration::from_secs(3_600);

/// What was lost with a session, or was never claimed.
struct Lost {
    name: Arc<str>,
    queue: Arc<Mutex<Queue>>,
    dead: Vec<(JobId, u32)>,
    /// Attempts that were queued for too long without being taken.
    stale: Vec<Queued>,
    /// Whether a session ended, so that the agent takes less.
    session: bool,
}

impl Queues {
    /// Watches the leases for as long as it is polled.
    pub(crate) async fn keep_leases(self: Arc<Queues>, engine: Engine) {
        loop {
            let now = Instant::now();
            // Work that is queued during this round, and is due before the time set here, wakes the loop again.
            *lock(&self.next_look) = Some(now + IDLE);
            for lost in self.lost(now) {
                let (queues, engine) = (self.clone(), engine.clone());
                tokio::spawn(async move { queues.bury(&engine, lost).await });
            }
            let next = self.next_due(Instant::now());
            *lock(&self.next_look) = Some(next);
            let _ = tokio::time::timeout_at(next.into(), self.sooner.notified()).await;
        }
    }

    /// Removes a session that leaves: what it holds comes back at once.
    pub(crate) async fn leave(self: &Arc<Queues>, engine: &Engine, name: &str, session: Uuid) {
        let Ok(queue) = self.known(name) else { return };
        let Some(dead) = lock(&queue).leave(session) else { return };
        let lost = Lost { name: name.into(), queue, dead, stale: Vec::new(), session: true };
        let (queues, engine) = (self.clone(), engine.clone());
        // In a task of its own: the client may disconnect before it is done.
        let _ = tokio::spawn(async move { queues.bury(&engine, lost).await }).await;
    }

    /// Puts all attempts that no session has taken back into the engine's queue, because the server is about to end.
    pub(crate) async fn put_back(&self, engine: &Engine) {
        for (name, queue) in self.all() {
            let ready = lock(&queue).ready.drain(..).collect();
            withdraw(engine, &name, ready).await;
        }
    }

    fn lost(&self, now: Instant) -> Vec<Lost> {
        let mut all = Vec::new();
        for (name, queue) in self.all() {
            let mut inside = lock(&queue);
            let is_dead = |session: &super::Session| session.dies_at(now) <= now;
            let dead: Vec<Uuid> = inside.sessions.iter().filter(|(_, one)| is_dead(one)).map(|(id, _)| *id).collect();
            let mut held: Vec<(JobId, u32)> = Vec::new();
            for session in &dead {
                held.extend(inside.leave(*session).unwrap_or_default());
            }
            let over: Vec<JobId> =
                inside.unclaimed.iter().filter(|(_, (_, until))| *until <= now).map(|(id, _)| *id).collect();
            held.extend(
                over.iter()
                    .filter_map(|id| inside.unclaimed.remove(id))
                    .map(|(queued, _)| (queued.job.id(), queued.attempt)),
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
                all.push(Lost { name, queue, dead: held, stale, session: !dead.is_empty() });
            }
        }
        all
    }

    fn next_due(&self, now: Instant) -> Instant {
        let next = |queue: &Arc<Mutex<Queue>>| {
            let inside = lock(queue);
            let sessions = inside.sessions.values().map(|session| session.dies_at(now)).min();
            let unclaimed = inside.unclaimed.values().map(|(_, until)| *until).min();
            let ready = inside.ready.iter().map(|queued| queued.until).min();
            sessions.into_iter().chain(unclaimed).chain(ready).min()
        };
        self.all().iter().filter_map(|(_, queue)| next(queue)).min().unwrap_or(now + IDLE)
    }

    async fn bury(&self, engine: &Engine, lost: Lost) {
        let Lost { name, queue, dead, stale, session } = lost;
        let capacity_set = session.then(|| {
            let inside = lock(&queue);
            // Put into the inbox while no session can join: a capacity that is sent later is a newer one.
            engine.set_capacity(&name, inside.capacity())
        });
        let died = |(id, attempt): (JobId, u32)| {
            let result = Err(Failed::dead("The worker that had the work was not heard from any more."));
            (id, Grip::Holds, Event::Finish { attempt, result })
        };
        let dead: Vec<_> = dead.into_iter().map(died).collect();
        if !dead.is_empty() {
            let _ = engine.report(&name, dead).await;
        }
        withdraw(engine, &name, stale).await;
        if let Some(capacity_set) = capacity_set {
            let _ = capacity_set.await;
            // From here on no more is queued than there is room for; what was queued before goes back.
            withdraw_excess(engine, &name, &queue).await;
            drop(queue);
            // This may have been the last session of an agent that was forgotten or never joined.
            if engine.agent(&name).is_none() {
                self.tidy(&name);
            }
        }
    }
}

/// Gives back the attempts that no session has taken and for which there is no room.
pub(super) async fn withdraw_excess(engine: &Engine, name: &Arc<str>, queue: &Mutex<Queue>) {
    let excess = lock(queue).excess();
    withdraw(engine, name, excess).await;
}

async fn withdraw(engine: &Engine, name: &Arc<str>, queued: Vec<Queued>) {
    let one = |queued: &Queued| (queued.job.id(), Grip::Holds, Event::Withdrawn { attempt: queued.attempt });
    let queued: Vec<_> = queued.iter().map(one).collect();
    if !queued.is_empty() {
        let _ = engine.report(name, queued).await;
    }
}
