//! The work of a job, from its turn to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosspoint_contracts::failure::Failure as Why;
use crosspoint_contracts::outcome::Outcome;
use crosspoint_exchange::backend::Followed;
use tokio::time::Instant;

use super::{OwnJobs, Work};
use crate::record::{Asked, Job, Phase};
use crate::{Context, doing};

/// What becomes of an outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The same request gets it again.
    Kept,
    /// The same request is done again.
    DoneAgain,
    /// The store stays as it is, as after a crash.
    Lost,
}

impl OwnJobs {
    /// Does the work of a job, when there is room for it.
    pub(super) async fn work(self, job: Job, asked: Arc<Asked>, context: Context) {
        let (outcome, fate) = match self.begin(&job, &asked, &context).await {
            Ok(work) => self.run(work, &job, &asked, &context).await,
            Err(outcome) => (outcome, Fate::DoneAgain),
        };
        // A handler may have left a copy of its context with another task.
        context.place().release();
        let (_guard, told) = job.ending().await;
        // Work that its caller cancelled stays cancelled: that is what the caller was told.
        if told.is_none() {
            let at = crate::clock::now();
            if let Some(answers) = &self.0.answers {
                match fate {
                    Fate::Kept => answers.keep(&job.now(), at, &outcome).await,
                    Fate::DoneAgain => answers.undo(&asked).await,
                    Fate::Lost => {}
                }
            }
            let (outcome, is_kept) = (Arc::new(outcome), fate != Fate::DoneAgain);
            job.change(|record| record.phase = Phase::Ended { at, outcome, is_kept });
        }
        job.clear();
        let forgotten = self.jobs().end(&job);
        drop(forgotten);
        self.0.ended.notify_waiters();
    }

    /// Waits for the turn of a job, and begins it. Returns the outcome of work that was not begun.
    async fn begin(&self, job: &Job, asked: &Asked, context: &Context) -> Result<&Work, Outcome> {
        if !context.place().try_take() {
            // What is no longer wanted is looked at first: a place may come at the same moment.
            tokio::select! {
                biased;
                () = job.stop().cancelled() => return Err(stopped()),
                () = doing::expired(asked) => return Err(expired()),
                () = context.place().take() => {}
            }
        }
        let work = self.0.works.get(&asked.work).ok_or_else(stopped)?;
        let mut guard = is_wanted(job, asked).await?;
        if work.at_most_once
            && let Some(answers) = &self.0.answers
        {
            if !answers.begin(&job.now()).await {
                let why = "The agent cannot note on its disk that it begins this work, which is done at most once.";
                return Err(doing::not_begun(Why::Unavailable, why));
            }
            // A caller that came to cancel it meanwhile goes first.
            drop(guard);
            guard = is_wanted(job, asked).await?;
        }
        job.change(|record| {
            record.phase = Phase::Running;
            record.started_at = Some(crate::clock::now());
        });
        drop(guard);
        Ok(work)
    }

    async fn run(&self, work: &Work, job: &Job, asked: &Asked, context: &Context) -> (Outcome, Fate) {
        let outcome = doing::run(&work.handler, self.0.grace, job, asked, context).await;
        // Work that could not be done because the agent stops is interrupted, as by a crash.
        if self.0.is_stopped.load(Ordering::Relaxed) && outcome.failure().is_some() {
            return (doing::interrupted(), Fate::Lost);
        }
        let fate = if doing::is_kept(&outcome, work.at_most_once) { Fate::Kept } else { Fate::DoneAgain };
        (outcome, fate)
    }
}

/// Makes sure that a job is still to be begun, and keeps everything else from ending it.
async fn is_wanted<'j>(job: &'j Job, asked: &Asked) -> Result<tokio::sync::MutexGuard<'j, ()>, Outcome> {
    let (guard, told) = job.ending().await;
    if told.is_some() || job.is_stopped() {
        return Err(stopped());
    }
    match asked.deadline {
        Some(deadline) if Instant::from_std(deadline) <= Instant::now() => Err(expired()),
        Some(_) | None => Ok(guard),
    }
}

fn stopped() -> Outcome {
    doing::not_begun(Why::Unavailable, "The agent was stopped before it began this work.")
}

fn expired() -> Outcome {
    doing::not_begun(Why::Timeout, "The time for this work was over before it began.")
}
