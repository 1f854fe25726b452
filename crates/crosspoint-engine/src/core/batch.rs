//! What came of some commands: to be committed together, then carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Block;

use super::{Member, Standing, Submission};
use crate::event::{Entry, Violation};
use crate::id::Seq;
use crate::job::Job;
use crate::keys::Hashes;
use crate::machine::Action;
use crate::retention::Jumps;
use crate::time::Time;

/// What is committed at one go, and what follows.
#[derive(Debug, Default)]
pub struct Batch {
    /// What to write of jobs: one row each, however often they changed.
    pub jobs: BTreeMap<Seq, Written>,
    /// What to write of agents.
    pub agents: BTreeMap<Arc<str>, Standing>,
    /// What to write of agents that joined; `None` of one that is forgotten.
    pub members: BTreeMap<Arc<str>, Option<Member>>,
    /// Since when jobs are set aside; `None` of one that is so no more.
    pub aside: BTreeMap<Seq, Option<Time>>,
    /// Jobs that have an outcome and whose rows are to say so.
    pub repaired: Vec<Seq>,
    /// That we are alive at this time.
    pub alive_at: Option<Time>,
    /// The jumps of the clock that were seen, where there is a new one.
    pub jumps: Option<Jumps>,
    /// That this is the last batch of an orchestrator that was asked to end.
    pub is_clean_end: bool,
    /// What to write of broken rules.
    pub violations: Vec<(Seq, Time, Violation)>,
    /// What to do once all that is on disk.
    pub effects: Vec<Effect>,
    /// Jobs that changed, on disk or not.
    pub touched: BTreeSet<Seq>,
    /// Jobs that were held and are driven from now on.
    pub taken: BTreeSet<Seq>,
}

/// What is written of one job.
#[derive(Debug)]
pub struct Written {
    /// The job, as it is after all that happened.
    pub job: Arc<Job>,
    /// What is written of new jobs alone.
    pub fresh: Option<Fresh>,
    /// What happened, in order.
    pub entries: Vec<Entry>,
}

/// What is written of a job when it is accepted, and never again.
#[derive(Debug)]
pub struct Fresh {
    /// The hashes that it is found by.
    pub hashes: Hashes,
    /// The document that came in.
    pub document: Block,
    input: Bytes,
}

/// Something to do outside.
#[derive(Clone, Debug)]
pub enum Effect {
    /// An action for a job's agent.
    Job {
        /// The job, as it was then.
        job: Arc<Job>,
        /// What to do; never a mark.
        action: Action,
    },
    /// Check an agent's health.
    Check {
        /// Which agent's.
        agent: Arc<str>,
    },
}

impl Batch {
    pub(super) fn fresh(&mut self, job: &Arc<Job>, submission: &Submission) {
        let fresh =
            Fresh { hashes: submission.hashes, document: submission.document.clone(), input: submission.input() };
        self.jobs.insert(job.seq(), Written { job: job.clone(), fresh: Some(fresh), entries: Vec::new() });
        self.touched.insert(job.seq());
    }

    pub(super) fn stepped(&mut self, job: &Arc<Job>, entries: Vec<Entry>) {
        self.touched.insert(job.seq());
        if let Some(written) = self.jobs.get_mut(&job.seq()) {
            written.job = job.clone();
            written.entries.extend(entries);
        } else if !entries.is_empty() {
            self.jobs.insert(job.seq(), Written { job: job.clone(), fresh: None, entries });
        }
    }

    /// A job whose row changes although nothing has happened that is an event.
    pub(super) fn rewritten(&mut self, job: &Arc<Job>) {
        self.touched.insert(job.seq());
        let row = self.jobs.entry(job.seq());
        let row = row.or_insert_with(|| Written { job: job.clone(), fresh: None, entries: Vec::new() });
        row.job = job.clone();
    }

    /// The input of a job that was accepted in this batch: nobody need read it from disk.
    pub fn input(&self, seq: Seq) -> Option<Bytes> {
        self.jobs.get(&seq)?.fresh.as_ref().map(|fresh| fresh.input.clone())
    }

    /// The document of a job that was accepted in this batch.
    pub fn document(&self, seq: Seq) -> Option<Block> {
        self.jobs.get(&seq)?.fresh.as_ref().map(|fresh| fresh.document.clone())
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let is_told = self.alive_at.is_some() || self.jumps.is_some() || self.is_clean_end;
        let is_of_jobs = !self.jobs.is_empty() || !self.aside.is_empty() || !self.repaired.is_empty();
        let is_of_agents = !self.agents.is_empty() || !self.members.is_empty();
        !is_told && !is_of_jobs && !is_of_agents && self.violations.is_empty()
    }
}
