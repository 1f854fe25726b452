//! Which jobs have been kept long enough.
//!
//! A job that has ended is kept for a time and while there are not too many of them; then it goes, those that ended first before
//! the others. To find them the store must not be searched: a million jobs lie between a few old ones, and the order of rows is that in
//! which jobs were accepted, not that in which they ended. So what has ended is remembered in memory, like the request keys, but only
//! roughly: by the thousandth part of the time that it is kept. That takes a dozen bytes a job, needs no index on disk,
//! and jobs go at most that much later than they could. Of those that ended within the same part, any may go first.
//!
//! A clock that jumps while we run makes no job older or younger. What has ended in the future, because a clock was wrong before we
//! were started, has ended now for whoever tells us of it.

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

/// How long jobs are kept that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// For so long after their end; `None` is for ever.
    pub age: Option<Duration>,
    /// While there are no more than so many; `None` is any number.
    pub jobs: Option<u64>,
}

/// The jobs that have ended, by when.
#[derive(Debug)]
pub struct Ended {
    rule: Rule,
    part_micros: i64,
    parts: BTreeMap<i64, VecDeque<Seq>>,
    count: u64,
    /// By how much the clock has jumped since we began; what is counted is the time without jumps.
    skew_micros: i64,
}

impl Rule {
    /// Nothing ever goes.
    pub const FOR_EVER: Rule = Rule { age: None, jobs: None };
}

impl Ended {
    /// Nothing yet.
    pub fn new(rule: Rule) -> Ended {
        let micros = (rule.age.unwrap_or(PART_TIMELESS * 1_000).as_micros() / PARTS).max(PART_MICROS_MIN);
        let part_micros = i64::try_from(micros).unwrap_or(i64::MAX);
        Ended { rule, part_micros, parts: BTreeMap::new(), count: 0, skew_micros: 0 }
    }

    /// Remembers that a job has ended: once for each.
    pub fn note(&mut self, seq: Seq, at: Time) {
        if self.rule == Rule::FOR_EVER {
            return;
        }
        let part = at.shifted(-self.skew_micros).0.div_euclid(self.part_micros);
        self.parts.entry(part).or_default().push_back(seq);
        self.count += 1;
    }

    /// The clock jumped, by so many microseconds.
    pub fn jumped(&mut self, micros: i64) {
        self.skew_micros = self.skew_micros.saturating_add(micros);
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
        self.is_over() || self.alarm().is_some_and(|at| at <= now)
    }

    /// When the next job is old enough.
    pub fn alarm(&self) -> Option<Time> {
        let (part, _) = self.parts.first_key_value()?;
        let end = Time(part.saturating_add(1).saturating_mul(self.part_micros));
        Some(end.plus(self.rule.age?).shifted(self.skew_micros))
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
