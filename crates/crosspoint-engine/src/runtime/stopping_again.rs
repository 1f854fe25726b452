//! Agents that may not know that their work is over.
//!
//! A job that is cancelled, or whose time is up, has its outcome at once, and its agent is told afterwards. If the
//! orchestrator ends in between, the agent works on in vain. What was told is not stored, but what had to be told
//! follows from the outcome. So at a start the agents of jobs that ended shortly before are told once more, which
//! changes nothing for agents that know.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::time::Time;

use super::engine::Engine;
use crate::id::JobId;
use crate::job::{Job, Phase};
use crate::store::Filter;

/// How long before the last sign of life of the orchestrator a job may have ended: longer than any link goes on to tell
/// its agent.
pub const TOLD_WITHIN: Duration = Duration::from_secs(900);

/// Most jobs whose agents are told again, the youngest of each phase.
const JOBS_MAX: usize = 1_000;

/// Most jobs that are looked at for that. They are in the order of their numbers, and one that ended last may be old.
const LOOKED_AT_MAX: usize = 100_000;

/// Jobs that are read at a time.
const PAGE: usize = 100;

impl Engine {
    /// Tells agents again of jobs that ended not long before `alive_at`. It is not waited for.
    pub(super) fn stop_again(&self, alive_at: Time) {
        let since = alive_at.shifted(-i64::try_from(TOLD_WITHIN.as_micros()).unwrap_or(i64::MAX));
        let engine = self.clone();
        self.handle().spawn(async move {
            for phase in [Phase::Cancelled, Phase::Failed] {
                engine.stop_again_in(phase, since).await;
            }
        });
    }

    async fn stop_again_in(&self, phase: Phase, since: Time) {
        let (mut before, mut looked_at, mut told) = (None, 0, 0);
        while looked_at < LOOKED_AT_MAX && told < JOBS_MAX {
            let filter = Filter { phase: Some(phase), before, limit: PAGE, ..Filter::default() };
            // A store that cannot be read just now is no reason not to serve.
            let Ok(page) = self.list(filter).await else { return };
            looked_at += page.jobs.len().max(1);
            for job in page.jobs.into_iter().filter(|job| may_be_at_work(job, since)) {
                told += 1;
                self.stop_job_again(job);
            }
            before = page.next.map(JobId::seq);
            if before.is_none() {
                return;
            }
        }
    }

    fn stop_job_again(&self, job: Job) {
        if let Some(link) = job.agent.as_ref().and_then(|name| self.link(name)) {
            self.handle().spawn(async move { link.stop_ended(Arc::new(job)).await });
        }
    }
}

/// Whether the agent of an ended job may not know that it has ended: the agent itself did not say so, and it was not
/// long ago.
fn may_be_at_work(job: &Job, since: Time) -> bool {
    let Some(ending) = job.outcome() else { return false };
    let is_ours = ending.status == Status::Cancelled || ending.failure() == Some(Failure::Timeout);
    let is_told = ending.document.is_some() || ending.left_out.is_some();
    job.attempts > 0 && is_ours && !is_told && ending.at >= since
}
