//! The agents: which work they take, whether they have room, and which agent gets the next job.

use std::sync::Arc;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::time::Time;

use super::fairness::Fairness;
use super::{Batch, Core, Effect, Membership, Presence, Rejected, Reply};
use crate::breaker::{self, Breaker, Doubt};
use crate::id::Seq;
use crate::job::{Request, State};
use crate::machine::Event;
use crate::policy::Policy;
use crate::queue::{Takes, Turn, is_of_type};

/// The contract of agents that are a part of the orchestrator. They are not shown among the agents.
pub const INTERNAL: &str = "internal";

/// An agent, as the operator configured it, or as it joined.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The agent's name.
    pub name: Arc<str>,
    /// The contract that the agent speaks, for people to read.
    pub contract: Arc<str>,
    /// The agent's type. Of work that is addressed to a type, an agent with a type takes only what is addressed to its
    /// own.
    pub agent_type: Option<Arc<str>>,
    /// The works that the agent takes.
    pub works: Vec<Arc<str>>,
    /// Whether the agent gets no work until it was heard of: it is away at the start. For configured agents only; an
    /// agent that joined is always away at the start.
    pub awaited: bool,
    /// Most jobs that the agent may have at a time, without those that wait for a person. It is not used for an agent
    /// that joined, which has a capacity instead.
    pub concurrency: u32,
    /// Most jobs that the agent may have that wait for a person, besides the others: each may be a process.
    pub waiting_max: u32,
    /// The agent's clocks and limits.
    pub policy: Policy,
}

/// The state of an agent that is stored and survives a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The agent's breaker.
    pub breaker: Breaker,
    /// Whether an operator wants the agent to get no new work.
    pub drained: bool,
}

/// An agent with its present state.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The agent as it was configured or joined.
    pub spec: Spec,
    /// The stored part of the agent's state.
    pub standing: Standing,
    /// The connections that the agent dropped, until a health check says whether they count.
    pub doubt: Doubt,
    /// Whether the agent is present; `None` if it was configured instead of having joined.
    pub joined: Option<Membership>,
    /// Whether a configured agent is present; `None` if that is not known, so that it always gets work.
    pub seen: Option<Presence>,
    /// What the agent said when it joined, for the link that reaches it.
    pub registration: Option<Block>,
    /// How many jobs the agent has, without those that wait for a person.
    pub running: u32,
    /// How many jobs the agent has that wait for a person.
    pub waiting: u32,
    /// How often the agent was given a job since the orchestrator was started.
    pub turns: u64,
    fairness: Fairness,
    pub(super) takes: Vec<Takes>,
}

/// A command about one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// An operator wants the agent to get no new work, or to get work again.
    Drain(bool),
    /// An event for the agent's breaker.
    Breaker(breaker::Event),
    /// The agent takes this many jobs at a time, a configured one at most as many as configured; 0 says that it is
    /// away.
    Capacity(u32),
    /// An agent that joined will not come back.
    Forget,
}

impl Agent {
    fn has_room(&self) -> bool {
        let has_place = self.running < self.capacity() && self.waiting < self.spec.waiting_max;
        has_place && self.standing.breaker.is_closed() && !self.standing.drained
    }

    /// Returns how many jobs the agent may have at a time at present.
    pub fn capacity(&self) -> u32 {
        Presence::capacity(&self.spec, self.joined, self.seen)
    }

    /// Returns the sort key for handing out jobs: the least loaded agent comes first, and among equals the one with the
    /// fewest turns.
    fn order(&self) -> (u64, u64) {
        (u64::from(self.running) * 1_000_000 / u64::from(self.capacity().max(1)), self.turns)
    }
}

impl Core {
    pub(super) fn add_agent(&mut self, spec: Spec, now: Time) {
        self.add_works(&spec);
        let agent = Agent {
            standing: Standing::default(),
            doubt: Doubt::default(),
            joined: None,
            seen: spec.awaited.then_some(Presence::Away { since: now }),
            registration: None,
            running: 0,
            waiting: 0,
            turns: 0,
            fairness: Fairness::default(),
            takes: takes_of(&spec),
            spec,
        };
        self.agents.insert(agent.spec.name.clone(), agent);
    }

    pub(super) fn add_works(&mut self, spec: &Spec) {
        for work in &spec.works {
            self.works.entry(work.clone()).or_default().push(spec.name.clone());
        }
    }

    /// Checks whether any known agent can take this request (ALL-6).
    pub(super) fn check_route(&self, request: &Request) -> Result<(), Rejected> {
        let Some(takers) = self.works.get(&request.work) else { return Err(Rejected::UnknownWork) };
        if let Some(name) = &request.pinned
            && !takers.contains(name)
        {
            let is_known = self.agents.contains_key(name);
            return Err(if is_known { Rejected::NotItsWork } else { Rejected::UnknownAgent });
        }
        let is_pinned = |name: &&Arc<str>| request.pinned.as_ref().is_none_or(|pinned| pinned == *name);
        let fits = self.takers(request).any(|name| is_pinned(&name));
        if fits { Ok(()) } else { Err(Rejected::WrongType) }
    }

    /// Returns the agents that take the request's work and are of the type that it is addressed to (MSG-18).
    pub(super) fn takers<'c>(&'c self, request: &'c Request) -> impl Iterator<Item = &'c Arc<str>> {
        let fits = |agent: &Agent| is_of_type(agent.spec.agent_type.as_deref(), request.addressed.as_deref());
        let takers = self.works.get(&request.work).into_iter().flatten();
        takers.filter(move |name| self.agents.get(*name).is_some_and(fits))
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
        let (doubt, breaker, action) = agent.doubt.step(agent.standing.breaker, event, now);
        agent.doubt = doubt;
        if action == breaker::Action::Check {
            batch.effects.push(Effect::Check { agent: agent.spec.name.clone() });
        }
        if breaker != agent.standing.breaker {
            agent.standing.breaker = breaker;
            batch.agents.insert(agent.spec.name.clone(), agent.standing);
        }
    }

    /// Adds a job to the counts of its agent, or subtracts it.
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
                    agent.fairness.count(&job.request.caller, by);
                }
            }
            State::Waiting { .. } => {
                if let Some(agent) = agent {
                    agent.waiting = agent.waiting.saturating_add_signed(by);
                    agent.fairness.count(&job.request.caller, by);
                }
            }
            State::Queued | State::Retrying { .. } | State::Poisoned | State::Ended(_) => {}
        }
    }

    /// Hands out jobs as long as an agent has room for one.
    pub(super) fn hand_out(&mut self, now: Time, batch: &mut Batch) {
        while !self.resting
            && let Some((name, seq)) = self.next_match(now)
        {
            if let (Some(agent), Some(live)) = (self.agents.get_mut(&name), self.jobs.get(&seq)) {
                agent.turns += 1;
                agent.fairness.served = live.job.request.caller.clone();
            }
            // Every queued job can be started. If one could not, it would come up here again for ever.
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
        let next = |agent: &Agent| {
            let barred = agent.fairness.barred(agent.spec.waiting_max).collect();
            let turn = Turn { number: agent.turns, last: &agent.fairness.served, barred };
            Some((agent.spec.name.clone(), self.queues.next(agent.takes.iter(), &turn)?))
        };
        free.into_iter().find_map(next)
    }
}

/// Returns which jobs an agent takes.
pub(super) fn takes_of(spec: &Spec) -> Vec<Takes> {
    spec.works.iter().flat_map(|work| Takes::of(work, &spec.name, spec.agent_type.as_ref())).collect()
}
