//! What can be seen of the core without changing it, and what has ended.

use std::sync::Arc;

use super::{Agent, Core};
use crate::id::Seq;
use crate::job::Job;
use crate::keys::Hash;
use crate::retention::Ended;

impl Core {
    /// Returns the jobs that have ended and are still kept.
    pub fn ended(&mut self) -> &mut Ended {
        &mut self.ended
    }

    /// Forgets the request key of a job that was removed: a repeat of the request is a new job.
    pub fn release_key(&mut self, hash: Hash, seq: Seq) {
        self.keys.release(hash, seq);
    }

    /// Returns a job that has not ended.
    pub fn job(&self, seq: Seq) -> Option<&Arc<Job>> {
        self.jobs.get(&seq).map(|live| &live.job)
    }

    /// Returns all jobs that have not ended.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values().map(|live| &live.job)
    }

    /// Returns all agents.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// Returns the agent with this name.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// Returns how many queued jobs go before this one.
    pub fn ahead_of(&self, job: &Job) -> usize {
        self.queues.ahead_of(job)
    }

    /// Returns how many queued jobs could go to this agent.
    pub fn queued_for(&self, agent: &Agent) -> usize {
        self.queues.len(agent.takes.iter())
    }
}
