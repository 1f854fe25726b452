//! A look at results before they are committed.
//!
//! The engine does not look into outputs. Who starts it may hand in a judge that does: what the judge finds is recorded
//! beside the job, before its outcome, and the outcome stands.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use crosspoint_contracts::reply::{Failed, Success};
use futures_util::FutureExt;

use super::engine::Engine;
use crate::core::Grip;
use crate::event::Violation;
use crate::id::JobId;
use crate::job::Job;
use crate::machine::Event;

/// Looks at results, and says which rule they break.
pub trait Judge: Send + Sync + 'static {
    /// Whether results of this work are looked at.
    fn judges(&self, work: &str) -> bool;

    /// Returns the rule that a result of this work breaks, without content.
    fn judge<'a>(
        &'a self,
        work: &'a str,
        success: &'a Success,
    ) -> Pin<Box<dyn Future<Output = Option<Violation>> + Send + 'a>>;
}

impl Engine {
    /// Whether results of this work are looked at.
    pub(super) fn is_judged(&self, work: &str) -> bool {
        self.judge().is_some_and(|judge| judge.judges(work))
    }

    /// Notes what is wrong with a result. It is on disk before whatever is reported next.
    pub(super) async fn note_judgement(&self, job: &Job, result: &Result<Success, Failed>) {
        let (Some(judge), Ok(success)) = (self.judge(), result) else { return };
        let work = &*job.request.work;
        if !judge.judges(work) {
            return;
        }
        // A judge that panics has found nothing: the result must not be lost with it.
        let judged = AssertUnwindSafe(judge.judge(work, success)).catch_unwind().await;
        if let Some(violation) = judged.ok().flatten() {
            self.note(job.id(), violation);
        }
    }

    /// The same for what an agent that joined reports, as far as it has the attempts that it reports about.
    pub(super) async fn note_judgements(&self, agent: &Arc<str>, reports: &[(JobId, Grip, Event)]) {
        if self.judge().is_none() {
            return;
        }
        for (id, _, event) in reports {
            let Event::Finish { attempt, result } = event else { continue };
            let Some(job) = self.published().watch(*id).map(|watch| watch.job()) else { continue };
            let is_present = job.running().is_some_and(|running| running.attempt == *attempt);
            if is_present && job.agent.as_ref() == Some(agent) {
                self.note_judgement(&job, result).await;
            }
        }
    }
}
