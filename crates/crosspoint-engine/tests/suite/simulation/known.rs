//! What the model knows of one job, and why something may happen to it.

use std::sync::Arc;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_engine::job::{Ending, Request};

use super::rule::Wish;

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
    /// From when the time of the attempt under way counts.
    pub(crate) timed_from: i64,
    /// Whether no other agent may ever have it: its agent may have begun the work, and recognises it.
    pub(crate) stays: bool,
    /// Whether the recipient was told the outcome.
    pub(crate) told: bool,
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
    Stepped(u32),
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
            timed_from: 0,
            stays: false,
            told: false,
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
            self.timed_from = (self.timed_from + now - since).min(now);
        }
    }

    /// The end of a pause is not written, so a start finds the job paused again.
    pub(crate) fn pauses_again(&mut self) {
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
    pub(crate) fn forget(&mut self, now: i64) {
        self.shown_at = None;
        self.heard_percent = self.shown_percent;
        if self.has_agent() {
            (self.taken_up, self.timed_from) = (Some(now), now);
        }
        if let Life::With { heard } = &mut self.life {
            *heard = now;
        }
    }
}
