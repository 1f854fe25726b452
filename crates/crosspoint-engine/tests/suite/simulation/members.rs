//! Agents that join, join again with other settings, take more or fewer jobs, die with what they have, and are
//! forgotten.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::request::Schedule;
use crosspoint_engine::core::{AgentCommand, Command, Grip, Member, Reply, Spec};
use crosspoint_engine::machine::Event;
use crosspoint_engine::policy::{Policy, Recovery};

use super::dice::Dice;
use super::known::Life;
use super::model::Model;
use super::rule::{Verdict, attempts_micros, ensure};
use super::typed;
use super::world::World;

/// Which agents are in a story. A seed with settled agents gives the same story as before joining agents were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// Agents that are present from the beginning.
    Settled,
    /// Besides those, agents that come and go.
    Joining,
    /// The same with agents that have types and may be away, agents that are reached by links although they joined, and
    /// callers that are told of outcomes.
    Typed,
}

/// The reply that a command about an agent must get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Done,
    NoSuchAgent,
    Configured,
    Present,
    OtherContract,
}

impl Cast {
    pub(crate) const ALL: [Cast; 3] = [Cast::Settled, Cast::Joining, Cast::Typed];

    /// Each cast in its turn.
    pub(crate) fn of(number: u64) -> Cast {
        Cast::ALL[(number % 3) as usize]
    }
}

/// The first agent is always present; each of the others may be one that joins. What such an agent cannot settle has
/// its default.
pub(crate) fn cast(cast: Cast, dice: &mut Dice, specs: &mut [Spec]) -> Vec<bool> {
    let mut joins = vec![false; specs.len()];
    for (index, spec) in specs.iter_mut().enumerate().skip(1) {
        joins[index] = cast != Cast::Settled && dice.percent(70);
        if joins[index] {
            spec.policy = joining(dice, &spec.policy);
        }
    }
    joins
}

fn joining(dice: &mut Dice, policy: &Policy) -> Policy {
    let recovery = dice.pick(&[Recovery::Resume, Recovery::Resume, Recovery::ResumeOnce, Recovery::Fail]);
    let total = Duration::from_millis(dice.between(3_000, 600_000));
    Policy { recovery, total, schedule: Schedule::DEFAULT, ..policy.clone() }
}

impl World {
    /// An action of an agent that joins, if there is one.
    pub(crate) fn members_act(&mut self) {
        if self.cast == Cast::Typed {
            self.settled_act();
        }
        let members: Vec<usize> = (0..self.specs.len()).filter(|index| self.model.joins[*index]).collect();
        if members.is_empty() || !self.dice.percent(25) {
            return;
        }
        let index = self.dice.pick(&members);
        let name = self.specs[index].name.clone();
        match self.dice.below(10) {
            0..=2 => self.join(index, false),
            3 => self.join(index, true),
            4..=6 => {
                let capacity = self.dice.between(1, 4) as u32;
                self.post(0, Command::Agent(name, AgentCommand::Capacity(capacity)));
            }
            7 => self.lose_workers(index),
            8 => self.withdraw_some(index),
            _ => self.post(0, Command::Agent(name, AgentCommand::Forget)),
        }
    }

    fn join(&mut self, index: usize, otherwise: bool) {
        let mut spec = self.model.specs[index].clone();
        if otherwise {
            let works: &[&str] = self.dice.pick(&[&["a"], &["b"], &["a", "b"]]);
            spec.works = works.iter().map(|work| Arc::from(*work)).collect();
            spec.policy = joining(&mut self.dice, &spec.policy);
            if self.cast == Cast::Typed {
                typed::change(&mut self.dice, &mut spec);
            }
        }
        let registration = self.registration(index, otherwise);
        let lease = Duration::from_secs(15);
        self.post(0, Command::Join(Arc::new(Member { spec, lease, left_at: None, registration })));
    }

    /// All workers under this name die, with everything they had.
    fn lose_workers(&mut self, index: usize) {
        let name = self.specs[index].name.clone();
        self.post(0, Command::Agent(name, AgentCommand::Capacity(0)));
        for (id, attempt) in self.model.had_by(index) {
            let delay = self.dice.below(2_000_000) as i64;
            let event = Event::Finish { attempt, result: Err(Failed::dead("It died.")) };
            let command = self.spoken(index, Grip::Holds, id, event);
            self.post(delay, command);
        }
    }

    pub(crate) fn withdraw_some(&mut self, index: usize) {
        if let Some((id, attempt)) = self.model.had_by(index).pop() {
            let command = self.spoken(index, Grip::Holds, id, Event::Withdrawn { attempt });
            self.post(0, command);
        }
    }

    /// Every agent is present again, and takes everything.
    pub(crate) fn members_calm(&mut self) {
        for index in 0..self.specs.len() {
            if self.model.joins[index] {
                let works = vec!["a".into(), "b".into()];
                let spec = Spec { works, agent_type: None, ..self.model.specs[index].clone() };
                let (name, lease) = (spec.name.clone(), Duration::from_secs(15));
                let registration = self.registration(index, false);
                self.post(0, Command::Join(Arc::new(Member { spec, lease, left_at: None, registration })));
                self.post(0, Command::Agent(name, AgentCommand::Capacity(2)));
            } else if self.cast == Cast::Typed {
                let name = self.specs[index].name.clone();
                self.post(0, Command::Agent(name, AgentCommand::Capacity(4)));
            }
        }
    }

    /// Checks that the reply to a command about an agent is the one it must be.
    pub(crate) fn is_due(&mut self, due: Due, reply: &Reply) -> Verdict {
        let found = match reply {
            Reply::Done => Due::Done,
            Reply::NoSuchAgent => Due::NoSuchAgent,
            Reply::Configured => Due::Configured,
            Reply::Present => Due::Present,
            Reply::OtherContract => Due::OtherContract,
            Reply::Crowded
            | Reply::Accepted(_)
            | Reply::Known(_)
            | Reply::MayBeOf(_)
            | Reply::Claimed
            | Reply::Rejected(_)
            | Reply::Job(_)
            | Reply::Refused(_)
            | Reply::NotTheirs
            | Reply::NotLive
            | Reply::Grant(_)
            | Reply::NameTaken
            | Reply::NoSuchGrant
            | Reply::Unusable(_) => return Err(format!("an agent was answered with {reply:?}")),
        };
        ensure!(found == due, "an agent was answered with {found:?}, not {due:?}");
        Ok(())
    }
}

impl Model {
    /// The attempts that this agent has.
    pub(crate) fn had_by(&self, agent: usize) -> Vec<(crosspoint_engine::id::JobId, u32)> {
        let jobs = self.live.iter().map(|seq| &self.jobs[seq]);
        let had = jobs.filter(|job| job.agent == agent && job.has_agent());
        had.map(|job| (job.request.id, job.attempts)).collect()
    }

    pub(crate) fn hears_of_join(&mut self, index: usize, member: &Member) -> (Due, &'static str) {
        if !self.joins[index] {
            return (Due::Configured, "refused to join");
        }
        let is_in_use = self.capacity[index] > 0 || !self.had_by(index).is_empty();
        if self.known[index] && is_in_use && self.specs[index].contract != member.spec.contract {
            return (Due::OtherContract, "another contract");
        }
        self.registrations[index].clone_from(&member.registration);
        let spec = &mut Arc::make_mut(&mut self.specs)[index];
        let otherwise = spec.works != member.spec.works || spec.policy != member.spec.policy;
        *spec = member.spec.clone();
        if !self.known[index] {
            // The breaker and drain of an earlier agent of this name do not apply any more.
            self.fuses[index] = super::rule::Fuse::Closed(0);
            self.dropped[index] = super::doubt::Dropped::default();
            self.drained[index] = false;
            self.capacity[index] = 0;
        }
        let otherwise = otherwise && std::mem::replace(&mut self.known[index], true);
        self.known[index] = true;
        (Due::Done, if otherwise { "joined otherwise" } else { "joined" })
    }

    pub(crate) fn hears_of_capacity(&mut self, index: usize, capacity: u32) -> Due {
        if !self.known[index] {
            return Due::NoSuchAgent;
        }
        self.capacity[index] = if self.joins[index] { capacity } else { capacity.min(self.specs[index].concurrency) };
        Due::Done
    }

    pub(crate) fn hears_of_forgetting(&mut self, index: usize) -> Due {
        if !self.known[index] {
            return Due::NoSuchAgent;
        }
        if !self.joins[index] {
            return Due::Configured;
        }
        if self.capacity[index] > 0 || !self.had_by(index).is_empty() {
            return Due::Present;
        }
        self.known[index] = false;
        self.fuses[index] = super::rule::Fuse::Closed(0);
        self.dropped[index] = super::doubt::Dropped::default();
        self.drained[index] = false;
        Due::Done
    }

    /// Presence of agents is not on disk. After a start all are away that joined or are awaited.
    pub(crate) fn all_agents_are_away(&mut self) {
        for (index, spec) in self.specs.iter().enumerate() {
            self.capacity[index] = if self.joins[index] || spec.awaited { 0 } else { spec.concurrency };
        }
    }

    /// Longest time in all for a job that is or was with its agent: an hour if the agent is no longer known, and never
    /// less than what the request allows for its attempts.
    pub(crate) fn total_micros(&self, job: &super::known::Known) -> i64 {
        let (agent, limits) = (job.agent, &job.request.limits);
        let policy = &self.specs[agent].policy;
        let own = if self.known[agent] { super::rule::micros(policy.total) } else { 3_600_000_000 };
        let schedule = if self.known[agent] { policy.schedule } else { Schedule::DEFAULT };
        let attempts = limits.attempt.map(|limit| attempts_micros(limit, &limits.retry.unwrap_or(schedule)));
        own.max(attempts.unwrap_or(0))
    }

    pub(crate) fn is_queued(&self, seq: crosspoint_engine::id::Seq) -> bool {
        self.jobs[&seq].life == Life::Queued
    }
}
