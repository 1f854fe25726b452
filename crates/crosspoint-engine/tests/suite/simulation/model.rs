//! A model of what must hold, kept beside the engine. It is fed with the commands the engine was given and with what
//! the engine stored and did, and reports what is wrong.
//!
//! It knows the rulings from [`super::rule`] and nothing of the machine. Its clock never jumps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Room, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Request;
use crosspoint_engine::machine::End;

use super::doubt::Dropped;
use super::grants::Granted;
use super::known::{Known, Life};
use super::rule::{Fuse, LEASE_MICROS, OPEN_MICROS, micros};

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) specs: Arc<Vec<Spec>>,
    pub(crate) jobs: BTreeMap<Seq, Known>,
    /// Which agents join instead of being configured; which of all agents are known; and how many jobs each takes at a
    /// time.
    pub(crate) joins: Vec<bool>,
    pub(crate) known: Vec<bool>,
    pub(crate) capacity: Vec<u32>,
    /// What each agent that joins said last.
    pub(crate) registrations: Vec<Option<Block>>,
    pub(crate) fuses: Vec<Fuse>,
    pub(crate) dropped: Vec<Dropped>,
    /// The agent whose health must be checked because it dropped a connection just now.
    pub(crate) check_wanted: Option<usize>,
    pub(crate) drained: Vec<bool>,
    /// The jobs that have not ended.
    pub(crate) live: Vec<Seq>,
    /// Which job has which name: keys are numbers, and ids are not.
    pub(crate) keys: BTreeMap<Box<str>, Seq>,
    /// How many of its names each job has got by repeats.
    pub(crate) further: BTreeMap<Seq, usize>,
    pub(crate) room: Room,
    pub(crate) grants: BTreeMap<Arc<str>, Granted>,
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

impl Model {
    pub(crate) fn new(specs: Arc<Vec<Spec>>, joins: Vec<bool>, room: Room) -> Model {
        let agents = specs.len();
        Model {
            known: joins.iter().map(|joins| !joins).collect(),
            capacity: vec![0; agents],
            registrations: vec![None; agents],
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
            further: BTreeMap::new(),
            grants: BTreeMap::new(),
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

    /// Whether this agent may take this job, regardless of room and of the type that the job is addressed to.
    pub(crate) fn takes_work(&self, agent: usize, request: &Request) -> bool {
        let spec = &self.specs[agent];
        self.known[agent]
            && spec.works.contains(&request.work)
            && request.pinned.as_ref().is_none_or(|name| *name == spec.name)
    }

    /// Whether this agent may take this job, regardless of room.
    pub(crate) fn takes(&self, agent: usize, request: &Request) -> bool {
        self.takes_work(agent, request) && self.is_addressed(agent, request)
    }

    /// Whether this agent may have the next attempt of this job, regardless of room.
    pub(crate) fn may_have(&self, agent: usize, job: &Known) -> bool {
        self.takes(agent, &job.request) && (!job.stays || job.agent == agent)
    }

    /// The agent whose share a request takes.
    pub(crate) fn charged(&self, request: &Request) -> Option<usize> {
        if let Some(name) = &request.pinned {
            return self.agent_index(name);
        }
        let takes = |index: &usize| self.takes(*index, request);
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
                job.started? + job.waited + self.total_micros(job)
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
