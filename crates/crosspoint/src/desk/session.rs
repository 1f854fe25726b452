//! One who works under an agent's name: what it holds, and what it says it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use tokio::sync::Notify;

/// An attempt on the desk.
pub(super) struct Laid {
    /// As it was when something last happened to it that its agent must know.
    pub(super) job: Arc<Job>,
    pub(super) attempt: u32,
    /// Until it is given; should it have to be given again, it is read from the store.
    pub(super) input: Option<Bytes>,
    /// Until when it may lie here with nobody taking it.
    pub(super) until: Instant,
    /// The rules that whoever has it says were broken.
    pub(super) broken: BTreeSet<Box<str>>,
}

pub(super) struct Session {
    pub(super) concurrency: u32,
    pub(super) lease: Duration,
    pub(super) heard_at: Instant,
    /// Calls that are under way.
    pub(super) calls: u32,
    /// Which call for work is the last: an earlier one that is still open is nobody's any more.
    pub(super) round: u64,
    /// For how many jobs the call that waits has room; 0 where none waits.
    pub(super) waits_for: usize,
    pub(super) wake: Arc<Notify>,
    pub(super) held: BTreeMap<JobId, Laid>,
    /// What was ended since the last call for work began: it lists them still, and knows already.
    pub(super) ended: BTreeSet<JobId>,
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

/// What a session says it holds.
#[derive(Clone, Copy)]
pub(crate) struct Holding {
    pub(crate) id: JobId,
    pub(crate) attempt: u32,
    /// How many answers it has.
    pub(crate) answers: u32,
}

/// What a call for work is about.
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
    /// Which attempt, the number of the answer, and the answer.
    pub(crate) answers: Vec<(JobId, u32, usize, Body)>,
    /// How long the inputs are in all.
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

    /// When it is dead unless it is heard of before; while a call is under way, it is well.
    pub(super) fn dies_at(&self, now: Instant) -> Instant {
        if self.calls > 0 { now + self.lease } else { self.heard_at + self.lease }
    }

    pub(super) fn holds(&self, id: JobId, attempt: u32) -> Option<&Laid> {
        self.held.get(&id).filter(|laid| laid.attempt == attempt)
    }

    /// What of its list is not wanted any more, and the answers it does not have.
    pub(super) fn news(&self, wanted: &Wanted<'_>, ordered: &mut Ordered) {
        for listed in wanted.holding {
            match self.holds(listed.id, listed.attempt) {
                Some(laid) => push_answers(laid, listed.answers as usize, ordered),
                None if self.ended.contains(&listed.id) => {}
                None => ordered.stop.push((listed.id, listed.attempt)),
            }
        }
    }

    /// What it holds and does not list never arrived.
    pub(super) fn give_again(&self, wanted: &Wanted<'_>, ordered: &mut Ordered) {
        let lost = self.held.iter().filter(|(id, _)| !wanted.listed.contains(id));
        let again = |laid: &Laid| Given { job: laid.job.clone(), attempt: laid.attempt, input: laid.input.clone() };
        for (_, laid) in lost.take(wanted.room) {
            ordered.give(again(laid));
            push_answers(laid, 0, ordered);
            if ordered.is_enough() {
                return;
            }
        }
    }
}

fn push_answers(laid: &Laid, has: usize, ordered: &mut Ordered) {
    let given = laid.job.running().map_or(0, |running| running.asked as usize);
    let answers = laid.job.answers.iter().take(given).enumerate().skip(has);
    let id = laid.job.id();
    ordered.answers.extend(answers.map(|(at, answered)| (id, laid.attempt, at + 1, answered.answer.clone())));
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

    /// Whether the rest is for the next call.
    pub(super) fn is_enough(&self) -> bool {
        self.bytes >= super::GIVEN_BYTES_MAX
    }
}
