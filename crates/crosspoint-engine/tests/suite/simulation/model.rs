//! A model of what must hold, kept beside the engine. It is fed with the commands the engine was given and with what
//! the engine stored and did, and reports what is wrong.
//!
//! It knows the rulings from [`super::rule`] and nothing of the machine. Its clock never jumps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Room, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Ending, Request};
use crosspoint_engine::machine::End;

use super::doubt::Dropped;
use super::rule::{Fuse, LEASE_MICROS, OPEN_MICROS, Wish, micros};

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) specs: Arc<Vec<Spec>>,
    pub(crate) jobs: BTreeMap<Seq, Known>,
    /// Which agents join instead of being configured; which of all agents are known; and how many jobs each takes at a
    /// time.
    pub(crate) joins: Vec<bool>,
    pub(crate) known: Vec<bool>,
    pub(crate) capacity: Vec<u32>,
    pub(crate) fuses: Vec<Fuse>,
    pub(crate) dropped: Vec<Dropped>,
    /// The agent whose health must be checked because it dropped a connection just now.
    pub(crate) check_wanted: Option<usize>,
    pub(crate) drained: Vec<bool>,
    /// The jobs that have not ended.
    pub(crate) live: Vec<Seq>,
    pub(crate) keys: BTreeMap<Box<str>, Seq>,
    pub(crate) room: Room,
    /// In a life that only visits: the first job that this process drives, and the earlier jobs that were taken up.
    pub(crate) held: Option<(Seq, BTreeSet<Seq>)>,
    pub(crate) resting: bool,
    /// How the life before this one ended.
    pub(crate) end: End,
    /// Suspects that were under way together at that end: it is not known which of them is to blame.
    pub(crate) doubtful: BTreeSet<Seq>,
    pub(crate) now: i64,
    /// The time of the wall clock, less `now`.
    pub(crate) offset: i64,
    /// Number of questions that were answered from earlier answers, without asking.
    pub(crate) answered_again: u64,
    /// How often something happened that the engine does not store.
    pub(crate) reached: BTreeMap<&'static str, u64>,
}

#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) request: Arc<Request>,
    pub(crate) acknowledged: bool,
    /// The time from which its caller's limit counts.
    pub(crate) accepted: i64,
    pub(crate) started: Option<i64>,
    pub(crate) waited: i64,
    pub(crate) life: Life,
    /// Whether its row was last written by a life that only visits, and whether that was so when this life began.
    pub(crate) written_by_visit: bool,
    pub(crate) visited: bool,
    /// When the attempt under way was taken up.
    pub(crate) taken_up: Option<i64>,
    /// How long its last pause is.
    pub(crate) pause: i64,
    /// The end of the pause in its row, also if that pause is over.
    pub(crate) pause_on_disk: Option<i64>,
    pub(crate) agent: usize,
    /// The agent that had each attempt, from the first on.
    pub(crate) had: Vec<usize>,
    /// The agent whose share of the room it takes.
    pub(crate) charged: Option<usize>,
    pub(crate) attempts: u32,
    pub(crate) repeats: u32,
    pub(crate) cut_short: u32,
    /// What its link remembers, and of which attempt.
    pub(crate) memory: Option<(u32, Box<str>)>,
    /// Whether the job is set aside, because what happens to it cannot be written.
    pub(crate) aside: bool,
    /// Whether it ever was set aside.
    pub(crate) was_aside: bool,
    pub(crate) events: u32,
    pub(crate) outputs: u64,
    pub(crate) asked: usize,
    pub(crate) answers: Vec<(Box<str>, Box<str>)>,
    /// The attempt that an agent should be at, according to what agents were told.
    pub(crate) wanted: Option<u32>,
    pub(crate) outcome: Option<Arc<Ending>>,
    /// When it ended, according to the last start.
    pub(crate) ended: i64,
    /// Whether the job was kept long enough and is removed.
    pub(crate) purged: bool,
    /// The last progress that was heard, and the last that was stored.
    pub(crate) heard_percent: Option<f64>,
    pub(crate) shown_percent: Option<f64>,
    pub(crate) shown_at: Option<i64>,
    /// Whether progress was stored sooner than allowed, which is right only if the outcome follows.
    pub(crate) hurried: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Life {
    Queued,
    Paused { until: i64 },
    With { heard: i64 },
    Asking { since: i64, question: Box<str> },
    Poisoned,
    Ended,
}

/// Why something may happen.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Started,
    Settled,
    Heard,
    Output(u32),
    Asked,
    Done(u32, Box<str>),
    Failed(u32, Failure, Dispatched, Wish),
    Died(u32),
    Withdrawn(u32),
    Answered(Box<str>),
    Cancelled,
    /// An operator released the job.
    Released,
}

impl Known {
    pub(crate) fn new(request: Arc<Request>, charged: Option<usize>, now: i64) -> Known {
        Known {
            request,
            acknowledged: false,
            accepted: now,
            started: None,
            waited: 0,
            life: Life::Queued,
            written_by_visit: false,
            visited: false,
            taken_up: None,
            pause: 0,
            pause_on_disk: None,
            agent: 0,
            had: Vec::new(),
            charged,
            attempts: 0,
            repeats: 0,
            cut_short: 0,
            memory: None,
            aside: false,
            was_aside: false,
            events: 1,
            outputs: 0,
            asked: 0,
            answers: Vec::new(),
            wanted: None,
            outcome: None,
            ended: 0,
            purged: false,
            heard_percent: None,
            shown_percent: None,
            shown_at: None,
            hurried: false,
        }
    }

    pub(crate) fn is_present(&self, attempt: u32) -> bool {
        attempt == self.attempts && self.has_agent()
    }

    /// What is remembered of the attempt under way. Nothing is remembered of an attempt that is over.
    pub(crate) fn remembered(&self) -> Option<&str> {
        self.memory.as_ref().filter(|(attempt, _)| self.is_present(*attempt)).map(|(_, memory)| &**memory)
    }

    pub(crate) fn has_agent(&self) -> bool {
        match self.life {
            Life::With { .. } | Life::Asking { .. } => true,
            Life::Queued | Life::Paused { .. } | Life::Poisoned | Life::Ended => false,
        }
    }

    /// Whether it may be what kills the process.
    pub(crate) fn is_suspect(&self) -> bool {
        self.cut_short >= 2
    }

    /// Whether it is a suspect that began less than half a minute ago.
    pub(crate) fn is_young_suspect(&self, now: i64) -> bool {
        let young = self.started.is_some_and(|started| now < started + 30_000_000);
        self.is_suspect() && matches!(self.life, Life::With { .. }) && young
    }

    pub(crate) fn leave_asking(&mut self, now: i64) {
        if let Life::Asking { since, .. } = self.life {
            self.waited += now - since;
        }
    }
}

impl Model {
    pub(crate) fn new(specs: Arc<Vec<Spec>>, joins: Vec<bool>, room: Room) -> Model {
        let agents = specs.len();
        Model {
            known: joins.iter().map(|joins| !joins).collect(),
            capacity: specs.iter().zip(&joins).map(|(spec, joins)| if *joins { 0 } else { spec.concurrency }).collect(),
            joins,
            specs,
            jobs: BTreeMap::new(),
            fuses: vec![Fuse::Closed(0); agents],
            dropped: vec![Dropped::default(); agents],
            check_wanted: None,
            reached: BTreeMap::new(),
            drained: vec![false; agents],
            live: Vec::new(),
            keys: BTreeMap::new(),
            room,
            held: None,
            resting: false,
            end: End::Clean,
            doubtful: BTreeSet::new(),
            now: 0,
            offset: 0,
            answered_again: 0,
        }
    }

    /// Converts a time of the wall clock to the clock that never jumps.
    pub(crate) fn steady(&self, wall: Time) -> i64 {
        wall.0 - crate::made::T0.0 - self.offset
    }

    pub(crate) fn wall(&self) -> Time {
        Time(crate::made::T0.0 + self.now + self.offset)
    }

    pub(crate) fn agent_index(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| *spec.name == *name)
    }

    /// Whether this process drives the job.
    pub(crate) fn drives(&self, seq: Seq) -> bool {
        let held = self.held.as_ref().is_some_and(|(first, taken)| seq < *first && !taken.contains(&seq));
        !held && !self.jobs.get(&seq).is_some_and(|job| job.aside)
    }

    /// Counts the jobs of an agent that this process drives and that are as `wanted` says.
    pub(crate) fn count(&self, agent: usize, wanted: impl Fn(&Known) -> bool) -> usize {
        // The job that is just being looked at is not among them.
        let is_so = |seq: &&Seq| {
            let job = self.jobs.get(seq);
            job.is_some_and(|job| job.agent == agent && self.drives(**seq) && wanted(job))
        };
        self.live.iter().filter(is_so).count()
    }

    pub(crate) fn running(&self, agent: usize) -> usize {
        self.count(agent, |job| matches!(job.life, Life::With { .. }))
    }

    pub(crate) fn waiting(&self, agent: usize) -> usize {
        self.count(agent, |job| matches!(job.life, Life::Asking { .. }))
    }

    /// Jobs with agents that may be what kills the process.
    pub(crate) fn suspects_with(&self) -> BTreeSet<Seq> {
        let is_so = |job: &Known| job.is_suspect() && matches!(job.life, Life::With { .. });
        self.live.iter().copied().filter(|seq| self.drives(*seq) && self.jobs.get(seq).is_some_and(is_so)).collect()
    }

    /// Whether this suspect has to wait for another one.
    pub(crate) fn waits_for_suspect(&self, seq: Seq) -> bool {
        let with = self.suspects_with();
        let holds_up = |other: &Seq| self.doubtful.contains(other) || self.jobs[other].is_young_suspect(self.now);
        with.iter().any(holds_up) || (self.doubtful.contains(&seq) && !with.is_empty())
    }

    /// Whether this agent may take this job, regardless of room.
    pub(crate) fn takes(&self, agent: usize, request: &Request) -> bool {
        let spec = &self.specs[agent];
        self.known[agent]
            && spec.works.contains(&request.work)
            && request.pinned.as_ref().is_none_or(|name| *name == spec.name)
    }

    /// The agent whose share a request takes.
    pub(crate) fn charged(&self, request: &Request) -> Option<usize> {
        if let Some(name) = &request.pinned {
            return self.agent_index(name);
        }
        let takes = |index: &usize| self.known[*index] && self.specs[*index].works.contains(&request.work);
        let mut takers = (0..self.specs.len()).filter(takes);
        takers.next().filter(|_| takers.next().is_none())
    }

    /// Counts the shares anew from what is on disk.
    fn charge_anew(&mut self) {
        for seq in self.live.clone() {
            let charged = self.charged(&self.jobs[&seq].request.clone());
            self.jobs.get_mut(&seq).into_iter().for_each(|job| job.charged = charged);
        }
    }

    pub(crate) fn is_open_to_work(&self, agent: usize) -> bool {
        let most = if self.joins[agent] { u32::MAX } else { self.specs[agent].waiting_max };
        !self.drained[agent] && matches!(self.fuses[agent], Fuse::Closed(_)) && self.waiting(agent) < most as usize
    }

    /// When a job's time is up (ALL-4): by the caller's limit if there is one, else by the agent's, which stands still
    /// while people are asked. It is never before an attempt that was taken up could be asked about (ALL-3).
    pub(crate) fn deadline(&self, job: &Known) -> Option<i64> {
        let up = match (job.request.limits.total, &job.life) {
            (Some(total), _) => job.accepted + micros(total),
            (None, Life::Queued | Life::With { .. } | Life::Paused { .. }) => {
                job.started? + job.waited + self.total_micros(job.agent)
            }
            (None, Life::Asking { .. } | Life::Poisoned | Life::Ended) => return None,
        };
        let asked = job.taken_up.filter(|_| job.has_agent()).map(|at| at + self.take_up_micros(job.agent));
        Some(up.max(asked.unwrap_or(i64::MIN)))
    }

    fn take_up_micros(&self, agent: usize) -> i64 {
        match (self.known[agent], self.joins[agent]) {
            (false, _) => 30_000_000,
            (true, true) => LEASE_MICROS,
            (true, false) => micros(self.specs[agent].policy.take_up),
        }
    }

    /// Whether the present attempt has been silent for longer than it may.
    pub(crate) fn is_silent(&self, job: &Known) -> bool {
        let silence = self.specs[job.agent].policy.silence.map(|own| job.request.limits.silence.unwrap_or(own));
        match (&job.life, silence) {
            (Life::With { heard }, Some(silence)) => self.now >= heard + micros(silence),
            (
                Life::With { .. }
                | Life::Queued
                | Life::Paused { .. }
                | Life::Asking { .. }
                | Life::Poisoned
                | Life::Ended,
                _,
            ) => false,
        }
    }

    /// Jobs that have paused long enough return to the queue.
    pub(crate) fn end_pauses(&mut self) {
        for seq in self.live.clone() {
            let is_over = matches!(self.jobs[&seq].life, Life::Paused { until } if until <= self.now);
            if is_over && self.drives(seq) {
                self.jobs.get_mut(&seq).into_iter().for_each(|job| job.life = Life::Queued);
            }
        }
    }

    /// The core was made anew, in the same life.
    pub(crate) fn remake(&mut self) {
        self.charge_anew();
        self.forget_drops();
        let now = self.now;
        for seq in &self.live {
            if let Some(job) = self.jobs.get_mut(seq) {
                job.pauses_again();
                job.forget(now);
            }
        }
    }

    /// A life begins. The life before it last wrote at `alive` that it was alive. `unseen` is by how much the clock has
    /// jumped meanwhile; only `back`, the part by which it was visibly set back, can be told from time that passed.
    /// Time in which no process was alive counts against no job.
    pub(crate) fn begin_life(&mut self, alive: Option<i64>, unseen: i64, back: i64) {
        self.charge_anew();
        self.forget_drops();
        let now = self.now;
        // Times on disk are of the wall clock, and move with it, except for the part of a set-back that was seen.
        let wall = back - unseen;
        // Time in which no process was alive counts against no job, unless this life only visits.
        let away = if self.held.is_some() { wall } else { alive.map_or(-unseen, |alive| now - alive) };
        let latest = if self.held.is_some() { i64::MAX } else { now };
        for seq in &self.live {
            let Some(job) = self.jobs.get_mut(seq) else { continue };
            job.visited = job.written_by_visit;
            job.accepted = (job.accepted + away).min(latest);
            let away = if let Life::Asking { .. } = job.life { wall } else { away };
            job.started = job.started.map(|started| (started + away).min(latest));
            job.pauses_again();
            match &mut job.life {
                Life::Paused { until } if self.held.is_some() => *until += wall,
                Life::Paused { until } => *until = (*until + wall).min(now + job.pause),
                Life::Asking { since, .. } => *since = (*since + wall).min(latest),
                Life::With { .. } | Life::Queued | Life::Poisoned | Life::Ended => {}
            }
            job.forget(now);
            job.wanted = None;
        }
        for job in self.jobs.values_mut().filter(|job| job.outcome.is_some()) {
            job.ended = (job.ended + wall).min(now);
        }
        self.doubtful =
            if self.held.is_none() && self.end == End::Unclean { self.suspects_with() } else { BTreeSet::new() };
        if self.doubtful.len() == 1 {
            self.doubtful.clear();
        }
        for fuse in &mut self.fuses {
            if let Fuse::Open(Some(until)) = fuse {
                *until = (*until + wall).min(now + OPEN_MICROS);
            }
        }
    }
}

impl Known {
    /// The end of a pause is not written, so a start finds the job paused again.
    fn pauses_again(&mut self) {
        if let (Life::Queued, Some(until)) = (&self.life, self.pause_on_disk) {
            self.life = Life::Paused { until };
        }
    }

    /// The row was written, with what it says of a pause.
    pub(crate) fn written(&mut self, by_visit: bool) {
        self.written_by_visit = by_visit;
        self.pause_on_disk = if let Life::Paused { until } = self.life { Some(until) } else { None };
    }

    /// Forgets what only the core knew.
    fn forget(&mut self, now: i64) {
        self.shown_at = None;
        self.heard_percent = self.shown_percent;
        if self.has_agent() {
            self.taken_up = Some(now);
        }
        if let Life::With { heard } = &mut self.life {
            *heard = now;
        }
    }
}
