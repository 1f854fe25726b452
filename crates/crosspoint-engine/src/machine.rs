//! The life of a job, as one pure function.
//!
//! Everything that can happen to a job is an [`Event`]. [`step`] says what becomes of the job and what has to be done.
//! The code that calls it supplies the time, commits the new state, and performs the actions afterwards. A crash in
//! between loses the actions, not the state. The actions follow from the state (a running job has to be dispatched), so
//! at the next start [`Event::Interrupted`] makes up for them, and every action is safe to perform twice.
//!
//! Three rules decide all races:
//! - the first outcome that is committed stands, and nothing follows it;
//! - a success of *any* attempt ends the job, also of an attempt that was given up: every attempt carries the same id
//!   (ALL-2), so it is this job's work that was done, and doing it again would be doing it twice;
//! - a failure counts only if it is that of the present attempt.

mod clock;
mod end;
mod interrupted;
mod report;

use std::sync::Arc;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use crosspoint_contracts::time::Time;

use crate::event::{Entry, Violation, What};
use crate::job::{Answered, Job, Phase, QuestionId, Running, State};
use crate::policy::{Policy, Repeats};
pub use clock::alarm;
pub use end::pause;

/// Most changes of agents that are remembered of one job.
const HAD_MAX: usize = 100;

/// Something that happens to a job.
#[derive(Clone, Debug)]
pub enum Event {
    /// An agent with a free place was found for the job.
    Start {
        /// The agent's name.
        agent: Arc<str>,
    },
    /// The agent gave a sign of life.
    Heard {
        /// The attempt.
        attempt: u32,
    },
    /// The agent reports progress.
    Progress {
        /// The attempt.
        attempt: u32,
        /// How far the agent is.
        progress: Progress,
    },
    /// The agent printed something.
    Output {
        /// The attempt.
        attempt: u32,
        /// Where in the attempt's output the block begins, in bytes.
        offset: u64,
        /// The bytes.
        block: Block,
    },
    /// The agent asks a person.
    Ask {
        /// The attempt.
        attempt: u32,
        /// The question.
        question: Question,
        /// How many of its questions had been answered when it asked, as far as it knew. A question that was answered
        /// before this is heard is not asked again.
        answered: Option<u32>,
    },
    /// The agent no longer needs an answer to its question.
    Unasked {
        /// The attempt.
        attempt: u32,
    },
    /// The agent's link stores what it has to know if the attempt is taken up after a restart.
    Remember {
        /// The attempt.
        attempt: u32,
        /// What the link has to know. It replaces what the link stored before.
        memory: Block,
    },
    /// The agent has finished a step of its work.
    Step {
        /// The attempt.
        attempt: u32,
        /// What the agent says of it: any JSON.
        step: Body,
    },
    /// The attempt has a result.
    Finish {
        /// The attempt.
        attempt: u32,
        /// The result.
        result: Result<Success, Failed>,
    },
    /// A person answers.
    Answer {
        /// The answer: any JSON.
        answer: Body,
        /// The question that it is an answer to, if the person says so.
        to: Option<QuestionId>,
    },
    /// The attempt was never given to its agent and will not be, because the agent or the worker that was to have it is
    /// gone.
    Withdrawn {
        /// The attempt.
        attempt: u32,
    },
    /// A caller or an operator wants the job stopped.
    Cancel,
    /// A time has come that [`alarm`] returned.
    Clock,
    /// The orchestrator was restarted, and the attempt that was under way before is interrupted.
    Interrupted(End),
    /// An operator wants a poisoned job to be begun again.
    Release,
}

impl Event {
    /// Returns the attempt that the event is about, if it is something that an agent reports.
    pub fn attempt(&self) -> Option<u32> {
        match self {
            Event::Heard { attempt }
            | Event::Progress { attempt, .. }
            | Event::Output { attempt, .. }
            | Event::Ask { attempt, .. }
            | Event::Unasked { attempt }
            | Event::Remember { attempt, .. }
            | Event::Step { attempt, .. }
            | Event::Finish { attempt, .. }
            | Event::Withdrawn { attempt } => Some(*attempt),
            Event::Start { .. }
            | Event::Answer { .. }
            | Event::Cancel
            | Event::Clock
            | Event::Interrupted(_)
            | Event::Release => None,
        }
    }
}

/// How an orchestrator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was asked to end.
    Clean,
    /// It was killed or lost its power, perhaps because of the work itself.
    Unclean,
}

/// What has to be done once the new state is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hand the job to its agent.
    Dispatch {
        /// The number of the attempt.
        attempt: u32,
    },
    /// Take up an attempt that the agent has gone on with.
    Resume {
        /// The attempt.
        attempt: u32,
    },
    /// Tell the agent to stop.
    Stop {
        /// The attempt.
        attempt: u32,
    },
    /// Give the agent a person's answer.
    Deliver {
        /// The attempt that asked.
        attempt: u32,
        /// The answer.
        answer: Body,
    },
    /// Tell the agent's breaker how the agent behaved.
    Mark {
        /// The agent's name.
        agent: Arc<str>,
        /// How it behaved.
        mark: crate::breaker::Mark,
    },
}

/// What one event does to a job.
#[derive(Clone, Debug)]
pub struct Step {
    /// The job as it is now.
    pub job: Job,
    /// The events to store. If there are none, only parts of the job have changed that a restart does not need, unless
    /// `rewritten` is set.
    pub entries: Vec<Entry>,
    /// What has to be done after the commit.
    pub actions: Vec<Action>,
    /// The rule that an agent broke, if it broke one.
    pub violation: Option<Violation>,
    /// Whether the job's row has to be stored although nothing happened that is an event.
    pub rewritten: bool,
}

/// Why a request to change a job was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The job has ended.
    #[error("the job has ended as {}", .0.name())]
    Ended(Phase),
    /// The job waits for no answer.
    #[error("the job is {} and waits for no answer", .0.name())]
    NotWaiting(Phase),
    /// The answer is to another question than the one that the job waits with.
    #[error("the job waits for the answer to another question by now")]
    OtherQuestion,
    /// The job waits for an operator, not for an answer.
    #[error("the job waits for an operator to retry or cancel it, not for an answer")]
    Poisoned,
    /// The job is not in the queue.
    #[error("the job is {} and cannot start", .0.name())]
    NotQueued(Phase),
    /// The job is neither poisoned nor set aside, so it needs no release.
    #[error("the job is {} and is not set aside", .0.name())]
    NotAside(Phase),
    /// The job is set aside, because its changes cannot be written.
    #[error("the job is set aside, because what happens to it cannot be written")]
    Aside,
}

/// Decides what one event does to one job.
///
/// `policy` is the policy of the job's agent, or the default policy where no agent has had the job.
pub fn step(job: &Job, event: Event, now: Time, policy: &Policy) -> Result<Step, Refused> {
    let step = Step { job: job.clone(), entries: Vec::new(), actions: Vec::new(), violation: None, rewritten: false };
    match event {
        Event::Start { agent } => step.start(&agent, now),
        Event::Heard { attempt } => Ok(step.heard(attempt, now)),
        Event::Progress { attempt, progress } => Ok(step.progress(attempt, progress, now)),
        Event::Output { attempt, offset, block } => Ok(step.output(attempt, offset, &block, now, policy)),
        Event::Ask { attempt, question, answered } => Ok(step.ask(attempt, question, answered, now)),
        Event::Unasked { attempt } => Ok(step.unasked(attempt, now)),
        Event::Remember { attempt, memory } => Ok(step.remember(attempt, memory, now)),
        Event::Step { attempt, step: done } => Ok(step.step(attempt, done, now)),
        Event::Finish { attempt, result } => Ok(step.finish(attempt, result, now, policy)),
        Event::Answer { answer, to } => step.answer(answer, to, now),
        Event::Withdrawn { attempt } => Ok(step.withdrawn(attempt, now)),
        Event::Cancel => step.cancel(now),
        Event::Clock => Ok(step.clock(now, policy)),
        Event::Interrupted(end) => Ok(step.interrupted(end, now, policy)),
        Event::Release => step.release(now),
    }
}

impl Step {
    fn start(mut self, agent: &Arc<str>, now: Time) -> Result<Step, Refused> {
        let State::Queued = self.job.state else { return Err(Refused::NotQueued(self.job.phase())) };
        let attempt = self.job.attempts + 1;
        if let Some(before) = self.job.agent.take().filter(|before| before != agent) {
            let had = Arc::make_mut(&mut self.job.had);
            if had.len() >= HAD_MAX {
                // The agents of the oldest attempts are forgotten. No agent has an empty name, so none matches it.
                had.remove(0);
                had[0].1 = "".into();
            }
            had.push((self.job.attempts, before));
        }
        self.job.attempts = attempt;
        self.job.started_at.get_or_insert(now);
        self.job.output_bytes = 0;
        self.job.agent = Some(agent.clone());
        let running = Running { attempt, heard_at: now, timed_from: now, asked: 0, taken_up_at: None };
        self.enter(State::Running(running), now);
        self.note(What::Started { attempt, agent: agent.as_ref().into() }, now);
        self.actions.push(Action::Dispatch { attempt });
        Ok(self)
    }

    fn answer(mut self, answer: Body, to: Option<QuestionId>, now: Time) -> Result<Step, Refused> {
        // A person, or a program, may not have heard that the answer was taken, and sends it again.
        if to.is_some_and(|to| self.was_given(&answer, to)) {
            return Ok(self);
        }
        let State::Waiting { running, question } = self.job.state.clone() else {
            if let State::Poisoned = self.job.state {
                return Err(Refused::Poisoned);
            }
            let phase = self.job.phase();
            return Err(if phase.is_end() { Refused::Ended(phase) } else { Refused::NotWaiting(phase) });
        };
        if to.is_some() && to != self.job.open_question() {
            return Err(Refused::OtherQuestion);
        }
        let answers = Arc::make_mut(&mut self.job.answers);
        answers.truncate(running.asked as usize);
        answers.push(Answered { question, answer: answer.clone() });
        let attempt = running.attempt;
        self.enter(State::Running(Running { heard_at: now, asked: running.asked + 1, ..running }), now);
        self.note(What::Answered { answer: answer.clone() }, now);
        self.actions.push(Action::Deliver { attempt, answer });
        Ok(self)
    }

    /// Whether a question of the present attempt was answered like this.
    fn was_given(&self, answer: &Body, to: QuestionId) -> bool {
        let running = self.job.running();
        let is_past = running.is_some_and(|running| running.attempt == to.attempt && to.number < running.asked);
        is_past && self.job.answers.get(to.number as usize).is_some_and(|given| given.answer == *answer)
    }

    fn cancel(mut self, now: Time) -> Result<Step, Refused> {
        if let State::Ended(outcome) = &self.job.state {
            // A job that was cancelled already is as the caller wants it.
            return if outcome.status == Status::Cancelled { Ok(self) } else { Err(Refused::Ended(self.job.phase())) };
        }
        self.stop_attempt();
        self.end_cancelled(now);
        Ok(self)
    }

    /// Changes the job's state. Time spent waiting for a person is counted when the job leaves that state.
    fn enter(&mut self, mut state: State, now: Time) {
        if let State::Waiting { .. } = self.job.state {
            let waited = now.since(self.job.updated_at);
            self.job.waited = self.job.waited.saturating_add(waited);
            if let State::Running(running) | State::Waiting { running, .. } = &mut state {
                running.timed_from = running.timed_from.plus(waited).min(now);
            }
        }
        self.job.state = state;
        self.job.updated_at = now;
        if self.job.running().is_none() {
            self.job.memory = None;
        }
    }

    /// Notes that an agent with this policy may have begun the work in an attempt that is over.
    fn may_have_begun(&mut self, policy: &Policy) {
        self.job.begun = true;
        self.job.stays |= policy.repeats == Repeats::SameAgent;
    }

    fn note(&mut self, what: What, now: Time) {
        self.job.events += 1;
        self.entries.push(Entry { n: self.job.events, at: now, what });
    }

    fn stop_attempt(&mut self) {
        if let Some(running) = self.job.running() {
            self.actions.push(Action::Stop { attempt: running.attempt });
        }
    }

    /// Notes that this orchestrator goes on with the attempt from now on.
    fn take_up(&mut self, now: Time) {
        self.set_heard(now);
        if let State::Running(running) | State::Waiting { running, .. } = &mut self.job.state {
            (running.timed_from, running.taken_up_at) = (now, Some(now));
        }
    }

    fn set_heard(&mut self, now: Time) {
        if let State::Running(running) | State::Waiting { running, .. } = &mut self.job.state {
            running.heard_at = now;
        }
    }
}
