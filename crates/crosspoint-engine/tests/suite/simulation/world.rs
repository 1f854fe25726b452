//! One run: the real core, a disk, agents, callers and a clock, all driven by dice.
//!
//! A round is what the committing thread does: take the commands that came in, decide, commit, carry out. Dice decide
//! beforehand whether the round gets through. If it does not, the core is made anew from the disk, as after a crash or
//! a failed commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_engine::claim::Claim;
use crosspoint_engine::core::{Command, Core, Mode, Room, Spec};
use crosspoint_engine::event::What;
use crosspoint_engine::retention::{Ended, Jumps, Rule};

use super::agents::{Agents, specs};
use super::callers::Callers;
use super::dice::Dice;
use super::disk::Disk;
use super::grants::Tokens;
use super::members::{self, Cast};
use super::model::Model;
use super::rule::{Verdict, ensure};
use super::typed;

pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) cast: Cast,
    pub(crate) faults: Faults,
    pub(crate) core: Core,
    pub(crate) disk: Disk,
    pub(crate) model: Model,
    pub(crate) agents: Agents,
    pub(crate) callers: Callers,
    pub(crate) tokens: Tokens,
    /// All agents there may be, by their names and in the order of the model.
    pub(crate) specs: Arc<Vec<Spec>>,
    /// The agents that are configured.
    pub(crate) settled: Vec<Spec>,
    /// Commands on their way to the engine, by the time at which they arrive.
    pub(crate) mail: BTreeMap<(i64, u64), Command>,
    pub(crate) posted: u64,
    /// What agents reported in rounds that could not be committed.
    pub(crate) kept: Vec<Command>,
    pub(crate) lost: Lost,
    /// What the present life knows of which opening may write.
    pub(crate) claim: Claim,
    /// The claim of the life before, which may believe that it is still alive.
    pub(crate) rival: Option<Claim>,
    /// By how much the clock was seen to jump, and how much of that is not on disk.
    pub(crate) jumped: i64,
    pub(crate) unwritten: i64,
    /// Whether the clock was ever seen to jump. Then a job may seem younger than it is.
    pub(crate) has_jumped: bool,
    /// What a failed commit may have left on disk, to be found after a crash.
    pub(crate) ghost: Option<(Disk, Model)>,
    /// What was known before a life that has not committed anything, and by how much the clock had jumped unseen.
    pub(crate) unborn: Option<(Model, i64)>,
    /// Number of rounds that remain between an operator's stop and the end of the life.
    pub(crate) resting_for: Option<u64>,
    /// How long jobs are kept.
    pub(crate) rule: Rule,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) rounds: u64,
    /// How often each thing happened, so that dice which never reach something are found out.
    pub(crate) tally: BTreeMap<&'static str, u64>,
}

/// How likely things go wrong in this run, in percent. Each fault is absent from some runs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) lose: u64,
    pub(crate) repeat: u64,
    pub(crate) delay: u64,
    pub(crate) crash: u64,
    pub(crate) fail_commit: u64,
    pub(crate) jump: u64,
    pub(crate) bad_agent: u64,
    pub(crate) stray: u64,
    pub(crate) operator: u64,
    pub(crate) forge: u64,
    pub(crate) curse: u64,
    pub(crate) visit: u64,
    pub(crate) stop: u64,
}

/// What has become of the core.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Nothing,
    /// The last round was not committed.
    Commit,
    Life,
}

impl World {
    pub(crate) fn new(seed: u64, cast: Cast, traced: bool) -> World {
        let mut dice = Dice::new(seed);
        let mut chance = |most: u64| if dice.percent(40) { 0 } else { dice.below(most + 1) };
        let faults = Faults {
            lose: chance(30),
            repeat: chance(30),
            delay: chance(30),
            crash: chance(12),
            fail_commit: chance(12),
            jump: chance(6),
            bad_agent: chance(80),
            stray: chance(20),
            operator: chance(10),
            forge: chance(25),
            curse: chance(3),
            visit: chance(40),
            stop: chance(5),
        };
        let rule = rule(&mut dice);
        let mut specs = specs(&mut dice);
        let room = room(&mut dice);
        let joins = members::cast(cast, &mut dice, &mut specs);
        if cast == Cast::Typed {
            typed::cast(&mut dice, &joins, &mut specs);
        }
        let settled: Vec<Spec> =
            specs.iter().zip(&joins).filter(|(_, joins)| !**joins).map(|(s, _)| s.clone()).collect();
        let specs = Arc::new(specs);
        let (disk, model) = (Disk::default(), Model::new(specs.clone(), joins, room));
        World {
            core: Core::new(disk.origin(
                &settled,
                room,
                Mode::Serve,
                (model.wall(), model.wall()),
                Ended::new(rule, Jumps::default()),
            )),
            agents: Agents::default(),
            callers: Callers::new(&mut dice),
            tokens: Tokens::new(seed),
            mail: BTreeMap::new(),
            posted: 0,
            kept: Vec::new(),
            // The first life begins like any other.
            lost: Lost::Life,
            claim: Claim::Seen(0),
            rival: None,
            jumped: 0,
            unwritten: 0,
            has_jumped: false,
            ghost: None,
            unborn: None,
            resting_for: None,
            rule,
            trace: traced.then(Vec::new),
            rounds: 0,
            tally: BTreeMap::new(),
            dice,
            cast,
            faults,
            disk,
            model,
            specs,
            settled,
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(crate) fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12} {}", self.model.now, what()));
        }
    }

    /// Sends a command, which arrives after `delay`.
    pub(crate) fn post(&mut self, delay: i64, command: Command) {
        self.posted += 1;
        self.mail.insert((self.model.now + delay, self.posted), command);
    }

    /// Runs some rounds with faults, then rounds without until every job has ended.
    pub(crate) fn run(&mut self, steps: u64) -> Verdict {
        for _ in 0..steps {
            self.pass_time();
            self.callers_act();
            self.members_act();
            self.curse();
            self.round()?;
        }
        self.calm()?;
        for _ in 0..20_000 {
            if self.model.live.is_empty() && self.lost == Lost::Nothing {
                return self.final_check();
            }
            self.pass_time_calmly();
            self.answer_all();
            self.release_all();
            self.round()?;
        }
        let seq = self.model.live.first().map_or(0, |seq| seq.0);
        Err(format!("job {seq} does not end: {:?}", self.model.live.first().map(|seq| &self.model.jobs[seq].life)))
    }

    fn pass_time(&mut self) {
        let next = self.next_time();
        let ahead = match self.dice.below(10) {
            0 | 1 => 0,
            2 => self.dice.between(1, 50_000) as i64,
            3 => self.dice.between(1, 5_000_000) as i64,
            4 if self.dice.percent(20) => self.dice.between(1, 90_000_000) as i64,
            _ => next.map_or(1_000_000, |next| next - self.model.now),
        };
        self.model.now += ahead.max(0);
    }

    fn pass_time_calmly(&mut self) {
        let next = self.next_time().unwrap_or(self.model.now);
        self.model.now = self.model.now.max(next);
    }

    fn next_time(&self) -> Option<i64> {
        let now = self.model.wall();
        let alarm = self.core.alarm(now).filter(|_| self.lost == Lost::Nothing).map(|at| self.model.steady(at));
        let mail = self.mail.keys().next().map(|(at, _)| *at);
        alarm.into_iter().chain(mail).min()
    }

    /// From now on nothing goes wrong, and operators let every agent work.
    fn calm(&mut self) -> Verdict {
        self.say(|| "calm".to_owned());
        self.faults = Faults::default();
        self.disk.cursed.clear();
        self.ghost = None;
        let leaves = self.model.held.is_some() || self.model.resting || self.resting_for.is_some();
        if leaves && self.lost != Lost::Life {
            // Held jobs go on in a life that drives everything.
            self.die(&[]);
        }
        while self.lost != Lost::Nothing {
            self.round()?;
        }
        self.callers.calm();
        self.tokens.calm();
        self.members_calm();
        for index in 0..self.specs.len() {
            let name = self.specs[index].name.clone();
            let drain = crosspoint_engine::core::AgentCommand::Drain(false);
            let close = crosspoint_engine::core::AgentCommand::Breaker(crosspoint_engine::breaker::Event::Close);
            self.post(0, Command::Agent(name.clone(), drain));
            self.post(0, Command::Agent(name, close));
        }
        Ok(())
    }

    /// Now and then what happens to a job cannot be written any more.
    fn curse(&mut self) {
        let here = self.lost == Lost::Nothing;
        if here && self.dice.percent(self.faults.curse) && !self.model.live.is_empty() {
            let seq = self.dice.pick(&self.model.live.clone());
            self.disk.cursed.insert(seq);
        }
    }

    fn final_check(&self) -> Verdict {
        for (seq, known) in self.model.jobs.iter().filter(|(_, known)| !known.purged) {
            let events = self.disk.events.get(seq).ok_or("a job without events")?;
            let numbers: Vec<u32> = events.iter().map(|entry| entry.n).collect();
            ensure!(numbers == (2..=known.events).collect::<Vec<u32>>(), "job {}: events {numbers:?}", seq.0);
            let outcomes = events.iter().filter(|entry| matches!(entry.what, What::Ended(_))).count();
            let last = events.last().is_some_and(|entry| matches!(entry.what, What::Ended(_)));
            ensure!(outcomes == 1 && last, "job {} has {outcomes} outcomes", seq.0);
            ensure!(self.disk.outcomes.get(seq) == known.outcome.as_ref(), "the outcome of job {} changed", seq.0);
        }
        Ok(())
    }
}

fn room(dice: &mut Dice) -> Room {
    let jobs = usize::try_from(dice.between(3, 30)).unwrap_or(3);
    let mut share = || usize::try_from(dice.between(2, 30)).unwrap_or(2);
    Room { jobs, of_work: share(), of_agent: share(), of_caller: 1 }
}

fn rule(dice: &mut Dice) -> Rule {
    let age = dice.percent(60).then(|| Duration::from_secs(dice.between(1, 1_800)));
    let jobs = dice.percent(60).then(|| dice.between(1, 20));
    let age_min = Duration::from_secs(if dice.percent(50) { dice.between(1, 300) } else { 0 });
    Rule { age, jobs, age_min }
}
