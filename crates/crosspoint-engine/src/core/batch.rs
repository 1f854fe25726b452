//! The result of some commands: committed together, then carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::time::Time;

use super::{Member, Standing, Submission};
use crate::audit::AuditEntry;
use crate::event::{Entry, Violation};
use crate::grant::Grant;
use crate::id::{JobId, Seq};
use crate::job::Job;
use crate::keys::{FurtherName, Hashes};
use crate::machine::Action;
use crate::retention::Jumps;

/// What is committed in one transaction, and what is done afterwards.
#[derive(Debug, Default)]
pub struct Batch {
    /// What to write of jobs: one row each, however often they changed.
    pub jobs: BTreeMap<Seq, Written>,
    /// What to write of agents.
    pub agents: BTreeMap<Arc<str>, Standing>,
    /// What to write of agents that joined; `None` for an agent that is forgotten.
    pub members: BTreeMap<Arc<str>, Option<Member>>,
    /// What to write of grants.
    pub grants: BTreeMap<Arc<str>, Arc<Grant>>,
    /// Who did what by the commands of the batch.
    pub audit: Vec<AuditEntry>,
    /// Names that jobs are found by from now on, beside those that they came with.
    pub names: Vec<(Seq, FurtherName)>,
    /// Since when jobs are set aside; `None` for a job that no longer is.
    pub aside: BTreeMap<Seq, Option<Time>>,
    /// Jobs whose outcome is no longer owed to its recipient.
    pub told: Vec<JobId>,
    /// Jobs that have an outcome and whose rows have to be corrected to say so.
    pub repaired: Vec<Seq>,
    /// The time at which the orchestrator is alive, if that has to be written.
    pub alive_at: Option<Time>,
    /// The jumps of the clock, if there is a new one.
    pub jumps: Option<Jumps>,
    /// Whether this is the last batch of an orchestrator that was asked to end.
    pub is_clean_end: bool,
    /// The broken rules to write.
    pub violations: Vec<(Seq, Time, Violation)>,
    /// What to do once everything is on disk.
    pub effects: Vec<Effect>,
    /// Jobs that changed, on disk or only in memory.
    pub touched: BTreeSet<Seq>,
    /// Jobs that were held and are driven from now on, or have ended.
    pub taken: BTreeSet<Seq>,
}

/// What is written of one job.
#[derive(Debug)]
pub struct Written {
    /// The job as it is after all events of the batch.
    pub job: Arc<Job>,
    /// The parts that are written for new jobs only.
    pub accepted: Option<Accepted>,
    /// The events of the batch, in order.
    pub entries: Vec<Entry>,
}

/// What is written of a job when it is accepted, and never again.
#[derive(Debug)]
pub struct Accepted {
    /// The hashes that the job is found by.
    pub hashes: Hashes,
    /// The document that the job came as.
    pub document: Block,
    input: Bytes,
}

/// Something to do outside the core.
#[derive(Clone, Debug)]
pub enum Effect {
    /// An action for a job's agent.
    Job {
        /// The job as it was when the action was decided.
        job: Arc<Job>,
        /// What to do; never [`Action::Mark`].
        action: Action,
    },
    /// Check an agent's health.
    Check {
        /// The agent's name.
        agent: Arc<str>,
    },
}

impl Batch {
    pub(super) fn accepted(&mut self, job: &Arc<Job>, submission: &Submission) {
        let accepted =
            Accepted { hashes: submission.hashes, document: submission.document.clone(), input: submission.input() };
        self.jobs.insert(job.seq(), Written { job: job.clone(), accepted: Some(accepted), entries: Vec::new() });
        self.touched.insert(job.seq());
    }

    pub(super) fn stepped(&mut self, job: &Arc<Job>, entries: Vec<Entry>) {
        self.touched.insert(job.seq());
        if let Some(written) = self.jobs.get_mut(&job.seq()) {
            written.job = job.clone();
            written.entries.extend(entries);
        } else if !entries.is_empty() {
            self.jobs.insert(job.seq(), Written { job: job.clone(), accepted: None, entries });
        }
    }

    /// Writes a job's row although nothing has happened that is an event.
    pub(super) fn rewritten(&mut self, job: &Arc<Job>) {
        self.touched.insert(job.seq());
        let row = self.jobs.entry(job.seq());
        let row = row.or_insert_with(|| Written { job: job.clone(), accepted: None, entries: Vec::new() });
        row.job = job.clone();
    }

    /// Returns the input of a job that was accepted in this batch, so that it need not be read from disk.
    pub fn input(&self, seq: Seq) -> Option<Bytes> {
        self.jobs.get(&seq)?.accepted.as_ref().map(|accepted| accepted.input.clone())
    }

    /// Returns the document of a job that was accepted in this batch.
    pub fn document(&self, seq: Seq) -> Option<Block> {
        self.jobs.get(&seq)?.accepted.as_ref().map(|accepted| accepted.document.clone())
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let is_told = self.alive_at.is_some() || self.jumps.is_some() || self.is_clean_end;
        let is_of_rows = !self.jobs.is_empty() || !self.aside.is_empty() || !self.repaired.is_empty();
        let is_of_jobs = is_of_rows || !self.told.is_empty() || !self.names.is_empty();
        let is_of_agents = !self.agents.is_empty() || !self.members.is_empty();
        let is_of_grants = !self.grants.is_empty() || !self.audit.is_empty();
        !is_told && !is_of_jobs && !is_of_agents && !is_of_grants && self.violations.is_empty()
    }
}
