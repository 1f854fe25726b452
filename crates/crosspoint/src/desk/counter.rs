//! One agent's part of the desk: what is laid out for it, and who works under its name. It never waits, and knows time only as it is
//! told.

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

use super::session::{Given, Laid, Ordered, Session, Wanted};
use super::{JoinFirst, Joining, NotJoined, SESSIONS_MAX};

/// However short a job's time is, work lies here for so long before it goes back: an agent that is there has taken it by then.
const LIES_MIN: Duration = Duration::from_millis(10);

/// So many broken rules of one attempt are recorded.
const BROKEN_MAX: usize = 20;

#[derive(Default)]
pub(super) struct Counter {
    /// What all who are there have joined for.
    terms: Option<Terms>,
    pub(super) sessions: BTreeMap<Uuid, Session>,
    /// What nobody has taken yet, in the order in which it was handed out.
    pub(super) ready: VecDeque<Laid>,
    /// What was under way when we began, and until when whoever has it may say so.
    pub(super) unclaimed: BTreeMap<JobId, (Laid, Instant)>,
    /// Whoever was woken last for new work; the next one is next.
    woken: Uuid,
}

/// What a call for work comes to.
pub(super) enum Served {
    Ordered(Ordered),
    /// The session is here no more.
    Left,
    /// It has asked again: this answer is for nobody.
    AskedAgain,
}

/// What it comes to that somebody joins.
pub(super) struct Entered {
    /// What is to be remembered of the agent.
    pub(super) member: Member,
    /// Whether the session is new.
    pub(super) is_new: bool,
    /// Whether it takes less than before.
    pub(super) fell: bool,
}

/// What an agent takes, and within which limits.
#[derive(Clone, PartialEq)]
pub(super) struct Terms {
    pub(super) works: Vec<Arc<str>>,
    pub(super) policy: Policy,
}

impl Counter {
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

    /// Whether there is nothing here that anybody could miss.
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.ready.is_empty() && self.unclaimed.is_empty()
    }

    /// How many jobs all who are there take.
    pub(super) fn capacity(&self) -> u32 {
        self.sessions.values().fold(0, |sum: u32, session| sum.saturating_add(session.concurrency))
    }

    /// What nobody has taken and there is no place for any more, the last first. That some who have work only wait for a person is
    /// not known here: what goes back for them comes again at once.
    pub(super) fn excess(&mut self) -> Vec<Laid> {
        let held: usize = self.sessions.values().map(|session| session.held.len()).sum();
        let free = (self.capacity() as usize).saturating_sub(held);
        if self.ready.len() > free { self.ready.split_off(free).into() } else { Vec::new() }
    }

    /// What has lain here for so long that its time would soon be up, although nobody has begun with it.
    pub(super) fn stale(&mut self, now: Instant) -> Vec<Laid> {
        if self.ready.iter().all(|laid| laid.until > now) {
            return Vec::new();
        }
        let (stale, ready) = self.ready.drain(..).partition::<Vec<Laid>, _>(|laid| laid.until <= now);
        self.ready = ready.into();
        stale
    }

    /// Takes a session out; gives what it held.
    pub(super) fn leave(&mut self, session: Uuid) -> Option<Vec<(JobId, u32)>> {
        let session = self.sessions.remove(&session)?;
        // A call of it that waits learns that it is over.
        session.wake.notify_one();
        // What it was woken for and has not taken is for others.
        self.wake_for_work();
        Some(session.held.values().map(|laid| (laid.job.id(), laid.attempt)).collect())
    }

    pub(super) fn call_begins(&mut self, session: Uuid) -> Result<(), JoinFirst> {
        let session = self.sessions.get_mut(&session).ok_or(JoinFirst)?;
        session.calls += 1;
        session.heard_at = Instant::now();
        Ok(())
    }

    /// A call ends, also because whoever made it is gone. One for work waits no more, and what it was woken for is for others.
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

    /// A call for work begins, and one that is still open is over.
    pub(super) fn begin_take(&mut self, session: Uuid) -> Result<(u64, Duration, Arc<Notify>), JoinFirst> {
        let session = self.sessions.get_mut(&session).ok_or(JoinFirst)?;
        session.round += 1;
        session.ended.clear();
        // The one before waits on the old bell, and must not be the one to hear the new.
        std::mem::take(&mut session.wake).notify_one();
        Ok((session.round, session.lease, session.wake.clone()))
    }

    /// What there is for a session, as one of its calls asks.
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
            && let Some(mut laid) = self.ready.pop_front()
        {
            ordered.give(Given { job: laid.job.clone(), attempt: laid.attempt, input: laid.input.take() });
            session.held.insert(laid.job.id(), laid);
        }
        session.waits_for = if ordered.is_empty() { wanted.room } else { 0 };
        Served::Ordered(ordered)
    }

    /// When it must be looked at again, at the latest.
    pub(super) fn lay_out(&mut self, handed: Vec<Handed>, now: Instant) -> Option<Instant> {
        let mut due: Option<Instant> = None;
        for given in handed {
            let input = given.input();
            let Handed { job, attempt, resumed, .. } = given;
            let until = now + resumed.unwrap_or_else(|| self.patience(&job));
            due = Some(due.map_or(until, |due| due.min(until)));
            let laid = Laid { job, attempt, input, until, broken: BTreeSet::new() };
            match resumed {
                Some(_) => drop(self.unclaimed.insert(laid.job.id(), (laid, until))),
                None => self.ready.push_back(laid),
            }
        }
        self.wake_for_work();
        due
    }

    /// How long a job may lie here: half the time after which it would fail, because nobody is to hear that it may have begun.
    fn patience(&self, job: &Job) -> Duration {
        let policy = self.terms.as_ref().map(|terms| &terms.policy);
        let total = policy.map_or(TOTAL_DEFAULT, |policy| policy.total);
        let silence = policy.and_then(|policy| policy.silence);
        let silence = silence.map_or(total, |settled| job.request.limits.silence.unwrap_or(settled));
        (silence.min(total) / 2).max(LIES_MIN)
    }

    /// Wakes as many as there is work for, in turns.
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

    /// An attempt is not wanted any more. Whoever holds it learns so by listing it.
    pub(super) fn stop(&mut self, id: JobId, attempt: u32) {
        self.ready.retain(|laid| laid.job.id() != id || laid.attempt != attempt);
        if self.unclaimed.get(&id).is_some_and(|(laid, _)| laid.attempt == attempt) {
            self.unclaimed.remove(&id);
        }
        if let Some(session) = self.sessions.values_mut().find(|session| session.holds(id, attempt).is_some()) {
            session.held.remove(&id);
            session.wake.notify_one();
        }
    }

    pub(super) fn answered(&mut self, job: &Arc<Job>, attempt: u32) {
        let id = job.id();
        if let Some((laid, _)) = self.unclaimed.get_mut(&id).filter(|(laid, _)| laid.attempt == attempt) {
            laid.job = job.clone();
        }
        let holder = self.sessions.values_mut().find(|session| session.holds(id, attempt).is_some());
        let Some(session) = holder else { return };
        session.wake.notify_one();
        if let Some(laid) = session.held.get_mut(&id) {
            laid.job = job.clone();
        }
    }

    /// An attempt that a session has, or takes up by speaking of it.
    pub(super) fn held_by(&mut self, session: Uuid, id: JobId, attempt: u32) -> Result<Option<&Laid>, JoinFirst> {
        let session = self.sessions.get_mut(&session).ok_or(JoinFirst)?;
        claim_one(&mut self.unclaimed, session, id, attempt);
        Ok(session.holds(id, attempt))
    }

    /// Whether a session has said before that this rule was broken, or has said enough.
    pub(super) fn knows_broken(&self, session: Uuid, (id, attempt): (JobId, u32), rule: &str) -> bool {
        let laid = self.sessions.get(&session).and_then(|session| session.holds(id, attempt));
        laid.is_none_or(|laid| laid.broken.contains(rule) || laid.broken.len() >= BROKEN_MAX)
    }

    /// It is recorded that this rule was broken.
    pub(super) fn note_broken(&mut self, session: Uuid, (id, attempt): (JobId, u32), rule: &str) {
        let laid = self.sessions.get_mut(&session).and_then(|session| session.held.get_mut(&id));
        if let Some(laid) = laid.filter(|laid| laid.attempt == attempt) {
            laid.broken.insert(rule.into());
        }
    }

    /// The session has said all it had to say about this.
    pub(super) fn done_with(&mut self, session: Uuid, id: JobId, attempt: u32) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        if session.holds(id, attempt).is_some() {
            session.held.remove(&id);
            session.ended.insert(id);
        }
    }
}

/// What was under way when we began, and is on the list.
fn claim(unclaimed: &mut BTreeMap<JobId, (Laid, Instant)>, session: &mut Session, wanted: &Wanted<'_>) {
    if unclaimed.is_empty() {
        return;
    }
    for listed in wanted.holding {
        claim_one(unclaimed, session, listed.id, listed.attempt);
    }
}

fn claim_one(unclaimed: &mut BTreeMap<JobId, (Laid, Instant)>, session: &mut Session, id: JobId, attempt: u32) {
    if unclaimed.get(&id).is_some_and(|(laid, _)| laid.attempt == attempt)
        && let Some((laid, _)) = unclaimed.remove(&id)
    {
        session.held.insert(id, laid);
    }
}

#[cfg(test)]
mod tests;
