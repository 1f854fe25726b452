//! Agents that mostly obey. Their reports may be lost, repeated, late, out of order, wrong, or never come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::reply::{Failed, Lost, Progress, Question, Success};
use crosspoint_contracts::request::{Backoff, Schedule};
use crosspoint_engine::breaker::{self, Health};
use crosspoint_engine::core::{AgentCommand, Command, Effect, Grip, Spec};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, State};
use crosspoint_engine::machine::{Action, Event};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};

use super::dice::Dice;
use super::rule::LEASE_MICROS;
use super::world::World;

/// What agents know: the number of questions they have asked in an attempt.
#[derive(Default)]
pub(crate) struct Agents {
    asked: BTreeMap<(Seq, u32), u32>,
}

/// One to three agents that take one or both of two works.
pub(crate) fn specs(dice: &mut Dice) -> Vec<Spec> {
    let count = dice.between(1, 3);
    let one = |index: u64| {
        let works: &[&str] = if index == 0 { &["a", "b"] } else { dice.pick(&[&["a"], &["b"], &["a", "b"]]) };
        Spec {
            name: format!("agent{index}").into(),
            contract: "builtin".into(),
            agent_type: None,
            awaited: false,
            works: works.iter().map(|work| Arc::from(*work)).collect(),
            concurrency: dice.between(1, 4) as u32,
            waiting_max: dice.pick(&[1, 2, u32::MAX]),
            policy: Policy {
                silence: dice.percent(60).then(|| Duration::from_millis(dice.between(500, 60_000))),
                total: Duration::from_millis(dice.between(3_000, 600_000)),
                repeats: dice.pick(&[Repeats::Always, Repeats::BeforeStart]),
                recovery: dice.pick(&[Recovery::Rerun, Recovery::Rerun, Recovery::Resume, Recovery::Fail]),
                take_up: Duration::from_millis(dice.between(0, 30_000)),
                cut_short_max: dice.percent(60).then(|| dice.between(1, 3) as u32),
                schedule: schedule(dice),
                output_bytes_max: dice.between(4, 64),
            },
        }
    };
    (0..count).map(one).collect::<Vec<Spec>>()
}

pub(crate) fn schedule(dice: &mut Dice) -> Schedule {
    if dice.percent(40) {
        return Schedule::DEFAULT;
    }
    Schedule {
        attempts_max: dice.between(0, 12) as u32,
        backoff: dice.pick(&[Backoff::Exponential, Backoff::Linear, Backoff::Fixed]),
        first: Duration::from_millis(dice.pick(&[0, 1, 500, 3_000, 20_000])),
    }
}

impl World {
    pub(crate) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Check { agent } => {
                let sick = self.dice.percent(self.faults.bad_agent);
                let health = if sick { Health::Sick } else { Health::Well };
                let delay = self.dice.between(0, 10_000_000) as i64;
                let event = AgentCommand::Breaker(breaker::Event::Checked(health));
                self.post(delay, Command::Agent(agent, event));
            }
            Effect::Job { job, action } => match action {
                Action::Dispatch { attempt } => self.work(&job, attempt),
                Action::Resume { attempt } if self.never_came_back(&job) => {
                    // No worker claims the attempt before the lease is over.
                    let dead = Event::Finish { attempt, result: Err(Failed::dead("It died.")) };
                    self.speak(&job, LEASE_MICROS, Grip::Holds, dead);
                }
                Action::Resume { attempt } => {
                    let asked = job.running().map_or(0, |running| running.asked);
                    self.agents.asked.insert((job.seq(), attempt), asked);
                    if let State::Waiting { question, .. } = &job.state {
                        let question = question.clone();
                        self.report(&job, 1_000, Event::Ask { attempt, question, answered: Some(asked) });
                    } else {
                        self.work(&job, attempt);
                    }
                }
                Action::Stop { attempt } => self.stop(job.id(), attempt),
                Action::Deliver { attempt, .. } => {
                    *self.agents.asked.entry((job.seq(), attempt)).or_default() += 1;
                    self.work(&job, attempt);
                }
                Action::Mark { .. } => {}
            },
        }
    }

    /// An agent that was told to stop mostly reports nothing more.
    fn stop(&mut self, id: JobId, attempt: u32) {
        if self.dice.percent(70) {
            self.mail.retain(|_, letter| match letter {
                Command::Job(of, Event::Finish { attempt: by, .. } | Event::Heard { attempt: by })
                | Command::Report {
                    id: of,
                    event: Event::Finish { attempt: by, .. } | Event::Heard { attempt: by },
                    ..
                } => *of != id || *by != attempt,
                Command::Job(..)
                | Command::Report { .. }
                | Command::Submit(_)
                | Command::Find(..)
                | Command::TakeUp(_)
                | Command::Agent(..)
                | Command::Join(_)
                | Command::Told(_)
                | Command::Grant(_)
                | Command::Audit(_)
                | Command::Violation(..)
                | Command::ClockJumped { .. }
                | Command::Rest => true,
            });
        }
    }

    /// Does some work, and reports how it goes.
    fn work(&mut self, job: &Arc<Job>, attempt: u32) {
        let pace = self.dice.pick(&[50_000, 2_000_000, 40_000_000]);
        let mut at = 0;
        let mut offset = job.output_bytes;
        for _ in 0..self.dice.below(4) {
            at += self.dice.between(0, pace) as i64;
            let event = self.sign_of_life(attempt, &mut offset);
            self.report(job, at, event);
        }
        at += self.dice.between(0, pace) as i64;
        let bad = self.dice.percent(self.faults.bad_agent);
        let asked = self.agents.asked.get(&(job.seq(), attempt)).copied().unwrap_or(0);
        match self.dice.below(10) {
            0 | 1 if bad => {}
            2..=6 if bad => {
                let event = self.failure(attempt);
                self.report(job, at, event);
            }
            7 if bad => {
                // The agent contradicts itself.
                let (yes, no) = (self.success(attempt), self.failure(attempt));
                self.report(job, at, no);
                self.report(job, at + 1, yes);
            }
            _ if asked < 2 && self.dice.percent(25) => {
                let same = self.dice.percent(30);
                let question = Body::of(&if same { "again?".to_owned() } else { format!("{asked}?") });
                let question = Question::read(question);
                self.report(job, at, Event::Ask { attempt, question, answered: Some(asked) });
                if self.dice.percent(20) {
                    // The agent finds out by itself what it asked.
                    at += self.dice.between(0, pace) as i64;
                    self.report(job, at, Event::Unasked { attempt });
                    at += self.dice.between(0, pace) as i64;
                    let event = self.success(attempt);
                    self.report(job, at, event);
                }
            }
            _ => {
                let event = self.success(attempt);
                self.report(job, at, event);
            }
        }
    }

    fn sign_of_life(&mut self, attempt: u32, offset: &mut u64) -> Event {
        match self.dice.below(5) {
            0 => Event::Heard { attempt },
            4 => Event::Step { attempt, step: Body::of(&self.dice.next()) },
            3 => {
                // Now and then the agent remembers the same again.
                let memory = if self.dice.percent(30) { 0 } else { self.dice.next() };
                Event::Remember { attempt, memory: Block(memory.to_string().into()) }
            }
            1 => {
                let percent = self.dice.percent(80).then(|| self.dice.below(101) as f64);
                Event::Progress { attempt, progress: Progress { percent, step: None, document: None, began: None } }
            }
            _ => {
                let length = self.dice.between(1, 6);
                let gap = u64::from(self.dice.percent(self.faults.bad_agent / 10));
                let block = Block(Bytes::from_static(&b"output"[..length as usize]));
                let event = Event::Output { attempt, offset: *offset + gap, block };
                *offset += length;
                event
            }
        }
    }

    pub(crate) fn success(&mut self, attempt: u32) -> Event {
        let outputs = Body::of(&self.dice.next());
        Event::Finish { attempt, result: Ok(Success::of(outputs)) }
    }

    pub(crate) fn failure(&mut self, attempt: u32) -> Event {
        let often = [Failure::Timeout, Failure::Unavailable, Failure::ResourceLimit];
        let failure = if self.dice.percent(75) { self.dice.pick(&often) } else { self.dice.pick(&Failure::ALL) };
        let dispatched = self.dice.pick(&[Dispatched::No, Dispatched::Yes]);
        let dropped = dispatched == Dispatched::Yes && self.dice.percent(50);
        // From a moment, through what most jobs have no time for, to a mistake.
        let seconds = self.dice.pick(&[0, 1, 5, 60, 3_600, u64::MAX]);
        let retry_after = self.dice.percent(30).then(|| Duration::from_secs(seconds));
        let repeat = self.dice.percent(10).then_some(Repeat::Never);
        let failed = Failed { lost: dropped.then_some(Lost::Dropped), repeat, ..Failed::of(failure, dispatched) }
            .asking_for(retry_after);
        Event::Finish { attempt, result: Err(failed) }
    }

    /// Sends a report, unless it is lost on the way.
    fn report(&mut self, job: &Arc<Job>, at: i64, event: Event) {
        if self.dice.percent(self.faults.lose) {
            return;
        }
        let late = if self.dice.percent(self.faults.delay) { self.dice.between(0, 60_000_000) as i64 } else { 0 };
        if self.dice.percent(self.faults.repeat) {
            let again = self.dice.between(0, 10_000_000) as i64;
            self.speak(job, at + again, Grip::Holds, event.clone());
        }
        self.speak(job, at + late, Grip::Holds, event);
    }

    /// Has an agent report on a job that it has.
    fn speak(&mut self, job: &Arc<Job>, at: i64, grip: Grip, event: Event) {
        let index = job.agent.as_ref().and_then(|name| self.model.agent_index(name)).unwrap_or(0);
        let command = self.spoken(index, grip, job.id(), event);
        self.post(at, command);
    }

    /// A report of this agent. An agent that joined reports under its own name, unless a link does so for it.
    pub(crate) fn spoken(&self, index: usize, grip: Grip, id: JobId, event: Event) -> Command {
        let spec = &self.model.specs[index];
        if self.model.joins[index] && *spec.contract != *super::typed::LINKED {
            return Command::Report { agent: spec.name.clone(), grip, id, event };
        }
        Command::Job(id, event)
    }

    /// Whether the worker that had this job, under the name of an agent that joined, was gone before the engine was
    /// back.
    fn never_came_back(&mut self, job: &Job) -> bool {
        let agent = job.agent.as_ref().and_then(|name| self.model.agent_index(name));
        agent.is_some_and(|agent| self.model.joins[agent]) && self.dice.percent(30)
    }
}
