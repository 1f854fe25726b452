//! An agent, as it is shown to people.

use crosspoint_contracts::time::Time;

use super::attempt::Reached;
use super::engine::Engine;
use crate::breaker::Breaker;
use crate::core::{Agent, INTERNAL, Membership, Presence, Spec, Standing};

/// An agent, as it is shown to people.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// The agent as it was configured or joined.
    pub spec: Spec,
    /// The agent's breaker, and whether it is drained.
    pub standing: Standing,
    /// How many jobs the agent has, without those that wait for a person.
    pub running: u32,
    /// How many jobs the agent has that wait for a person.
    pub waiting: u32,
    /// Whether the agent is present; `None` if it was configured instead of having joined.
    pub joined: Option<Membership>,
    /// Whether a configured agent is present; `None` if that is not known, so that it always gets work.
    pub seen: Option<Presence>,
    /// Since when the agent refuses our token.
    pub token_refused_since: Option<Time>,
    /// Where the agent is, if it has an address.
    pub reached: Option<Reached>,
}

impl Engine {
    /// Returns all agents that are no part of the orchestrator, ordered by name.
    pub fn agents(&self) -> Vec<AgentView> {
        self.published()
            .agents(|agent| *agent.spec.contract != *INTERNAL)
            .into_iter()
            .map(|agent| self.with_token(agent))
            .collect()
    }

    /// Returns the agent with this name.
    pub fn agent(&self, name: &str) -> Option<AgentView> {
        self.published().agent(name).map(|agent| self.with_token(agent))
    }

    /// Adds what only the agent's link knows.
    fn with_token(&self, agent: AgentView) -> AgentView {
        let Some(link) = self.link(&agent.spec.name) else { return agent };
        AgentView { token_refused_since: link.token_refused_since(), reached: link.reached(), ..agent }
    }
}

impl AgentView {
    pub(super) fn of(agent: &Agent) -> AgentView {
        let Agent { spec, standing, joined, seen, running, waiting, .. } = agent;
        AgentView {
            spec: spec.clone(),
            standing: *standing,
            running: *running,
            waiting: *waiting,
            joined: *joined,
            seen: *seen,
            token_refused_since: None,
            reached: None,
        }
    }

    /// Returns how many jobs the agent may have at a time at present.
    pub fn capacity(&self) -> u32 {
        Presence::capacity(&self.spec, self.joined, self.seen)
    }

    /// Returns since when the agent is away.
    pub fn away_since(&self) -> Option<Time> {
        match self.joined.map(|joined| joined.presence).or(self.seen)? {
            Presence::Here { .. } => None,
            Presence::Away { since } => Some(since),
        }
    }

    /// Returns until when the agent's breaker is open.
    pub fn open_until(&self) -> Option<Time> {
        match self.standing.breaker {
            Breaker::Open { until } => Some(until),
            Breaker::Closed { .. } | Breaker::HalfOpen => None,
        }
    }
}
