//! Which jobs have been kept long enough.
//!
//! A job that has ended is kept for some time, and while there are not too many such jobs. Then it is removed; jobs
//! that ended first go first. Searching the store for them would be too slow: a million jobs lie between a few old
//! ones, and rows are in the order in which jobs were accepted, not in the order in which they ended. So the end of
//! each job is remembered in memory, like the request keys, but only roughly: to a thousandth of the time for which
//! jobs are kept. That takes a dozen bytes a job and needs no index on disk, and jobs are removed at most that much
//! later than they could be. Of the jobs that ended within the same thousandth, any may go first.
//!
//! A clock that jumps while the orchestrator runs makes no job older or younger, also where all jobs are read from disk
//! again: jumps are remembered, and a time from before a jump is told from a time after it. A job that ended in the
//! future, because a clock was wrong before the orchestrator was started, counts as having ended now.
//!
//! The limit on the number of jobs yields to the least age: a caller that repeats a request within a day must find its
//! job, however many other jobs came in between.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crosspoint_contracts::time::Time;

use crate::id::Seq;

/// How many parts the time for which jobs are kept is divided into.
const PARTS: u128 = 1_000;

/// Shortest length of a part in microseconds, however short the time for which jobs are kept is.
const PART_MICROS_MIN: u128 = 1_000;

/// Length of a part where jobs are not removed by age: only the order matters then.
const PART_TIMELESS: Duration = Duration::from_secs(60);

/// Most jumps of the clock that are told apart; further jumps are merged with the last one.
const JUMPS_MAX: usize = 1_000;

/// How exactly it is known until when the clock ran before it was set back while no orchestrator ran.
const SLACK: Duration = Duration::from_secs(10);

/// How long jobs that have ended are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Longest time that a job is kept after its end; `None` keeps it for ever.
    pub age: Option<Duration>,
    /// Most ended jobs that are kept; `None` sets no limit.
    pub jobs: Option<u64>,
    /// Shortest time that a job is kept after its end, however many jobs there are.
    pub age_min: Duration,
}

/// The jobs that have ended, ordered by when they ended.
#[derive(Debug)]
pub struct Ended {
    rule: Rule,
    part_micros: i64,
    parts: BTreeMap<i64, VecDeque<Seq>>,
    count: u64,
    /// Stages that were due while their jobs went on, by their jobs. They end with those, and do not count before.
    held: BTreeMap<Seq, Vec<Seq>>,
    /// The jumps of the clock: ages are counted on a clock without them.
    jumps: Jumps,
}

/// The jumps of the clock that were seen, over all starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// For each jump, the system time just after it and its size in microseconds.
    log: Vec<(Time, i64)>,
    total_micros: i64,
    /// Whether some of the jumps are not on disk yet.
    unwritten: bool,
}

impl Rule {
    /// Keeps all jobs for ever.
    pub const FOR_EVER: Rule = Rule { age: None, jobs: None, age_min: Duration::ZERO };
}

impl Ended {
    /// Makes an empty record of ended jobs.
    pub fn new(rule: Rule, jumps: Jumps) -> Ended {
        let micros = (rule.age.unwrap_or(PART_TIMELESS * 1_000).as_micros() / PARTS).max(PART_MICROS_MIN);
        let part_micros = i64::try_from(micros).unwrap_or(i64::MAX);
        Ended { rule, part_micros, parts: BTreeMap::new(), count: 0, held: BTreeMap::new(), jumps }
    }

    /// Makes an empty record with the same rule and the same jumps, to which all jobs are added again.
    #[must_use]
    pub fn anew(&self) -> Ended {
        Ended::new(self.rule, self.jumps.clone())
    }

    /// Remembers that a job has just ended. Must be called once for each job.
    pub fn note(&mut self, seq: Seq, at: Time) {
        let at = self.jumps.now(at);
        self.note_at(seq, at);
        self.held.remove(&seq).into_iter().flatten().for_each(|stage| self.note_at(stage, at));
    }

    /// Remembers that a stage that was taken stays, because the job that it is a stage of goes on. It counts as having
    /// ended together with that job.
    pub fn hold(&mut self, stage: Seq, job: Seq) {
        self.held.entry(job).or_default().push(stage);
    }

    /// Remembers that a job ended some time ago, perhaps before a jump of the clock. A job that ended in the future
    /// counts as having ended now.
    pub fn note_again(&mut self, seq: Seq, at: Time, now: Time) {
        self.note_at(seq, self.jumps.steady(at, now));
    }

    fn note_at(&mut self, seq: Seq, at: Time) {
        if self.rule == Rule::FOR_EVER {
            return;
        }
        let part = at.0.div_euclid(self.part_micros);
        self.parts.entry(part).or_default().push_back(seq);
        self.count += 1;
    }

    /// Notes that the clock jumped and now shows `now`. `total_micros` is the sum of all jumps. Safe to call twice.
    pub fn jumped(&mut self, now: Time, total_micros: i64) {
        self.jumps.add(now, total_micros);
    }

    /// Returns the jumps that were seen.
    pub fn jumps(&self) -> &Jumps {
        &self.jumps
    }

    /// Notes that the jumps are on disk.
    pub(crate) fn jumps_written(&mut self) {
        self.jumps.unwritten = false;
    }

    /// Takes up to `most` jobs that need no longer be kept, those that ended first before the others.
    pub fn take(&mut self, now: Time, most: usize) -> Vec<Seq> {
        let mut taken = Vec::new();
        while taken.len() < most && self.is_due(now) {
            let Some(mut first) = self.parts.first_entry() else { break };
            if let Some(seq) = first.get_mut().pop_front() {
                taken.push(seq);
                self.count -= 1;
            }
            if first.get().is_empty() {
                first.remove();
            }
        }
        taken
    }

    /// Whether there is a job that need no longer be kept.
    pub fn is_due(&self, now: Time) -> bool {
        self.due_at().is_some_and(|at| at <= self.jumps.now(now))
    }

    /// Whether there are more jobs than the rule allows, and all of them are too young to be removed.
    pub fn is_overfull(&self, now: Time) -> bool {
        self.is_over() && !self.is_due(now)
    }

    /// Returns when the next job need no longer be kept, in system time.
    pub fn alarm(&self) -> Option<Time> {
        Some(self.due_at()?.shifted(self.jumps.total_micros))
    }

    /// Returns the same time, on the clock without jumps.
    fn due_at(&self) -> Option<Time> {
        let (part, _) = self.parts.first_key_value()?;
        let end = Time(part.saturating_add(1).saturating_mul(self.part_micros));
        let by_age = self.rule.age.map(|age| end.plus(age));
        let young_enough = if self.rule.age_min.is_zero() { Time::default() } else { end.plus(self.rule.age_min) };
        let by_count = self.is_over().then_some(young_enough);
        by_age.into_iter().chain(by_count).min()
    }

    fn is_over(&self) -> bool {
        self.rule.jobs.is_some_and(|jobs| self.count > jobs)
    }

    /// Returns how many jobs are remembered.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether no job is remembered.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Jumps {
    /// Makes the jumps from those that are on disk: the time just after each jump, and its size in microseconds.
    pub fn new(log: Vec<(Time, i64)>) -> Jumps {
        let total_micros = log.iter().fold(0, |total: i64, (_, micros)| total.saturating_add(*micros));
        Jumps { log, total_micros, unwritten: false }
    }

    /// Whether some of the jumps are not on disk yet.
    pub fn is_unwritten(&self) -> bool {
        self.unwritten
    }

    /// Returns by how many microseconds the clock was set back while no orchestrator ran, judged by the last time that
    /// is known: 0 or less.
    pub fn set_back_micros(&self, alive_at: Option<Time>, now: Time) -> i64 {
        let last = self.log.last().map(|(after, _)| *after).max(alive_at);
        last.map_or(0, |last| now.0.saturating_sub(last.0)).min(0)
    }

    /// Returns the jumps as they are written to disk.
    pub fn log(&self) -> &[(Time, i64)] {
        &self.log
    }

    /// Returns the sum of all jumps in microseconds.
    pub fn total_micros(&self) -> i64 {
        self.total_micros
    }

    /// Notes that the clock jumped and now shows `now`. `total_micros` is the sum of all jumps. Safe to call twice.
    pub fn add(&mut self, now: Time, total_micros: i64) {
        let micros = total_micros.saturating_sub(self.total_micros);
        if micros == 0 {
            return;
        }
        (self.total_micros, self.unwritten) = (total_micros, true);
        let is_full = self.log.len() >= JUMPS_MAX;
        match self.log.last_mut() {
            Some(last) if is_full => *last = (now, last.1.saturating_add(micros)),
            Some(_) | None => self.log.push((now, micros)),
        }
    }

    /// Returns how long ago a time was, on a clock without the jumps.
    pub fn age(&self, at: Time, now: Time) -> Duration {
        self.now(now).since(self.steady(at, now))
    }

    fn now(&self, wall: Time) -> Time {
        wall.shifted(self.total_micros.saturating_neg())
    }

    /// Converts a system time to a clock that never jumped. Where the clock was set back, a time may stand for two
    /// moments, or for none that is known. Then the later moment is taken, or now, because keeping a job too long does
    /// less harm than removing it too soon.
    fn steady(&self, at: Time, now: Time) -> Time {
        let now = self.now(now);
        let mut micros_before = 0_i64;
        let mut steady: Option<Time> = None;
        let mut from = Time(i64::MIN);
        for (after, micros) in self.log.iter().copied().chain([(Time::NEVER, 0)]) {
            let until = after.shifted(micros.saturating_neg()).plus(SLACK);
            if (from..=until).contains(&at) {
                steady = steady.max(Some(at.shifted(micros_before.saturating_neg())));
            }
            (from, micros_before) = (after, micros_before.saturating_add(micros));
        }
        steady.unwrap_or(now).min(now)
    }
}
