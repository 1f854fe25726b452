//! Looks at results before they are stored: at outputs whose work has a schema (TASK-10), and at the files of stages.
//!
//! In a run one bad path fails the stage's job, and nothing is written (WF-4.10). So does an envelope that does not
//! say where the run goes: an agent that wants a person asked must not be passed over. So both are looked at here,
//! while the outcome of the stage can still be another one. The paths are looked at again when the files are written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{AgentDocument, Failed, Given, Success};
use crosspoint_engine::event::Violation;
use crosspoint_engine::job::{Job, Origin};
use crosspoint_engine::runtime::{Judge, Judgement};
use crosspoint_workflow::repository::{self, Change, Fault, NotApplied};

use super::printed;
use super::runs::Runs;
use super::workplace::Workplace;
use super::{artifacts, output};
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
            let printed = printed::envelope(job, result).await;
            let result = match &printed {
                Some((read, found)) => {
                    violations.extend(found.iter().cloned());
                    read
                }
                None => result,
            };
            let instead = match self.unusable(job, result).await {
                Some(unusable) => {
                    let failed = Failed::said(unusable.failure, Dispatched::Yes, &unusable.message);
                    violations.extend(unusable.violation);
                    Some(Err(keeping(failed, result)))
                }
                None => followed(job, result).map(Ok),
            };
            let instead = instead.or(printed.map(|(read, _)| read));
            Judgement { violations, instead }
        })
    }
}

/// Keeps with a failure what the agent gave: its work may have been dear (ALL-11).
fn keeping(failed: Failed, result: &Result<Success, Failed>) -> Failed {
    match result {
        Ok(Success { outputs, text, whole_bytes, artifacts, document, .. }) => {
            let (outputs, text, artifacts) = (outputs.clone(), text.clone(), artifacts.clone());
            let given = Given { outputs, text, whole_bytes: *whole_bytes, artifacts }.if_any();
            Failed { given, document: document.clone().map(Box::new), ..failed }
        }
        Err(Failed { given, document, .. }) => Failed { given: given.clone(), document: document.clone(), ..failed },
    }
}

/// Returns the result of a stage whose agent says in an envelope that it did not succeed: the run follows what the
/// agent recommends (WF-7), and a stage that is followed has not failed.
fn followed(job: &Job, result: &Result<Success, Failed>) -> Option<Success> {
    job.request.child_of()?;
    let failed = result.as_ref().err().filter(|failed| output::is_said_by(failed))?;
    let document = failed.document.as_deref().filter(|document| document.kind == Kind::WorkflowOutput)?;
    let artifacts = failed.given.as_ref().and_then(|given| given.artifacts.clone());
    let summary = failed.message.clone().map(Success::of).unwrap_or_default();
    Some(Success { artifacts, document: Some(document.clone()), ..summary })
}

/// Why a run cannot go on with what a stage gave.
struct Unusable {
    failure: Failure,
    message: String,
    violation: Option<Violation>,
}

impl Unusable {
    fn file(clause: &'static Clause, message: String) -> Unusable {
        let what = "a path of an artifact may not be written, so nothing was".into();
        let violation = Some(Violation { clause: clause.id, level: clause.level, what });
        Unusable { failure: Failure::BrokenContract, message, violation }
    }
}

impl Judges {
    /// Returns why the run of a stage cannot go on with what the stage gave: it cannot be told where the run goes, or
    /// the files may not be written.
    async fn unusable(&self, job: &Job, result: &Result<Success, Failed>) -> Option<Unusable> {
        let Some(Origin::ChildOf { parent, stage }) = &job.request.origin else { return None };
        let given = Output::of(result);
        // It may be long.
        let changes = match tokio::task::spawn_blocking(move || given.changes()).await.ok()? {
            Ok(changes) if changes.is_empty() => return None,
            Ok(changes) => changes,
            Err(unusable) => return Some(unusable),
        };
        let place = tokio::time::timeout(RUN_TIME_MAX, self.runs.place_of(*parent)).await.ok()?;
        let stage = stage.clone();
        let look = move || look(&place, &stage, &changes);
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }
}

/// What a stage gave.
struct Output {
    artifacts: Option<Body>,
    document: Option<AgentDocument>,
    /// Whether its run goes where it says.
    is_followed: bool,
}

impl Output {
    fn of(result: &Result<Success, Failed>) -> Output {
        let is_followed = result.as_ref().err().is_none_or(output::is_said_by);
        let (artifacts, document) = match result {
            Ok(success) => (success.artifacts.clone(), success.document.clone()),
            Err(failed) => {
                let given = failed.given.as_ref().and_then(|given| given.artifacts.clone());
                (given, failed.document.as_deref().cloned())
            }
        };
        Output { artifacts, document, is_followed }
    }

    /// Returns the files, if their paths could be those of any repository. This needs no run, which may be a while in
    /// coming.
    fn changes(&self) -> Result<Vec<Change>, Unusable> {
        let document = self.document.as_ref();
        if let Some(clause) = document.filter(|_| self.is_followed).and_then(output::unroutable) {
            let message = format!("The output does not say where the run goes ({}).", clause.id);
            return Err(Unusable { failure: Failure::BrokenContract, message, violation: None });
        }
        let changes = artifacts::read(self.artifacts.as_ref(), document)
            .map_err(|no_file| Unusable::file(no_file.clause, format!("{} ({}).", no_file.what, no_file.clause.id)))?;
        match repository::check_spelling(&changes).err().and_then(unusable) {
            Some(unusable) => Err(unusable),
            None => Ok(changes),
        }
    }
}

/// Looks at the places of all files. What is wrong with the repository itself is no fault of the agent's, and is found
/// again when the files are written.
fn look(place: &Workplace, stage: &str, changes: &[Change]) -> Option<Unusable> {
    place.open().ok()?.check(changes, &place.rules(stage)).err().and_then(unusable)
}

fn unusable(why: NotApplied) -> Option<Unusable> {
    let message = format!("The artifacts cannot be written: {why}.");
    match why {
        NotApplied::Fault(Fault::Limit { .. }) => {
            Some(Unusable { failure: Failure::ResourceLimit, message, violation: None })
        }
        NotApplied::Fault(_) => None,
        NotApplied::Refused(paths) => Some(Unusable::file(paths.first()?.clause, message)),
    }
}
