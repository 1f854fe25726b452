//! What must be so, kept beside the engine: fed with what was asked of it and what it stored and did, it says what is wrong.
//!
//! It knows the rulings from [`super::rule`] and nothing of the machine. Its clock never jumps.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_engine::breaker::Breaker;
use crosspoint_engine::core::{Core, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Outcome, Request, State};
use crosspoint_engine::time::Time;

use super::rule::{Fuse, OPEN_MICROS, Verdict, ensure, micros};

#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) specs: Arc<Vec<Spec>>,
    pub(crate) jobs: BTreeMap<Seq, Known>,
    /// Which agents join, instead of being configured; which of all are known; and how many jobs each takes at a time.
    pub(crate) joins: Vec<bool>,
    pub(crate) known: Vec<bool>,
    pub(crate) capacity: Vec<u32>,
    pub(crate) fuses: Vec<Fuse>,
    pub(crate) drained: Vec<bool>,
    /// The jobs that have not ended.
    pub(crate) live: Vec<Seq>,
    pub(crate) keys: BTreeMap<Box<str>, Seq>,
    pub(crate) jobs_live_max: usize,
    pub(crate) now: i64,
    /// What the wall's clock shows, less `now`.
    pub(crate) offset: i64,
    /// Times on disk may lie anywhere: each start bounds them anew.
    pub(crate) jumped_unseen: bool,
    /// How often a question was answered without asking.
    pub(crate) answered_again: u64,
}

/// What is known of a job.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) request: Arc<Request>,
    pub(crate) acknowledged: bool,
    pub(crate) accepted: i64,
    pub(crate) started: Option<i64>,
    pub(crate) waited: i64,
    pub(crate) life: Life,
    /// The longest that its last pause can be.
    pub(crate) pause_max: i64,
    pub(crate) agent: usize,
    pub(crate) attempts: u32,
    pub(crate) repeats: u32,
    pub(crate) events: u32,
    pub(crate) outputs: u64,
    pub(crate) asked: usize,
    pub(crate) answers: Vec<(Box<str>, Box<str>)>,
    /// The attempt that an agent should be at, going by what agents were told.
    pub(crate) wanted: Option<u32>,
    pub(crate) outcome: Option<Arc<Outcome>>,
    /// The last progress that was heard, and that was stored.
    pub(crate) heard_percent: Option<f64>,
    pub(crate) shown_percent: Option<f64>,
    pub(crate) shown_at: Option<i64>,
    /// Progress was stored sooner than it may be, unless the outcome follows.
    pub(crate) hurried: bool,
    /// A clock that jumped unseen has made the totals of this job anybody's guess.
    pub(crate) unsure: bool,
    /// A jump since it was accepted: the time from acceptance is not that of the clock any more.
    pub(crate) jumped: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Life {
    Queued,
    Paused { until: i64 },
    With { heard: i64 },
    Asking { since: i64, question: Box<str> },
    Ended,
}

/// Why something may be happening.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Started,
    Settled,
    Heard,
    Output(u32),
    Asked,
    Done(u32, Box<str>),
    Failed(u32, Failure, Dispatched),
    Died(u32),
    Withdrawn(u32),
    Answered(Box<str>),
    Cancelled,
}

impl Known {
    pub(crate) fn new(request: Arc<Request>, now: i64) -> Known {
        Known {
            request,
            acknowledged: false,
            accepted: now,
            started: None,
            waited: 0,
            life: Life::Queued,
            pause_max: 0,
            agent: 0,
            attempts: 0,
            repeats: 0,
            events: 1,
            outputs: 0,
            asked: 0,
            answers: Vec::new(),
            wanted: None,
            outcome: None,
            heard_percent: None,
            shown_percent: None,
            shown_at: None,
            hurried: false,
            unsure: false,
            jumped: false,
        }
    }

    /// Whether this is the attempt under way.
    pub(crate) fn is_present(&self, attempt: u32) -> bool {
        attempt == self.attempts && self.has_agent()
    }

    pub(crate) fn has_agent(&self) -> bool {
        match self.life {
            Life::With { .. } | Life::Asking { .. } => true,
            Life::Queued | Life::Paused { .. } | Life::Ended => false,
        }
    }

    pub(crate) fn leave_asking(&mut self, now: i64) {
        if let Life::Asking { since, .. } = self.life {
            self.waited += now - since;
        }
    }
}

impl Model {
    pub(crate) fn new(specs: Arc<Vec<Spec>>, joins: Vec<bool>, jobs_live_max: usize) -> Model {
        let agents = specs.len();
        Model {
            known: joins.iter().map(|joins| !joins).collect(),
            capacity: specs.iter().zip(&joins).map(|(spec, joins)| if *joins { 0 } else { spec.concurrency }).collect(),
            joins,
            specs,
            jobs: BTreeMap::new(),
            fuses: vec![Fuse::Closed(0); agents],
            drained: vec![false; agents],
            live: Vec::new(),
            keys: BTreeMap::new(),
            jobs_live_max,
            now: 0,
            offset: 0,
            jumped_unseen: false,
            answered_again: 0,
        }
    }

    /// The time on a wall, on the clock that never jumps.
    pub(crate) fn steady(&self, wall: Time) -> i64 {
        wall.0 - crate::made::T0.0 - self.offset
    }

    pub(crate) fn wall(&self) -> Time {
        Time(crate::made::T0.0 + self.now + self.offset)
    }

    pub(crate) fn agent_index(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| *spec.name == *name)
    }

    pub(crate) fn running(&self, agent: usize) -> usize {
        let with =
            |seq: &&Seq| matches!(&self.jobs[*seq], job if job.agent == agent && matches!(job.life, Life::With { .. }));
        self.live.iter().filter(with).count()
    }

    /// Whether this agent may take this job, room apart.
    pub(crate) fn takes(&self, agent: usize, request: &Request) -> bool {
        let spec = &self.specs[agent];
        self.known[agent]
            && spec.works.contains(&request.work)
            && request.pinned.as_ref().is_none_or(|name| *name == spec.name)
    }

    pub(crate) fn is_open_to_work(&self, agent: usize) -> bool {
        !self.drained[agent] && matches!(self.fuses[agent], Fuse::Closed(_))
    }

    /// When a job's time is up (ALL-4): the caller's limit if there is one, else the agent's, which stands still while people
    /// are asked.
    pub(crate) fn deadline(&self, job: &Known) -> Option<i64> {
        match (job.request.limits.total, &job.life) {
            (Some(total), _) => Some(job.accepted + micros(total)),
            (None, Life::Queued | Life::With { .. } | Life::Paused { .. }) => {
                Some(job.started? + job.waited + self.total_micros(job.agent))
            }
            (None, Life::Asking { .. } | Life::Ended) => None,
        }
    }

    /// How long the present attempt has been silent beyond what it may.
    pub(crate) fn is_silent(&self, job: &Known) -> bool {
        let silence = self.specs[job.agent].policy.silence.map(|own| job.request.limits.silence.unwrap_or(own));
        match (&job.life, silence) {
            (Life::With { heard }, Some(silence)) => self.now >= heard + micros(silence),
            (Life::With { .. } | Life::Queued | Life::Paused { .. } | Life::Asking { .. } | Life::Ended, _) => false,
        }
    }

    /// What has paused long enough is in the queue.
    pub(crate) fn end_pauses(&mut self) {
        for seq in &self.live {
            if let Some(job) = self.jobs.get_mut(seq)
                && matches!(job.life, Life::Paused { until } if until <= self.now)
            {
                job.life = Life::Queued;
            }
        }
    }

    /// The core was made anew; `unseen` says by how much the clock has jumped without anything on disk saying so, `died` that
    /// agents have lost touch with us.
    pub(crate) fn remake(&mut self, core: &Core, unseen: i64, died: bool) -> Verdict {
        let now = self.now;
        self.jumped_unseen |= unseen != 0;
        let steady = |wall: Time, offset: i64| wall.0 - crate::made::T0.0 - offset;
        for seq in &self.live {
            let Some(job) = self.jobs.get_mut(seq) else { continue };
            let found = core.job(*seq).ok_or_else(|| format!("job {} was forgotten", seq.0))?;
            job.unsure |= unseen != 0 || (job.jumped && job.request.limits.total.is_some());
            job.shown_at = None;
            job.heard_percent = job.shown_percent;
            if died {
                job.wanted = None;
            }
            match &mut job.life {
                Life::With { heard } => *heard = now,
                Life::Queued | Life::Paused { .. } if self.jumped_unseen => {
                    let State::Retrying { until: wall, .. } = found.state else { continue };
                    let found = steady(wall, self.offset);
                    // Forward it looks like time that passed while we were gone; backward the pause must not grow, but may
                    // begin anew.
                    let least = if let Life::Paused { until } = job.life { until - unseen.max(0) } else { i64::MIN };
                    ensure!(found >= least, "job {} pauses for too short", seq.0);
                    ensure!(found <= now + job.pause_max, "job {} pauses for {} us more", seq.0, found - now);
                    job.life = Life::Paused { until: found };
                }
                Life::Asking { .. } | Life::Queued | Life::Paused { .. } | Life::Ended => {}
            }
        }
        for (index, fuse) in self.fuses.iter_mut().enumerate() {
            let Fuse::Open(Some(until)) = fuse else { continue };
            if !self.jumped_unseen {
                continue;
            }
            let breaker = core.agent(&self.specs[index].name).map(|agent| agent.standing.breaker);
            let Some(Breaker::Open { until: wall }) = breaker else {
                return Err("a breaker forgot that it is open".into());
            };
            let found = steady(wall, self.offset);
            let least = *until - unseen.max(0);
            ensure!(found >= least.min(now + OPEN_MICROS), "a breaker closes early");
            ensure!(found <= now + OPEN_MICROS, "a breaker is open for {} us more", found - now);
            *until = found;
        }
        Ok(())
    }
}
