//! Work that is done in stages: an attempt that has other jobs done, stores each step, and finds both again when it is
//! taken up after a restart.

use std::sync::Arc;
use std::time::Instant;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::request::NewJob;

use super::attempt::{Attempt, Gone};
use super::engine::Engine;
use super::published::Watch;
use super::requests::{Submitted, Unaccepted};
use crate::core::{Rejected, Submission};
use crate::event::What;
use crate::job::{Job, Origin, State};
use crate::machine::Event;
use crate::store::Fault;

impl Attempt {
    /// Stores a step of the work. When it returns, the step is on disk.
    pub async fn step(&self, step: Body) -> Result<(), Gone> {
        self.report(Event::Step { attempt: self.number(), step }).await
    }

    /// Reads the steps of this job that are on disk, in order. There may be more than fit into memory together.
    pub async fn steps(&self, mut each: impl FnMut(Body) + Send) -> Result<(), Fault> {
        let Some(mut events) = self.engine().follow(self.job().id(), 0).await? else { return Ok(()) };
        // Only what happened already: nothing is waited for.
        while let Some(entry) = events.next(Instant::now()).await? {
            if let What::Step { step } = entry.what {
                each(step);
            }
        }
        Ok(())
    }

    /// Has another job done as a stage of this one. A stage whose key is known already is that job, so a stage that was
    /// asked for before a crash is not done twice. The stage ends when this job ends.
    ///
    /// `step` is the step of the work that led to this stage, if there is one. It is on disk when this returns.
    pub async fn stage(&self, stage: &str, new: NewJob, step: Option<Body>) -> Result<Watch, Unaccepted> {
        let origin = Origin::ChildOf { parent: self.job().id().uuid(), stage: stage.into() };
        let with_step = step.clone().map(|step| (self.number(), step));
        let submission = Submission { step: with_step, ..self.engine().submission(new, Some(origin)) };
        match self.engine().unnamed().submit_as(submission).await? {
            Submitted::New(watch) => Ok(watch),
            Submitted::Repeat(watch) => match step {
                // The stage was accepted before, and its step with it, unless it came here without one.
                Some(step) => {
                    // A step that is stored twice would make no sense when the work is taken up.
                    let is_stored = self.has_step(&step).await;
                    if !is_stored.map_err(|fault| Unaccepted::NotTried(Arc::new(fault)))? {
                        self.step(step).await.map_err(|Gone| Unaccepted::Rejected(Rejected::ParentEnded))?;
                    }
                    Ok(watch)
                }
                None => Ok(watch),
            },
        }
    }

    /// Whether a step is stored, as the last one.
    async fn has_step(&self, step: &Body) -> Result<bool, Fault> {
        let mut last = None;
        self.steps(|stored| last = Some(stored)).await?;
        Ok(last.as_ref() == Some(step))
    }

    /// Returns the job with this id in this store, whatever became of it. For links that find traces of other jobs
    /// where they want to work.
    pub async fn other(&self, id: &str) -> Result<Option<Arc<Job>>, Failed> {
        let Some(id) = self.engine().job_id(id) else { return Ok(None) };
        match self.engine().job(id).await {
            Ok(watch) => Ok(watch.map(|watch| watch.job())),
            Err(error) => {
                tracing::error!(job = %id, %error, "a job cannot be read");
                Err(Failed::of(Failure::Internal, Dispatched::No))
            }
        }
    }
}

impl Engine {
    /// Returns the stage of this job that is under way.
    pub fn stage_of(&self, job: &Job) -> Option<Watch> {
        self.published().stage_of(job.id())
    }

    /// Returns the stage for which this job cannot go on before a person or an operator has done something: the stage
    /// asks, is not begun again (ALL-13), or its agent is not here.
    pub fn resting_stage(&self, job: &Job) -> Option<Arc<Job>> {
        if !matches!(job.state, State::Running(_)) {
            return None;
        }
        let stage = self.stage_of(job)?.job();
        let has_no_agent = || {
            let agent = stage.agent.as_deref().filter(|_| stage.running().is_some());
            agent.is_some_and(|agent| self.published().agent(agent).is_none())
        };
        (stage.needs_a_person() || has_no_agent()).then_some(stage)
    }
}
