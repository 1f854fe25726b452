//! The agents: who takes which work, who has room, and who gets the next job.

use std::sync::Arc;

use super::{Batch, Core, Effect, Membership, Presence, Rejected, Reply};
use crate::breaker::{self, Breaker};
use crate::id::Seq;
use crate::job::State;
use crate::machine::Event;
use crate::policy::Policy;
use crate::queue::Target;
use crate::time::Time;

/// An agent, as the operator configured it, or as it joined.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name.
    pub name: Arc<str>,
    /// The contract it speaks, for people.
    pub contract: Arc<str>,
    /// The works it takes.
    pub works: Vec<Arc<str>>,
    /// How many jobs it may have at a time; what waits for a person does not count. Of an agent that joined it means nothing: its
    /// capacity does.
    pub concurrency: u32,
    /// How many jobs it may have beside these that wait for a person: each may be a process.
    pub waiting_max: u32,
    /// Its clocks and limits.
    pub policy: Policy,
}

/// What is known of an agent, and survives us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its breaker.
    pub breaker: Breaker,
    /// Whether an operator wants it to get no new work.
    pub drained: bool,
}

/// An agent at work.
#[derive(Clone, Debug)]
pub struct Agent {
    /// As configured.
    pub spec: Spec,
    /// As known.
    pub standing: Standing,
    /// Of an agent that joined: whether it is there.
    pub joined: Option<Membership>,
    /// How many jobs it has, those apart that wait for a person.
    pub running: u32,
    /// How many jobs it has that wait for a person.
    pub waiting: u32,
    /// How often it was given a job since we started.
    pub turns: u64,
    pub(super) targets: Vec<Target>,
}

/// What can happen to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// An operator wants it to get no new work, or to get work again.
    Drain(bool),
    /// Something for its breaker.
    Breaker(breaker::Event),
    /// An agent that joined takes so many jobs at a time; none says that it is away.
    Capacity(u32),
    /// An agent that joined will not come back.
    Forget,
}

impl Agent {
    fn has_room(&self) -> bool {
        let has_place = self.running < self.capacity() && self.waiting < self.spec.waiting_max;
        has_place && self.standing.breaker.is_closed() && !self.standing.drained
    }

    /// How many jobs it may have at a time, as things are.
    pub fn capacity(&self) -> u32 {
        match &self.joined {
            None => self.spec.concurrency,
            Some(Membership { presence: Presence::Here { capacity }, .. }) => *capacity,
            Some(Membership { presence: Presence::Away { .. }, .. }) => 0,
        }
    }

    /// The least loaded goes first; among equals, whoever has had the fewest turns.
    fn order(&self) -> (u64, u64) {
        (u64::from(self.running) * 1_000_000 / u64::from(self.capacity().max(1)), self.turns)
    }
}

impl Core {
    pub(super) fn add_agent(&mut self, spec: Spec) {
        self.add_works(&spec);
        let targets = Core::targets_of(&spec);
        let agent =
            Agent { spec, standing: Standing::default(), joined: None, running: 0, waiting: 0, turns: 0, targets };
        self.agents.insert(agent.spec.name.clone(), agent);
    }

    pub(super) fn add_works(&mut self, spec: &Spec) {
        for work in &spec.works {
            self.works.entry(work.clone()).or_default().push(spec.name.clone());
        }
    }

    /// Whether anybody could ever take this (ALL-6).
    pub(super) fn check_route(&self, work: &str, pinned: Option<&Arc<str>>) -> Result<(), Rejected> {
        let Some(takers) = self.works.get(work) else { return Err(Rejected::UnknownWork) };
        match pinned {
            None => Ok(()),
            Some(name) if takers.contains(name) => Ok(()),
            Some(name) if self.agents.contains_key(name) => Err(Rejected::NotItsWork),
            Some(_) => Err(Rejected::UnknownAgent),
        }
    }

    pub(super) fn command_agent(&mut self, name: &str, command: AgentCommand, now: Time, batch: &mut Batch) -> Reply {
        let Some(agent) = self.agents.get_mut(name) else { return Reply::NoSuchAgent };
        match command {
            AgentCommand::Drain(drained) => {
                agent.standing.drained = drained;
                batch.agents.insert(agent.spec.name.clone(), agent.standing);
            }
            AgentCommand::Breaker(event) => self.tell_breaker(name, event, now, batch),
            AgentCommand::Capacity(capacity) => return self.set_capacity(name, capacity, now, batch),
            AgentCommand::Forget => return self.forget(name, batch),
        }
        Reply::Done
    }

    pub(super) fn tell_breaker(&mut self, name: &str, event: breaker::Event, now: Time, batch: &mut Batch) {
        let Some(agent) = self.agents.get_mut(name) else { return };
        let (breaker, action) = agent.standing.breaker.step(event, now);
        if action == breaker::Action::Check {
            batch.effects.push(Effect::Check { agent: agent.spec.name.clone() });
        }
        if breaker != agent.standing.breaker {
            agent.standing.breaker = breaker;
            batch.agents.insert(agent.spec.name.clone(), agent.standing);
        }
    }

    /// Counts a job to its agent, or no longer.
    pub(super) fn count(&mut self, seq: Seq, by: i32) {
        if !self.is_driven(seq) {
            return;
        }
        let Some(live) = self.jobs.get(&seq) else { return };
        let job = live.job.clone();
        let agent = job.agent.as_ref().and_then(|name| self.agents.get_mut(name));
        match job.state {
            State::Running(_) => {
                match (job.is_suspect(), by > 0) {
                    (true, true) => drop(self.suspects_running.insert(seq)),
                    (true, false) => drop(self.suspects_running.remove(&seq)),
                    (false, _) => {}
                }
                if let Some(agent) = agent {
                    agent.running = agent.running.saturating_add_signed(by);
                }
            }
            State::Waiting { .. } => {
                if let Some(agent) = agent {
                    agent.waiting = agent.waiting.saturating_add_signed(by);
                }
            }
            State::Queued | State::Retrying { .. } | State::Poisoned | State::Ended(_) => {}
        }
    }

    /// Gives out jobs as long as an agent has room for one.
    pub(super) fn hand_out(&mut self, now: Time, batch: &mut Batch) {
        while !self.resting
            && let Some((name, seq)) = self.next_match(now)
        {
            if let Some(agent) = self.agents.get_mut(&name) {
                agent.turns += 1;
            }
            // What stands in a queue can be started: anything else would come round again here for ever.
            if self.apply_event(seq, Event::Start { agent: name }, now, batch).is_err() {
                break;
            }
        }
    }

    fn next_match(&self, now: Time) -> Option<(Arc<str>, Seq)> {
        let mut free: Vec<&Agent> = self.agents.values().filter(|agent| agent.has_room()).collect();
        free.sort_by_key(|agent| agent.order());
        if let Some(suspect) = self.next_suspect(&free, now) {
            return Some(suspect);
        }
        let next =
            |agent: &Agent| Some((agent.spec.name.clone(), self.queues.next(agent.targets.iter(), agent.turns)?));
        free.into_iter().find_map(next)
    }
}
