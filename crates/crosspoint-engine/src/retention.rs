//! Which jobs have been kept long enough.
//!
//! A job that has ended is kept for a time and while there are not too many of them; then it goes, those that ended first before
//! the others. To find them the store must not be searched: a million jobs lie between a few old ones, and the order of rows is that in
//! which jobs were accepted, not that in which they ended. So what has ended is remembered in memory, like the request keys, but only
//! roughly: by the thousandth part of the time that it is kept. That takes a dozen bytes a job, needs no index on disk,
//! and jobs go at most that much later than they could. Of those that ended within the same part, any may go first.
//!
//! A clock that jumps while we run makes no job older or younger, also where all of them are read from disk again: jumps are
//! remembered, and a time from before one is told from a time after it. What has ended in the future, because a clock was wrong before
//! we were started, has ended now.
//!
//! A rule about the number of jobs yields to their youngest age: a caller that repeats a request within a day must find its job, however
//! many others came in between.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::id::Seq;
use crate::time::Time;

/// Into so many parts the time is divided for which jobs are kept.
const PARTS: u128 = 1_000;

/// A part is at least this long, however short the time.
const PART_MICROS_MIN: u128 = 1_000;

/// And where time does not count, this long: only the order matters then.
const PART_TIMELESS: Duration = Duration::from_secs(60);

/// So many jumps of the clock are told apart; more are taken as one with the last.
const JUMPS_MAX: usize = 1_000;

/// When a clock was set back while nobody was there, it is known only so well until when it went before.
const SLACK: Duration = Duration::from_secs(10);

/// How long jobs are kept that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// For so long after their end; `None` is for ever.
    pub age: Option<Duration>,
    /// While there are no more than so many; `None` is any number.
    pub jobs: Option<u64>,
    /// However many there are, for at least so long after their end.
    pub age_min: Duration,
}

/// The jobs that have ended, by when.
#[derive(Debug)]
pub struct Ended {
    rule: Rule,
    part_micros: i64,
    parts: BTreeMap<i64, VecDeque<Seq>>,
    count: u64,
    /// What is counted is the time without jumps.
    jumps: Jumps,
}

/// The jumps of the clock that were seen, over all starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jumps {
    /// The time on the wall just after each, and by how many microseconds it jumped.
    log: Vec<(Time, i64)>,
    total_micros: i64,
    /// Whether there are some that are not on disk.
    unwritten: bool,
}

impl Rule {
    /// Nothing ever goes.
    pub const FOR_EVER: Rule = Rule { age: None, jobs: None, age_min: Duration::ZERO };
}

impl Ended {
    /// Nothing yet.
    pub fn new(rule: Rule, jumps: Jumps) -> Ended {
        let micros = (rule.age.unwrap_or(PART_TIMELESS * 1_000).as_micros() / PARTS).max(PART_MICROS_MIN);
        let part_micros = i64::try_from(micros).unwrap_or(i64::MAX);
        Ended { rule, part_micros, parts: BTreeMap::new(), count: 0, jumps }
    }

    /// Nothing yet, but with the same rule and the same clock: for being told of all jobs again.
    #[must_use]
    pub fn anew(&self) -> Ended {
        Ended::new(self.rule, self.jumps.clone())
    }

    /// Remembers that a job has just ended: once for each.
    pub fn note(&mut self, seq: Seq, at: Time) {
        self.note_at(seq, self.jumps.now(at));
    }

    /// Remembers that a job ended some time ago, before jumps perhaps. One that ended in the future has ended now.
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

    /// The clock jumped, and shows `now`: by so many microseconds in all, over all jumps there are. Safe to be told twice.
    pub fn jumped(&mut self, now: Time, total_micros: i64) {
        self.jumps.add(now, total_micros);
    }

    /// The jumps that were seen.
    pub fn jumps(&self) -> &Jumps {
        &self.jumps
    }

    /// They are on disk.
    pub(crate) fn jumps_written(&mut self) {
        self.jumps.unwritten = false;
    }

    /// Takes up to so many jobs that need no longer be kept, those that ended first before the others.
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

    /// Whether there are more jobs than the rule wants, and all of them are too young to go.
    pub fn is_overfull(&self, now: Time) -> bool {
        self.is_over() && !self.is_due(now)
    }

    /// When the next job need no longer be kept, on the wall.
    pub fn alarm(&self) -> Option<Time> {
        Some(self.due_at()?.shifted(self.jumps.total_micros))
    }

    /// The same, without jumps.
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

    /// How many are remembered.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Jumps {
    /// Those that are on disk: the time just after each, and by how many microseconds it was.
    pub fn new(log: Vec<(Time, i64)>) -> Jumps {
        let total_micros = log.iter().fold(0, |total: i64, (_, micros)| total.saturating_add(*micros));
        Jumps { log, total_micros, unwritten: false }
    }

    /// Whether there are some that are not on disk.
    pub fn is_unwritten(&self) -> bool {
        self.unwritten
    }

    /// By how many microseconds the clock was set back while nobody was there, going by the last time that is known: 0 or less.
    pub fn set_back_micros(&self, alive_at: Option<Time>, now: Time) -> i64 {
        let last = self.log.last().map(|(after, _)| *after).max(alive_at);
        last.map_or(0, |last| now.0.saturating_sub(last.0)).min(0)
    }

    /// For the disk.
    pub fn log(&self) -> &[(Time, i64)] {
        &self.log
    }

    /// By how many microseconds in all.
    pub fn total_micros(&self) -> i64 {
        self.total_micros
    }

    /// The clock jumped, and shows `now`: by so many microseconds in all. Safe to be told twice.
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

    fn now(&self, wall: Time) -> Time {
        wall.shifted(self.total_micros.saturating_neg())
    }

    /// A time on the wall, on a clock that never jumped. Where the clock was set back, a time may stand for two moments, or for none
    /// that is known: the later one is taken, or now, because a job that stays too long does less harm than one that goes too soon.
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
