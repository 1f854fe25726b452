//! A look at results before they are committed.
//!
//! The engine does not look into outputs. The program that starts it may hand in a judge that does. What the judge
//! finds is recorded beside the job, before its outcome. The outcome stands, unless the judge says that another result
//! counts in its place.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use crosspoint_contracts::reply::{Failed, Success};
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::engine::Engine;
use crate::core::Grip;
use crate::event::Violation;
use crate::id::JobId;
use crate::job::Job;
use crate::machine::Event;

/// Looks at results.
pub trait Judge: Send + Sync + 'static {
    /// Whether results of this job are looked at.
    fn judges(&self, job: &Job) -> bool;

    /// Looks at a result of this job.
    fn judge<'a>(
        &'a self,
        job: &'a Job,
        result: &'a Result<Success, Failed>,
    ) -> Pin<Box<dyn Future<Output = Judgement> + Send + 'a>>;
}

/// What a judge found.
#[derive(Default)]
pub struct Judgement {
    /// The rules that the result breaks, without content.
    pub violations: Vec<Violation>,
    /// What counts in place of the result, if the result must not count.
    pub instead: Option<Result<Success, Failed>>,
}

impl Engine {
    /// Whether results of this job are looked at.
    pub(super) fn is_judged(&self, job: &Job) -> bool {
        self.judge().is_some_and(|judge| judge.judges(job))
    }

    /// Returns the result that counts, and notes what is wrong with the one that was given. That is on disk before
    /// whatever is reported next.
    pub(super) async fn judged(&self, job: &Job, result: Result<Success, Failed>) -> Result<Success, Failed> {
        let Some(judge) = self.judge().filter(|judge| judge.judges(job)) else { return result };
        // A judge that panics has found nothing: the result must not be lost with it.
        let judged = AssertUnwindSafe(judge.judge(job, &result)).catch_unwind().await;
        let Judgement { violations, instead } = judged.unwrap_or_default();
        for violation in violations {
            self.note(job.id(), violation);
        }
        instead.unwrap_or(result)
    }

    /// The same for what an agent that joined reports, as far as it has the attempts that it reports about.
    pub(super) async fn judged_reports(&self, agent: &Arc<str>, reports: &mut [(JobId, Grip, Event)]) {
        if self.judge().is_none() {
            return;
        }
        // Together: a judge may have to wait for one of them.
        join_all(reports.iter_mut().map(|(id, _, event)| self.judge_report(agent, *id, event))).await;
    }

    async fn judge_report(&self, agent: &Arc<str>, id: JobId, event: &mut Event) {
        let Event::Finish { attempt, result } = event else { return };
        let Some(job) = self.published().watch(id).map(|watch| watch.job()) else { return };
        let is_present = job.running().is_some_and(|running| running.attempt == *attempt);
        if is_present && job.agent.as_ref() == Some(agent) && self.is_judged(&job) {
            *result = self.judged(&job, result.clone()).await;
        }
    }
}
