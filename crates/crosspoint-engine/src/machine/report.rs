//! What agents report: signs of life, progress, output, questions, results.

use std::sync::Arc;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::outcome::{Status, Text};
use crosspoint_contracts::reply::{Failed, Lost, Progress, Question, Success};
use crosspoint_contracts::time::Time;

use super::clock::PROGRESS_PERIOD;
use super::{Action, Step};
use crate::breaker::Mark;
use crate::event::{Violation, What};
use crate::job::{Running, State};
use crate::policy::{MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, Policy};

impl Step {
    pub(super) fn heard(mut self, attempt: u32, now: Time) -> Step {
        if self.is_present(attempt) {
            self.set_heard(now);
        }
        self
    }

    pub(super) fn progress(mut self, attempt: u32, progress: Progress, now: Time) -> Step {
        if !self.is_present(attempt) {
            return self.late("progress was reported after the outcome");
        }
        self.set_heard(now);
        let percent = progress.percent.filter(|percent| !percent.is_nan()).map(|percent| percent.clamp(0.0, 100.0));
        // A report may hold only one of the two; the other stays as it was.
        let last = self.job.pending.as_ref().or(self.job.progress.as_ref());
        let percent = percent.or(last.and_then(|last| last.percent));
        let step = progress.step.or_else(|| last.and_then(|last| last.step.clone()));
        // A report of the start says nothing about the progress since.
        let document = match &progress.began {
            Some(_) => progress.document.or_else(|| last.and_then(|last| last.document.clone())),
            None => progress.document,
        };
        let held_back = self.job.pending.as_ref().and_then(|pending| pending.began.clone());
        let began = progress.began.or(held_back);
        self.job.pending = Some(Arc::new(Progress { percent, step, document, began }));
        if self.job.progress_at.plus(PROGRESS_PERIOD) <= now {
            self.show_progress(now);
        }
        self
    }

    pub(super) fn output(mut self, attempt: u32, offset: u64, block: &Block, now: Time, policy: &Policy) -> Step {
        if !self.is_present(attempt) {
            return self.late("output came after the outcome");
        }
        self.set_heard(now);
        let have = self.job.output_bytes;
        let end = offset.saturating_add(block.0.len() as u64);
        if end <= have {
            // The block was sent again: what is stored stands.
            return self;
        }
        if offset > have {
            self.stop_attempt();
            self.end_failed(output_missing(), now);
            return self;
        }
        let limit = self.job.request.limits.output_bytes.unwrap_or(policy.output_bytes_max).min(OUTPUT_BYTES_MAX);
        if end > limit {
            self.stop_attempt();
            self.end_oversized(limit, now);
            return self;
        }
        let new = usize::try_from(have - offset).unwrap_or(usize::MAX).min(block.0.len());
        self.job.output_bytes = end;
        self.note(What::Output { attempt, offset: have, block: Block(block.0.slice(new..)) }, now);
        self
    }

    /// Stores what the link remembers in the job's row; it is not an event. Memory over the limit is ignored: the link
    /// was told so.
    pub(super) fn remember(mut self, attempt: u32, memory: Block, now: Time) -> Step {
        if !self.is_present(attempt) || memory.0.len() > MEMORY_BYTES_MAX {
            return self;
        }
        self.set_heard(now);
        let before = self.job.memory.as_ref();
        if before == Some(&memory) {
            return self;
        }
        if before.is_some() {
            // The work has come further than its beginning, so it is not what crashes the orchestrator (ALL-13).
            self.job.cut_short = 0;
        }
        self.job.memory = Some(memory);
        self.rewritten = true;
        self
    }

    /// Stores a step that the agent has finished. The work has come further, so it is not what crashes the orchestrator
    /// (ALL-13).
    pub(super) fn step(mut self, attempt: u32, step: Body, now: Time) -> Step {
        if !self.is_present(attempt) {
            return self.late("a step was reported after the outcome");
        }
        self.set_heard(now);
        self.job.cut_short = 0;
        self.note(What::Step { step }, now);
        self
    }

    pub(super) fn ask(mut self, attempt: u32, question: Question, answered: Option<u32>, now: Time) -> Step {
        if !self.is_present(attempt) {
            return self.late("a question came after the outcome");
        }
        self.set_heard(now);
        let Some(&running) = self.job.running() else { return self };
        // An attempt that is taken up asks again. A person may have answered just before: the answer is on its way.
        if answered.is_some_and(|answered| answered < running.asked) {
            return self;
        }
        if let State::Waiting { question: asked, .. } = &self.job.state
            && *asked == question
        {
            return self;
        }
        if let Some(known) = self.job.answers.get(running.asked as usize)
            && known.question == question
        {
            // An earlier attempt asked the same question and a person answered it: no person is asked twice.
            let answer = known.answer.clone();
            self.enter(State::Running(Running { asked: running.asked + 1, ..running }), now);
            self.actions.push(Action::Deliver { attempt, answer });
            return self;
        }
        self.enter(State::Waiting { running, question: question.clone() }, now);
        self.note(What::Asked { question }, now);
        self
    }

    pub(super) fn unasked(mut self, attempt: u32, now: Time) -> Step {
        if !self.is_present(attempt) {
            return self;
        }
        self.set_heard(now);
        let State::Waiting { running, .. } = &self.job.state else { return self };
        let running = *running;
        self.enter(State::Running(running), now);
        // The job goes on. Followers of the job learn of it by a progress event that repeats the latest known progress.
        let last = self.job.pending.take().or_else(|| self.job.progress.clone());
        self.job.pending = Some(last.unwrap_or_default());
        if self.job.progress_at.plus(PROGRESS_PERIOD) <= now {
            self.show_progress(now);
        }
        self
    }

    pub(super) fn finish(mut self, attempt: u32, result: Result<Success, Failed>, now: Time, policy: &Policy) -> Step {
        if attempt == 0 || attempt > self.job.attempts {
            return self.violates("ALL-2", "a result came for an attempt that was never made");
        }
        if !self.is_present(attempt) && result.as_ref().is_err_and(Failed::has_died) {
            // No agent reported this. The worker that had the attempt was found dead, too late to matter.
            return self;
        }
        if let State::Ended(outcome) = &self.job.state {
            let what = match (outcome.status, &result) {
                (Status::Completed, Ok(_)) | (Status::Failed, Err(_)) => "a result came again after the outcome",
                (Status::Completed, Err(_)) | (Status::Failed, Ok(_)) => "a result came that contradicts the outcome",
                (Status::Cancelled, Ok(_) | Err(_)) => "a result came after the job was cancelled",
            };
            return self.violates("ALL-9.3", what);
        }
        let present = self.is_present(attempt);
        match result {
            Ok(success) if present && is_missing(&success, self.job.output_bytes) => {
                self.mark(Mark::Good);
                self.end_failed(output_missing(), now);
                self
            }
            Ok(success) => {
                if present {
                    self.mark(Mark::Good);
                } else {
                    // This attempt was given up, but the work is done: the agent that does it again is told to stop.
                    self.stop_attempt();
                }
                self.end_completed(success, now);
                self
            }
            // The agent had gone, so it behaved neither well nor badly. Its absence is known without the breaker.
            Err(failed) if present && failed.has_died() => {
                self.attempt_failed(failed, now, policy);
                self
            }
            Err(failed) if present => {
                self.mark(match failed.failure {
                    Failure::Timeout | Failure::Unavailable if failed.lost == Some(Lost::Dropped) => Mark::Dropped,
                    Failure::Timeout | Failure::Unavailable => Mark::Bad,
                    Failure::Invalid
                    | Failure::Unauthenticated
                    | Failure::ResourceLimit
                    | Failure::Unsupported
                    | Failure::AgentFailed
                    | Failure::Cancelled
                    | Failure::Delegation
                    | Failure::Conflict
                    | Failure::BrokenContract
                    | Failure::Internal => Mark::Good,
                });
                self.attempt_failed(failed, now, policy);
                self
            }
            Err(_) => self.violates("ALL-4", "an attempt that was given up reported its failure"),
        }
    }

    /// Whether this is the attempt under way.
    pub(super) fn is_present(&self, attempt: u32) -> bool {
        self.job.running().is_some_and(|running| running.attempt == attempt)
    }

    /// Handles a report of an attempt that is over. Reports of attempts that were given up do not count; an agent that
    /// reports something after its success breaks a rule.
    fn late(self, what: &'static str) -> Step {
        match &self.job.state {
            State::Ended(outcome) if outcome.status == Status::Completed => self.violates("ALL-9.3", what),
            State::Ended(_)
            | State::Queued
            | State::Running(_)
            | State::Retrying { .. }
            | State::Waiting { .. }
            | State::Poisoned => self,
        }
    }

    fn violates(mut self, clause: &'static str, what: &'static str) -> Step {
        self.breaks(clause, what);
        self
    }

    /// Notes that the agent broke a rule.
    pub(super) fn breaks(&mut self, clause: &'static str, what: &'static str) {
        self.violation = Some(Violation { clause, level: Level::Error, what: what.into() });
    }

    fn mark(&mut self, mark: Mark) {
        if let Some(agent) = self.job.agent.clone() {
            self.actions.push(Action::Mark { agent, mark });
        }
    }
}

/// Whether a result names output as its text that the agent never sent, of which there are this many bytes.
fn is_missing(success: &Success, output_bytes: u64) -> bool {
    matches!(success.text, Some(Text::Printed(printed)) if printed.end > output_bytes || printed.start > printed.end)
}

fn output_missing() -> Failed {
    Failed::said(Failure::BrokenContract, Dispatched::Yes, "A part of the agent's output is missing.")
}
