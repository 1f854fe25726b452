//! Runs that cannot go on for a while. They are not ended for that: what they have done would be lost, and what holds
//! them may pass.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use crosspoint_engine::job::{Job, State};
use crosspoint_engine::runtime::Attempt;

use super::runner::Parting;

/// Pause before another look at what a run is held by.
const HOLD_PAUSE: Duration = Duration::from_secs(5);

/// What the progress of a run begins with that is held.
pub(crate) const HELD: &str = "held: ";

/// Why a run does not move that waits for a command.
pub(crate) const NOT_DRIVEN: &str = "no process drives it";

/// Returns why a run is held, if it is. A run that has asked a person since is not.
pub(crate) fn why_held(run: &Job) -> Option<String> {
    let State::Running(_) = &run.state else { return None };
    let step: String = serde_json::from_str(run.progress.as_ref()?.step.as_ref()?.get()).ok()?;
    step.starts_with(HELD).then_some(step)
}

/// A run that cannot go on for a while, and shows why.
#[derive(Default)]
pub(super) struct Hold {
    shown: String,
}

impl Hold {
    /// Shows why the run is held, once for each reason, and waits until it is worth another look.
    pub(super) async fn wait(&mut self, attempt: &Attempt, why: &str) -> Result<(), Parting> {
        self.show(attempt, why);
        tokio::select! {
            () = tokio::time::sleep(HOLD_PAUSE) => Ok(()),
            () = attempt.stopped() => Err(Parting::Over),
        }
    }

    /// Waits for something. If it takes longer than a moment, the run shows why it is held.
    pub(super) async fn during<T>(
        &mut self,
        attempt: &Attempt,
        why: &str,
        done: impl Future<Output = T>,
    ) -> Result<T, Parting> {
        let mut done = pin!(done);
        loop {
            tokio::select! {
                done = &mut done => return Ok(done),
                () = attempt.stopped() => return Err(Parting::Over),
                () = tokio::time::sleep(HOLD_PAUSE) => self.show(attempt, why),
            }
        }
    }

    /// Does something that ends by itself. If it takes longer than a moment, the run shows what is done.
    pub(super) async fn beside<T>(&mut self, attempt: &Attempt, what: &str, done: impl Future<Output = T>) -> T {
        let mut done = pin!(done);
        tokio::select! {
            done = &mut done => return done,
            () = tokio::time::sleep(HOLD_PAUSE) => self.show(attempt, what),
        }
        done.await
    }

    fn show(&mut self, attempt: &Attempt, why: &str) {
        // While a person is asked, the question is what is shown.
        let is_asking = attempt.watch().is_some_and(|watch| watch.job().is_asking());
        if !is_asking && self.shown != why {
            why.clone_into(&mut self.shown);
            attempt.progress_at_once(&format!("{HELD}{why}"));
        }
    }
}
