//! Callers and operators: they submit, repeat themselves, change their minds, answer, and drain agents.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::request::{Limits, Priority};
use crosspoint_engine::breaker;
use crosspoint_engine::core::{AgentCommand, Command, Grip, Submission};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Request;
use crosspoint_engine::keys::{Hash, Hashes};
use crosspoint_engine::machine::Event;

use super::agents::schedule;
use super::dice::Dice;
use super::known::Life;
use super::members::Cast;
use super::names;
use super::world::World;
use crate::made::request;

pub(crate) struct Callers {
    keys: u64,
    /// How many requests there were.
    count: u64,
    submit: u64,
    cancel: u64,
    answer: u64,
}

impl Callers {
    pub(crate) fn new(dice: &mut Dice) -> Callers {
        Callers { keys: 0, count: 0, submit: dice.between(5, 40), cancel: dice.below(6), answer: dice.between(5, 60) }
    }

    /// No caller submits anything more.
    pub(crate) fn calm(&mut self) {
        self.submit = 0;
    }
}

impl World {
    pub(crate) fn callers_act(&mut self) {
        if self.cast == Cast::Typed {
            self.tell_some();
        }
        if self.dice.percent(self.callers.submit) {
            let command = self.submission();
            self.post(0, command);
        }
        if self.dice.percent(self.callers.cancel) {
            self.about_some_job(|_, _| Event::Cancel);
        }
        if self.dice.percent(self.callers.answer) {
            self.answer_some();
        }
        if self.dice.percent(self.faults.stray) {
            self.about_some_job(|world, attempts| {
                let attempt = world.dice.below(u64::from(attempts) + 2) as u32;
                match world.dice.below(3) {
                    0 => world.success(attempt),
                    1 => world.failure(attempt),
                    _ => Event::Heard { attempt },
                }
            });
        }
        if self.dice.percent(self.faults.forge) {
            self.forge();
        }
        if self.dice.percent(self.faults.operator) {
            self.release_some();
            let agent = self.dice.below(self.specs.len() as u64) as usize;
            let command = match self.dice.below(5) {
                0 => AgentCommand::Drain(true),
                1 | 2 => AgentCommand::Drain(false),
                3 => AgentCommand::Breaker(breaker::Event::Open),
                _ => AgentCommand::Breaker(breaker::Event::Close),
            };
            let name = self.specs[agent].name.clone();
            self.post(0, Command::Agent(name, command));
        }
    }

    /// An agent that joined reports on a job, mostly on a job of another agent.
    fn forge(&mut self) {
        let joined: Vec<usize> = (0..self.specs.len()).filter(|index| self.model.joins[*index]).collect();
        let count = self.model.jobs.len() as u64;
        let lately = self.dice.below(count.min(12));
        let Some((_, known)) = self.model.jobs.iter().rev().nth(lately as usize) else { return };
        let (id, attempts) = (known.request.id, known.attempts);
        if joined.is_empty() {
            return;
        }
        let agent = self.specs[self.dice.pick(&joined)].name.clone();
        let attempt = self.dice.below(u64::from(attempts) + 2) as u32;
        let event = match self.dice.below(4) {
            0 | 1 => self.success(attempt),
            2 => self.failure(attempt),
            _ => Event::Heard { attempt },
        };
        let grip = self.dice.pick(&[Grip::Holds, Grip::Lost]);
        self.count("forged");
        self.post(0, Command::Report { agent, grip, id, event });
    }

    /// An operator releases a job that waits for that.
    fn release_some(&mut self) {
        let stands = |seq: &&Seq| self.model.jobs[*seq].life == Life::Poisoned || self.model.jobs[*seq].aside;
        let Some(seq) = self.model.live.iter().find(stands).copied() else { return };
        let id = self.model.jobs[&seq].request.id;
        self.post(0, Command::Job(id, Event::Release));
    }

    pub(crate) fn release_all(&mut self) {
        let stands = |seq: &&Seq| self.model.jobs[*seq].life == Life::Poisoned || self.model.jobs[*seq].aside;
        for seq in self.model.live.iter().filter(stands).copied().collect::<Vec<_>>() {
            let id = self.model.jobs[&seq].request.id;
            self.post(0, Command::Job(id, Event::Release));
        }
    }

    /// An event about a job, ended or not.
    fn about_some_job(&mut self, event: impl FnOnce(&mut World, u32) -> Event) {
        let count = self.model.jobs.len() as u64;
        let lately = self.dice.below(count.min(12));
        let Some((_, known)) = self.model.jobs.iter().rev().nth(lately as usize) else { return };
        let (id, attempts) = (known.request.id, known.attempts);
        let event = event(self, attempts);
        self.post(0, Command::Job(id, event));
    }

    fn answer_some(&mut self) {
        let asking = |seq: &&Seq| matches!(self.model.jobs[*seq].life, Life::Asking { .. });
        let Some(seq) = self.model.live.iter().find(asking).copied() else { return };
        self.answer_one(seq);
    }

    fn answer_one(&mut self, seq: Seq) {
        let id = self.model.jobs[&seq].request.id;
        let answer = Body::of(&self.dice.below(1_000));
        self.post(0, Command::Job(id, Event::Answer { answer, to: None }));
    }

    pub(crate) fn answer_all(&mut self) {
        let asking = |seq: &&Seq| matches!(self.model.jobs[*seq].life, Life::Asking { .. });
        for seq in self.model.live.iter().filter(asking).copied().collect::<Vec<_>>() {
            self.answer_one(seq);
        }
    }

    fn submission(&mut self) -> Command {
        let repeats = self.callers.keys > 0 && self.dice.percent(20);
        if !repeats {
            self.callers.keys += 1;
        }
        let key = if repeats { self.dice.between(1, self.callers.keys) } else { self.callers.keys };
        // The key decides what is asked for, except for a caller that makes a mistake.
        let errs = self.dice.percent(5);
        let work = if (key % 2 == 0) == errs { "a" } else { "b" };
        // This agent may have joined, or not.
        let pinned =
            (key % 7 == 0).then(|| if key % 3 == 0 && self.model.joins.contains(&true) { "agent1" } else { "agent0" });
        let pinned = pinned.map(Into::into);
        let request = Request {
            request_id: key.to_string().into(),
            pinned,
            priority: self.dice.pick(&Priority::ALL),
            limits: self.limits(),
            ..request(0, work)
        };
        let request = if self.cast == Cast::Typed { self.addressed(request) } else { request };
        // There are few hashes, so that keys collide.
        let hash = (key % 5 != 0).then_some(Hash(key % 13));
        self.callers.count += 1;
        let (request, alias) = names::second(request, key, self.callers.count);
        let submission = Submission {
            request,
            nameless: false,
            hashes: Hashes { key: hash, alias },
            others: Vec::new(),
            repeats: None,
            document: Block::default(),
            step: None,
        };
        Command::Submit(Arc::new(submission))
    }

    fn limits(&mut self) -> Limits {
        let dice = &mut self.dice;
        let mut millis =
            |chance, least, most| dice.percent(chance).then(|| Duration::from_millis(dice.between(least, most)));
        let total = millis(20, 1, 200_000);
        let silence = millis(15, 100, 90_000);
        let output_bytes = dice.percent(10).then(|| dice.below(20));
        let retry = dice.percent(20).then(|| schedule(dice));
        Limits { total, attempt: None, silence, output_bytes, memory_bytes: None, retry }
    }
}
