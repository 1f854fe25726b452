//! Runs that cannot go on for a while. They are not ended for that: what they have done would be lost, and what holds
//! them may pass.

use std::time::Duration;

use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Attempt;

use super::runner::Parting;

/// Pause before another look at what a run is held by.
const HOLD_PAUSE: Duration = Duration::from_secs(5);

/// What the progress of a run begins with that is held.
const HELD: &str = "held: ";

/// Returns why a run is held, if it is.
pub(crate) fn why_held(run: &Job) -> Option<String> {
    run.running()?;
    let step: String = serde_json::from_str(run.progress.as_ref()?.step.as_ref()?.get()).ok()?;
    step.starts_with(HELD).then_some(step)
}

/// A run that cannot go on for a while, and shows why.
#[derive(Default)]
pub(super) struct Hold {
    is_shown: bool,
}

impl Hold {
    /// Shows why the run is held, once, and waits until it is worth another look.
    pub(super) async fn wait(&mut self, attempt: &Attempt, why: &str) -> Result<(), Parting> {
        // While a person is asked, the question is what is shown.
        let is_asking = attempt.watch().is_some_and(|watch| watch.job().is_asking());
        if !is_asking && !std::mem::replace(&mut self.is_shown, true) {
            attempt.progress_at_once(&format!("{HELD}{why}"));
        }
        tokio::select! {
            () = tokio::time::sleep(HOLD_PAUSE) => Ok(()),
            () = attempt.stopped() => Err(Parting::Over),
        }
    }
}
