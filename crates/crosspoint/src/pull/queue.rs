//! The queue of one agent: what is queued for it, and the sessions under its name. It never waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_engine::core::Member;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::policy::{Policy, TOTAL_DEFAULT};
use crosspoint_engine::runtime::Handed;
use tokio::sync::Notify;
use uuid::Uuid;

use super::session::{Given, Ordered, Queued, Session, Wanted};
use super::{JoinFirst, Joining, NotJoined, SESSIONS_MAX};

/// Shortest time that work stays queued before it goes back, however short the job's limits are: an agent that is there
/// has taken it by then.
const QUEUED_MIN: Duration = Duration::from_millis(10);

/// Most broken rules that are recorded for one attempt.
const BROKEN_MAX: usize = 20;

#[derive(Default)]
pub(super) struct Queue {
    /// What all present sessions have joined for.
    terms: Option<Terms>,
    pub(super) sessions: BTreeMap<Uuid, Session>,
    /// Attempts that no session has taken yet, in the order in which they were handed out.
    pub(super) ready: VecDeque<Queued>,
    /// Attempts that were under way when the server started, and until when the session that holds one may claim it.
    pub(super) unclaimed: BTreeMap<JobId, (Queued, Instant)>,
    /// The session that was woken last for new work; the one after it is next.
    woken: Uuid,
}

/// What a call for work comes to.
pub(super) enum Served {
    Ordered(Ordered),
    /// The session is gone.
    Left,
    /// The session has called again: this answer goes to no call.
    AskedAgain,
}

/// What joining comes to.
pub(super) struct Entered {
    /// What the engine is to remember of the agent.
    pub(super) member: Member,
    /// Whether the session is new.
    pub(super) is_new: bool,
    /// Whether the session takes less than before.
    pub(super) fell: bool,
}

/// What an agent takes, and within which limits.
#[derive(Clone, PartialEq)]
pub(super) struct Terms {
    pub(super) works: Vec<Arc<str>>,
    pub(super) policy: Policy,
}

impl Queue {
    pub(super) fn join(&mut self, joining: &Joining, now: Instant) -> Result<Entered, NotJoined> {
        let before = self.sessions.get(&joining.session).map(|session| session.concurrency);
        let others = self.sessions.keys().filter(|id| **id != joining.session).count();
        let terms = joining.terms();
        if others > 0 && self.terms.as_ref().is_some_and(|known| *known != terms) {
            return Err(NotJoined::Otherwise);
        }
        if others >= SESSIONS_MAX {
            return Err(NotJoined::Crowded);
        }
        self.terms = Some(terms);
        let session = self.sessions.entry(joining.session).or_insert_with(|| joining.session(now));
        (session.concurrency, session.lease, session.heard_at) = (joining.concurrency, joining.lease, now);
        let lease = self.sessions.values().map(|session| session.lease).max().unwrap_or(joining.lease);
        let fell = before.is_some_and(|before| joining.concurrency < before);
        Ok(Entered { member: joining.member(lease), is_new: before.is_none(), fell })
    }

    /// Whether the queue can be dropped: it holds no sessions and no attempts.
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.ready.is_empty() && self.unclaimed.is_empty()
    }

    /// Returns how many jobs all present sessions take together.
    pub(super) fn capacity(&self) -> u32 {
        self.sessions.values().fold(0, |sum: u32, session| sum.saturating_add(session.concurrency))
    }

    /// Removes and returns the attempts that no session has taken and for which there is no room any more, the newest
    /// of the queue. It is not known here which sessions only wait for a person, so an attempt that goes back because
    /// of them comes again at once.
    pub(super) fn excess(&mut self) -> Vec<Queued> {
        let held: usize = self.sessions.values().map(|session| session.held.len()).sum();
        let free = (self.capacity() as usize).saturating_sub(held);
        if self.ready.len() > free { self.ready.split_off(free).into() } else { Vec::new() }
    }

    /// Removes and returns the attempts that have been queued for so long that their time would soon be up, although no
    /// session has begun them.
    pub(super) fn stale(&mut self, now: Instant) -> Vec<Queued> {
        if self.ready.iter().all(|queued| queued.until > now) {
            return Vec::new();
        }
        let (stale, ready) = self.ready.drain(..).partition::<Vec<Queued>, _>(|queued| queued.until <= now);
        self.ready = ready.into();
        stale
    }

    /// Removes a session; returns the attempts that it held.
    pub(super) fn leave(&mut self, session: Uuid) -> Option<Vec<(JobId, u32)>> {
        let session = self.sessions.remove(&session)?;
        // A waiting call of the session learns that it is over.
        session.wake.notify_one();
        // Work that the session was woken for and has not taken goes to other sessions.
        self.wake_for_work();
        Some(session.held.values().map(|queued| (queued.job.id(), queued.attempt)).collect())
    }

    pub(super) fn call_begins(&mut self, session: Uuid) -> Result<(), JoinFirst> {
        let session = self.sessions.get_mut(&session).ok_or(JoinFirst)?;
        session.calls += 1;
        session.heard_at = Instant::now();
        Ok(())
    }

    /// Ends a call, also when the session closed it. A call for work waits no more, and work that it was woken for goes
    /// to other sessions.
    pub(super) fn call_ends(&mut self, session: Uuid, round: Option<u64>) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.calls = session.calls.saturating_sub(1);
            session.heard_at = Instant::now();
            if round == Some(session.round) {
                session.waits_for = 0;
            }
        }
        if round.is_some() {
            self.wake_for_work();
        }
    }

    pub(super) fn turn(&self, session: Uuid) -> Option<Arc<tokio::sync::Mutex<()>>> {
        Some(self.sessions.get(&session)?.turn.clone())
    }

    /// Begins a call for work; an earlier one of the session that is still open is over.
    pub(super) fn begin_take(&mut self, session: Uuid) -> Result<(u64, Duration, Arc<Notify>), JoinFirst> {
        let session = self.sessions.get_mut(&session).ok_or(JoinFirst)?;
        session.round += 1;
        session.ended.clear();
        // The earlier call waits on the old notifier, and must not consume a wake-up of the new one.
        std::mem::take(&mut session.wake).notify_one();
        Ok((session.round, session.lease, session.wake.clone()))
    }

    /// Returns what there is for a session, in answer to one of its calls.
    pub(super) fn serve(&mut self, id: Uuid, round: u64, wanted: &Wanted<'_>, first: bool) -> Served {
        let Some(session) = self.sessions.get_mut(&id) else { return Served::Left };
        if session.round != round {
            return Served::AskedAgain;
        }
        let mut ordered = Ordered::default();
        if first {
            claim(&mut self.unclaimed, session, wanted);
            session.give_again(wanted, &mut ordered);
        }
        session.news(wanted, &mut ordered);
        while ordered.jobs.len() < wanted.room
            && !ordered.is_enough()
            && let Some(mut queued) = self.ready.pop_front()
        {
            ordered.give(Given { job: queued.job.clone(), attempt: queued.attempt, input: queued.input.take() });
            session.held.insert(queued.job.id(), queued);
        }
        session.waits_for = if ordered.is_empty() { wanted.room } else { 0 };
        Served::Ordered(ordered)
    }

    /// Queues attempts; those that were under way before a restart wait to be claimed instead. Returns when the first
    /// of them is due.
    pub(super) fn enqueue(&mut self, handed: Vec<Handed>, now: Instant) -> Option<Instant> {
        let mut due: Option<Instant> = None;
        for given in handed {
            let input = given.input();
            let Handed { job, attempt, resumed, .. } = given;
            let until = now + resumed.unwrap_or_else(|| self.queue_time_max(&job));
            due = Some(due.map_or(until, |due| due.min(until)));
            let queued = Queued { job, attempt, input, until, broken: BTreeSet::new() };
            match resumed {
                Some(_) => drop(self.unclaimed.insert(queued.job.id(), (queued, until))),
                None => self.ready.push_back(queued),
            }
        }
        self.wake_for_work();
        due
    }

    /// Returns how long a job may stay queued: half the time after which it would fail, because then its caller would
    /// be told that the job may have begun.
    fn queue_time_max(&self, job: &Job) -> Duration {
        let policy = self.terms.as_ref().map(|terms| &terms.policy);
        let total = policy.map_or(TOTAL_DEFAULT, |policy| policy.total);
        let silence = policy.and_then(|policy| policy.silence);
        let silence = silence.map_or(total, |settled| job.request.limits.silence.unwrap_or(settled));
        (silence.min(total) / 2).max(QUEUED_MIN)
    }

    /// Wakes as many waiting sessions as there is work for, in turns.
    fn wake_for_work(&mut self) {
        let mut left = self.ready.len();
        if left == 0 {
            return;
        }
        let after = self.sessions.range((Bound::Excluded(self.woken), Bound::Unbounded)).map(|(id, _)| *id);
        let before = self.sessions.range(..=self.woken).map(|(id, _)| *id);
        for id in after.chain(before).collect::<Vec<Uuid>>() {
            if left == 0 {
                return;
            }
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let room = std::mem::take(&mut session.waits_for);
            if room > 0 {
                left = left.saturating_sub(room);
                session.wake.notify_one();
                self.woken = id;
            }
        }
    }

    /// Drops an attempt that is not wanted any more. The session that holds it learns so when it lists it.
    pub(super) fn stop(&mut self, id: JobId, attempt: u32) {
        self.ready.retain(|queued| queued.job.id() != id || queued.attempt != attempt);
        if self.unclaimed.get(&id).is_some_and(|(queued, _)| queued.attempt == attempt) {
            self.unclaimed.remove(&id);
        }
        if let Some(session) = self.sessions.values_mut().find(|session| session.holds(id, attempt).is_some()) {
            session.held.remove(&id);
            session.wake.notify_one();
        }
    }

    pub(super) fn answered(&mut self, job: &Arc<Job>, attempt: u32) {
        let id = job.id();
        if let Some((queued, _)) = self.unclaimed.get_mut(&id).filter(|(queued, _)| queued.attempt == attempt) {
            queued.job = job.clone();
        }
        let holder = self.sessions.values_mut().find(|session| session.holds(id, attempt).is_some());
        let Some(session) = holder else { return };
        session.wake.notify_one();
        if let Some(queued) = session.held.get_mut(&id) {
            queued.job = job.clone();
        }
    }

    /// Returns an attempt that the session holds, or claims by reporting on it.
    pub(super) fn held_by(&mut self, session: Uuid, id: JobId, attempt: u32) -> Result<Option<&Queued>, JoinFirst> {
        let session = self.sessions.get_mut(&session).ok_or(JoinFirst)?;
        claim_one(&mut self.unclaimed, session, id, attempt);
        Ok(session.holds(id, attempt))
    }

    /// Whether the session has reported this broken rule before, or has reported as many as are recorded.
    pub(super) fn knows_broken(&self, session: Uuid, (id, attempt): (JobId, u32), rule: &str) -> bool {
        let queued = self.sessions.get(&session).and_then(|session| session.holds(id, attempt));
        queued.is_none_or(|queued| queued.broken.contains(rule) || queued.broken.len() >= BROKEN_MAX)
    }

    /// Notes that this broken rule was recorded.
    pub(super) fn note_broken(&mut self, session: Uuid, (id, attempt): (JobId, u32), rule: &str) {
        let queued = self.sessions.get_mut(&session).and_then(|session| session.held.get_mut(&id));
        if let Some(queued) = queued.filter(|queued| queued.attempt == attempt) {
            queued.broken.insert(rule.into());
        }
    }

    /// Notes that the session has reported the end of this attempt.
    pub(super) fn done_with(&mut self, session: Uuid, id: JobId, attempt: u32) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        if session.holds(id, attempt).is_some() {
            session.held.remove(&id);
            session.ended.insert(id);
        }
    }
}

/// Gives the session the attempts on its list that were under way when the server started.
fn claim(unclaimed: &mut BTreeMap<JobId, (Queued, Instant)>, session: &mut Session, wanted: &Wanted<'_>) {
    if unclaimed.is_empty() {
        return;
    }
    for listed in wanted.holding {
        claim_one(unclaimed, session, listed.id, listed.attempt);
    }
}

fn claim_one(unclaimed: &mut BTreeMap<JobId, (Queued, Instant)>, session: &mut Session, id: JobId, attempt: u32) {
    if unclaimed.get(&id).is_some_and(|(queued, _)| queued.attempt == attempt)
        && let Some((queued, _)) = unclaimed.remove(&id)
    {
        session.held.insert(id, queued);
    }
}

#[cfg(test)]
mod tests;
