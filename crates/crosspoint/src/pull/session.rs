//! One session under an agent's name: what it holds, and what it says it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use tokio::sync::Notify;

/// An attempt in a pull queue.
pub(super) struct Queued {
    /// The job as it was when something last happened to it that its agent must know.
    pub(super) job: Arc<Job>,
    pub(super) attempt: u32,
    /// Present until it is given to a session. If it has to be given again, it is read from the store.
    pub(super) input: Option<Bytes>,
    /// Until when it may stay queued without a session taking it.
    pub(super) until: Instant,
    /// The broken rules that its session has reported.
    pub(super) broken: BTreeSet<Box<str>>,
}

pub(super) struct Session {
    pub(super) concurrency: u32,
    pub(super) lease: Duration,
    pub(super) heard_at: Instant,
    /// How many calls are under way.
    pub(super) calls: u32,
    /// The number of the latest call for work. An earlier call that is still open is over.
    pub(super) round: u64,
    /// For how many jobs the waiting call has room; 0 when no call waits.
    pub(super) waits_for: usize,
    pub(super) wake: Arc<Notify>,
    pub(super) held: BTreeMap<JobId, Queued>,
    /// Jobs that ended since the latest call for work began. That call still lists them, and the session knows already.
    pub(super) ended: BTreeSet<JobId>,
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

/// What a session says it holds.
#[derive(Clone, Copy)]
pub(crate) struct Holding {
    pub(crate) id: JobId,
    pub(crate) attempt: u32,
    /// How many answers the session has for it.
    pub(crate) answers: u32,
}

/// What a call for work asks for.
pub(super) struct Wanted<'h> {
    pub(super) room: usize,
    pub(super) holding: &'h [Holding],
    pub(super) listed: BTreeSet<JobId>,
}

/// What a session is told to do.
#[derive(Default)]
pub(crate) struct Ordered {
    pub(crate) jobs: Vec<Given>,
    pub(crate) stop: Vec<(JobId, u32)>,
    /// The job, the attempt, the number of the answer, and the answer.
    pub(crate) answers: Vec<(JobId, u32, usize, Body)>,
    /// The length of all inputs together.
    bytes: usize,
}

/// A job for a session.
pub(crate) struct Given {
    pub(crate) job: Arc<Job>,
    pub(crate) attempt: u32,
    pub(crate) input: Option<Bytes>,
}

impl Session {
    pub(super) fn new(concurrency: u32, lease: Duration, now: Instant) -> Session {
        Session {
            concurrency,
            lease,
            heard_at: now,
            calls: 0,
            round: 0,
            waits_for: 0,
            wake: Arc::default(),
            held: BTreeMap::new(),
            ended: BTreeSet::new(),
            turn: Arc::default(),
        }
    }

    /// When the session is dead unless it is heard of before. It does not die while a call is under way.
    pub(super) fn dies_at(&self, now: Instant) -> Instant {
        if self.calls > 0 { now + self.lease } else { self.heard_at + self.lease }
    }

    pub(super) fn holds(&self, id: JobId, attempt: u32) -> Option<&Queued> {
        self.held.get(&id).filter(|queued| queued.attempt == attempt)
    }

    /// Adds the listed attempts that are not wanted any more, and the answers that the session does not have.
    pub(super) fn news(&self, wanted: &Wanted<'_>, ordered: &mut Ordered) {
        for listed in wanted.holding {
            match self.holds(listed.id, listed.attempt) {
                Some(queued) => push_answers(queued, listed.answers as usize, ordered),
                None if self.ended.contains(&listed.id) => {}
                None => ordered.stop.push((listed.id, listed.attempt)),
            }
        }
    }

    /// Adds the attempts that the session holds and does not list: they never arrived.
    pub(super) fn give_again(&self, wanted: &Wanted<'_>, ordered: &mut Ordered) {
        let lost = self.held.iter().filter(|(id, _)| !wanted.listed.contains(id));
        let again =
            |queued: &Queued| Given { job: queued.job.clone(), attempt: queued.attempt, input: queued.input.clone() };
        for (_, queued) in lost.take(wanted.room) {
            ordered.give(again(queued));
            push_answers(queued, 0, ordered);
            if ordered.is_enough() {
                return;
            }
        }
    }
}

fn push_answers(queued: &Queued, has: usize, ordered: &mut Ordered) {
    let given = queued.job.running().map_or(0, |running| running.asked as usize);
    let answers = queued.job.answers.iter().take(given).enumerate().skip(has);
    let id = queued.job.id();
    ordered.answers.extend(answers.map(|(at, answered)| (id, queued.attempt, at + 1, answered.answer.clone())));
}

impl<'h> Wanted<'h> {
    pub(super) fn new(room: usize, holding: &'h [Holding]) -> Wanted<'h> {
        Wanted { room, holding, listed: holding.iter().map(|listed| listed.id).collect() }
    }
}

impl Ordered {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.stop.is_empty() && self.answers.is_empty()
    }

    pub(super) fn give(&mut self, given: Given) {
        self.bytes += given.job.request.input.len();
        self.jobs.push(given);
    }

    /// Whether the answer is large enough, so that the rest is for the next call.
    pub(super) fn is_enough(&self) -> bool {
        self.bytes >= super::GIVEN_BYTES_MAX
    }
}
