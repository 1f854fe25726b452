//! What becomes of attempts that nobody goes on with: the orchestrator was restarted, or the work was never given away.

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::time::Time;

use super::{Action, End, Refused, Step};
use crate::event::What;
use crate::job::State;
use crate::policy::{Policy, Recovery};

impl Step {
    /// Handles a restart of the orchestrator: the attempt that was under way when it ended no longer is (ALL-3).
    pub(super) fn interrupted(mut self, end: End, now: Time, policy: &Policy) -> Step {
        let Some(&running) = self.job.running() else { return self };
        let attempt = running.attempt;
        match policy.recovery {
            Recovery::Rerun => self.cut_short(attempt, end, now, policy),
            Recovery::Resume | Recovery::ResumeOnce => {
                self.take_up(now);
                self.actions.push(Action::Resume { attempt });
            }
            Recovery::Fail => {
                let message =
                    "The orchestrator was restarted while the agent had the work, and cannot know what became of it.";
                self.end_failed(Failed::said(Failure::Unavailable, Dispatched::Yes, message), now);
            }
        }
        self
    }

    /// Handles work that died with the orchestrator. The work begins again, unless it may be what crashes the
    /// orchestrator (ALL-13). A job that waits for a person does nothing that could crash it.
    fn cut_short(&mut self, attempt: u32, end: End, now: Time, policy: &Policy) {
        self.may_have_begun(policy);
        let at_work = matches!(self.job.state, State::Running(_));
        if end == End::Unclean && at_work && policy.cut_short_max.is_some() {
            self.job.cut_short = self.job.cut_short.saturating_add(1);
        }
        let poisoned = at_work && policy.cut_short_max.is_some_and(|most| self.job.cut_short >= most);
        self.requeue(if poisoned { State::Poisoned } else { State::Queued }, attempt, now);
    }

    /// Begins a poisoned job anew. The operator has looked at it, so the count of attempts that were cut short starts
    /// at 0 again.
    pub(super) fn release(mut self, now: Time) -> Result<Step, Refused> {
        let State::Poisoned = self.job.state else { return Err(Refused::NotAside(self.job.phase())) };
        self.job.cut_short = 0;
        self.enter(State::Queued, now);
        self.rewritten = true;
        Ok(self)
    }

    pub(super) fn withdrawn(mut self, attempt: u32, now: Time) -> Step {
        if self.is_present(attempt) {
            self.requeue(State::Queued, attempt, now);
        }
        self
    }

    /// Prepares another attempt, which begins at once or when an operator says so. It is not a repeat, because no agent
    /// failed.
    fn requeue(&mut self, state: State, attempt: u32, now: Time) {
        self.enter(state, now);
        // The job's time begins anew too: time in which no agent had the job does not count.
        (self.job.started_at, self.job.waited) = (None, Duration::ZERO);
        self.note(What::Interrupted { attempt }, now);
    }
}
