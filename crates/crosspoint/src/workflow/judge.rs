//! Looks at results before they are stored: at outputs whose work has a schema (TASK-10), and at the files of stages.
//!
//! In a run one bad path fails the stage's job, and nothing is written (WF-4.10). So the paths are looked at here,
//! while the outcome of the stage can still be another one. They are looked at again when they are written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::event::Violation;
use crosspoint_engine::job::{Job, Origin};
use crosspoint_engine::runtime::{Judge, Judgement};
use crosspoint_workflow::repository::NotApplied;

use super::artifacts;
use super::runs::{Runs, Workplace};
use crate::schemas::Schemas;

/// Longest wait for the run of a stage that has ended. After a restart the stage may be quicker than its run.
const RUN_TIME_MAX: Duration = Duration::from_secs(30);

/// The judges of a server.
pub(crate) struct Judges {
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) runs: Arc<Runs>,
}

impl Judge for Judges {
    fn judges(&self, job: &Job) -> bool {
        self.schemas.has_output(&job.request.work) || job.request.child_of().is_some()
    }

    fn judge<'a>(
        &'a self,
        job: &'a Job,
        result: &'a Result<Success, Failed>,
    ) -> Pin<Box<dyn Future<Output = Judgement> + Send + 'a>> {
        Box::pin(async move {
            let mut violations = Vec::new();
            if let Ok(success) = result {
                violations.extend(self.schemas.violated(&job.request.work, success).await);
            }
            let bad = self.bad_file(job, result).await;
            let instead = bad.map(|(clause, message)| {
                let what = "a path of an artifact may not be written, so nothing was".into();
                violations.push(Violation { clause: clause.id, level: clause.level, what });
                Failed::said(Failure::BrokenContract, Dispatched::Yes, &message)
            });
            Judgement { violations, instead }
        })
    }
}

impl Judges {
    /// Returns why the files of a stage may not be written.
    async fn bad_file(&self, job: &Job, result: &Result<Success, Failed>) -> Option<(&'static Clause, String)> {
        let Some(Origin::ChildOf { parent, stage }) = &job.request.origin else { return None };
        let (given, document) = match result {
            Ok(success) => (success.artifacts.as_ref(), success.document.as_ref()),
            Err(failed) => {
                (failed.given.as_ref().and_then(|given| given.artifacts.as_ref()), failed.document.as_deref())
            }
        };
        let changes = match artifacts::read(given, document) {
            Ok(changes) if changes.is_empty() => return None,
            Ok(changes) => changes,
            Err(no_file) => return Some((no_file.clause, format!("{} ({}).", no_file.what, no_file.clause.id))),
        };
        let place = tokio::time::timeout(RUN_TIME_MAX, self.runs.place_of(*parent)).await.ok()?;
        let stage = stage.clone();
        let look = move || look(&place, &stage, &changes);
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }
}

fn look(
    place: &Workplace,
    stage: &str,
    changes: &[crosspoint_workflow::repository::Change],
) -> Option<(&'static Clause, String)> {
    match place.repository.check(changes, &place.rules(stage)) {
        Ok(()) | Err(NotApplied::Fault(_)) => None,
        Err(refused @ NotApplied::Refused(_)) => {
            let message = format!("The artifacts cannot be written: {refused}.");
            let NotApplied::Refused(paths) = refused else { return None };
            Some((paths.first()?.clause, message))
        }
    }
}
