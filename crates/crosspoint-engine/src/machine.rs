//! The life of a job, as one pure function.
//!
//! Everything that can happen to a job is an [`Event`]; [`step`] says what becomes of the job and what is to be done. The
//! caller supplies the time, commits the new state, and performs the actions afterwards. A crash in between loses the
//! actions, not the state: what is owed follows from it (a running job is owed a dispatch), so at the next start
//! [`Event::Interrupted`] makes up for it, and every action is safe to perform twice.
//!
//! Three rules decide all races:
//! - the first outcome that is committed stands, and nothing follows it;
//! - a success of *any* attempt ends the job, also of one that was given up: every attempt carries the same id (ALL-2), so it is
//!   this job's work that was done, and doing it again would be doing it twice;
//! - a failure counts only if it is that of the present attempt.

mod clock;
mod end;
mod report;

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};

pub use clock::alarm;
pub use end::pause_max;

use crate::event::{Entry, Violation, What};
use crate::job::{Answered, Job, Phase, Running, State};
use crate::policy::{Policy, Recovery};
use crate::time::Time;

/// So many changes of agents are remembered of a job.
const HAD_MAX: usize = 100;

/// Something that happens to a job.
#[derive(Clone, Debug)]
pub enum Event {
    /// A place with an agent was found for it.
    Start {
        /// The agent.
        agent: Arc<str>,
    },
    /// The agent gave a sign of life.
    Heard {
        /// In which attempt.
        attempt: u32,
    },
    /// The agent says how far it is.
    Progress {
        /// In which attempt.
        attempt: u32,
        /// How far.
        progress: Progress,
    },
    /// The agent printed something.
    Output {
        /// In which attempt.
        attempt: u32,
        /// Where in the attempt's output.
        offset: u64,
        /// What.
        block: Block,
    },
    /// The agent needs a person.
    Ask {
        /// In which attempt.
        attempt: u32,
        /// What is asked.
        question: Question,
    },
    /// The agent needs the person no more whom it has asked.
    Unasked {
        /// In which attempt.
        attempt: u32,
    },
    /// The agent's link wants to know this when the attempt is taken up after our end.
    Remember {
        /// In which attempt.
        attempt: u32,
        /// What it wants to know, in place of what it remembered before.
        memory: Block,
    },
    /// The agent is done.
    Finish {
        /// With which attempt.
        attempt: u32,
        /// How it went.
        result: Result<Success, Failed>,
    },
    /// A person answers.
    Answer {
        /// What they say: any JSON.
        answer: Body,
    },
    /// The attempt never left us, and will not: whoever was to have it is gone.
    Withdrawn {
        /// Which attempt.
        attempt: u32,
    },
    /// Somebody wants it stopped.
    Cancel,
    /// A time has come that [`alarm`] named.
    Clock,
    /// We were gone, and the attempt that was under way is under way no more.
    Interrupted(End),
    /// An operator wants a job begun again that was poisoned.
    Release,
}

impl Event {
    /// The attempt that an agent speaks of.
    pub fn attempt(&self) -> Option<u32> {
        match self {
            Event::Heard { attempt }
            | Event::Progress { attempt, .. }
            | Event::Output { attempt, .. }
            | Event::Ask { attempt, .. }
            | Event::Unasked { attempt }
            | Event::Remember { attempt, .. }
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
    /// It was asked to.
    Clean,
    /// It was killed, or lost its power; perhaps by the work itself.
    Unclean,
}

/// What is to be done once the new state is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hand the job to its agent.
    Dispatch {
        /// As which attempt.
        attempt: u32,
    },
    /// Take the attempt up that the agent has gone on with.
    Resume {
        /// Which attempt.
        attempt: u32,
    },
    /// Tell the agent to stop.
    Stop {
        /// Which attempt.
        attempt: u32,
    },
    /// Give the agent an answer.
    Deliver {
        /// To which attempt.
        attempt: u32,
        /// The answer.
        answer: Body,
    },
    /// Tell the agent's breaker.
    Mark {
        /// Which agent's.
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
    /// What to store of it. Where there is nothing, only what no restart needs has changed.
    pub entries: Vec<Entry>,
    /// What to do afterwards.
    pub actions: Vec<Action>,
    /// What should not have happened, and was not applied.
    pub violation: Option<Violation>,
    /// Whether the job is to be stored although nothing happened that is an event.
    pub rewritten: bool,
}

/// Why a wish was not granted. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has ended.
    #[error("the job has ended as {}", .0.name())]
    Ended(Phase),
    /// An answer without a question.
    #[error("the job is {} and waits for no answer", .0.name())]
    NotWaiting(Phase),
    /// It waits for something else than an answer.
    #[error("the job waits for an operator to retry or cancel it, not for an answer")]
    Poisoned,
    /// It is not in the queue.
    #[error("the job is {} and cannot start", .0.name())]
    NotQueued(Phase),
    /// Nothing keeps it from being begun.
    #[error("the job is {} and is not set aside", .0.name())]
    NotAside(Phase),
    /// What happens to it cannot be written.
    #[error("the job is set aside, because what happens to it cannot be written")]
    Aside,
}

/// Decides what one event does to one job.
///
/// `policy` is that of the job's agent; the default one where it has had none.
pub fn step(job: &Job, event: Event, now: Time, policy: &Policy) -> Result<Step, Refused> {
    let step = Step { job: job.clone(), entries: Vec::new(), actions: Vec::new(), violation: None, rewritten: false };
    match event {
        Event::Start { agent } => step.start(&agent, now),
        Event::Heard { attempt } => Ok(step.heard(attempt, now)),
        Event::Progress { attempt, progress } => Ok(step.progress(attempt, progress, now)),
        Event::Output { attempt, offset, block } => Ok(step.output(attempt, offset, &block, now, policy)),
        Event::Ask { attempt, question } => Ok(step.ask(attempt, question, now)),
        Event::Unasked { attempt } => Ok(step.unasked(attempt, now)),
        Event::Remember { attempt, memory } => Ok(step.remember(attempt, memory, now)),
        Event::Finish { attempt, result } => Ok(step.finish(attempt, result, now, policy)),
        Event::Answer { answer } => step.answer(answer, now),
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
                // Whose the oldest were is forgotten: no agent has an empty name.
                had.remove(0);
                had[0].1 = "".into();
            }
            had.push((self.job.attempts, before));
        }
        self.job.attempts = attempt;
        self.job.started_at.get_or_insert(now);
        self.job.output_bytes = 0;
        self.job.agent = Some(agent.clone());
        self.enter(State::Running(Running { attempt, heard_at: now, asked: 0, taken_up_at: None }), now);
        self.note(What::Started { attempt, agent: agent.as_ref().into() }, now);
        self.actions.push(Action::Dispatch { attempt });
        Ok(self)
    }

    fn answer(mut self, answer: Body, now: Time) -> Result<Step, Refused> {
        let State::Waiting { running, question } = self.job.state.clone() else {
            if let State::Poisoned = self.job.state {
                return Err(Refused::Poisoned);
            }
            let phase = self.job.phase();
            return Err(if phase.is_end() { Refused::Ended(phase) } else { Refused::NotWaiting(phase) });
        };
        let answers = Arc::make_mut(&mut self.job.answers);
        answers.truncate(running.asked as usize);
        answers.push(Answered { question, answer: answer.clone() });
        let attempt = running.attempt;
        self.enter(State::Running(Running { heard_at: now, asked: running.asked + 1, ..running }), now);
        self.note(What::Answered { answer: answer.clone() }, now);
        self.actions.push(Action::Deliver { attempt, answer });
        Ok(self)
    }

    fn cancel(mut self, now: Time) -> Result<Step, Refused> {
        if let State::Ended(outcome) = &self.job.state {
            // Whoever cancels twice gets what they wanted.
            return if outcome.status == Status::Cancelled { Ok(self) } else { Err(Refused::Ended(self.job.phase())) };
        }
        self.stop_attempt();
        self.end_cancelled(now);
        Ok(self)
    }

    /// At a start of ours: what was under way when we ended is so no more (ALL-3).
    fn interrupted(mut self, end: End, now: Time, policy: &Policy) -> Step {
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

    /// The work died with us. It begins again, unless it may be what ends us (ALL-13); what waits for a person does nothing that could.
    fn cut_short(&mut self, attempt: u32, end: End, now: Time, policy: &Policy) {
        self.job.begun = true;
        let at_work = matches!(self.job.state, State::Running(_));
        if end == End::Unclean && at_work && policy.cut_short_max.is_some() {
            self.job.cut_short = self.job.cut_short.saturating_add(1);
        }
        let poisoned = at_work && policy.cut_short_max.is_some_and(|most| self.job.cut_short >= most);
        self.requeue(if poisoned { State::Poisoned } else { State::Queued }, attempt, now);
    }

    /// Whatever came of it, the operator has looked at it: it begins anew, and so does the count.
    fn release(mut self, now: Time) -> Result<Step, Refused> {
        let State::Poisoned = self.job.state else { return Err(Refused::NotAside(self.job.phase())) };
        self.job.cut_short = 0;
        self.enter(State::Queued, now);
        self.rewritten = true;
        Ok(self)
    }

    fn withdrawn(mut self, attempt: u32, now: Time) -> Step {
        if self.is_present(attempt) {
            self.requeue(State::Queued, attempt, now);
        }
        self
    }

    /// Another attempt follows that is no repeat, at once or when an operator says so: nobody failed.
    fn requeue(&mut self, state: State, attempt: u32, now: Time) {
        self.enter(state, now);
        // It begins anew, and so does its time: hours that nobody had it are not its own.
        (self.job.started_at, self.job.waited) = (None, Duration::ZERO);
        self.note(What::Interrupted { attempt }, now);
    }

    /// Puts the job in another state; time spent waiting for a person is counted when that is over.
    fn enter(&mut self, state: State, now: Time) {
        if let State::Waiting { .. } = self.job.state {
            self.job.waited = self.job.waited.saturating_add(now.since(self.job.updated_at));
        }
        self.job.state = state;
        self.job.updated_at = now;
        if self.job.running().is_none() {
            self.job.memory = None;
        }
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

    /// The attempt goes on from here, for us.
    fn take_up(&mut self, now: Time) {
        self.set_heard(now);
        if let State::Running(running) | State::Waiting { running, .. } = &mut self.job.state {
            running.taken_up_at = Some(now);
        }
    }

    fn set_heard(&mut self, now: Time) {
        if let State::Running(running) | State::Waiting { running, .. } = &mut self.job.state {
            running.heard_at = now;
        }
    }
}
