//! Agents that join and leave: their workers join first and then ask for work.
//!
//! It is on disk that such an agent has ever joined, so that its work stays known while it is away (ALL-6): jobs for it
//! are accepted then, and wait. Whether it is present is not on disk: after a start no agent is, until its workers join
//! again. How many jobs it takes is the sum over all workers under its name. The code that keeps their leases adds them
//! up and tells the core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::time::Time;

use super::agents::takes_of;
use super::{Agent, Batch, Core, Reply, Spec, Standing};
use crate::id::Seq;
use crate::policy::Policy;

/// Most agents that joined that are known at a time: each is looked at whenever work is handed out.
pub const MEMBERS_MAX: usize = 1_000;

/// An agent that joined, as it is stored.
#[derive(Clone, Debug)]
pub struct Member {
    /// What the agent said when it joined.
    pub spec: Spec,
    /// How long after a start of the orchestrator a worker that has work may take to say that it still has it.
    pub lease: Duration,
    /// When the agent went away; `None` while it is present.
    pub left_at: Option<Time>,
    /// What the agent said when it joined, for the link that reaches it. The engine stores it and does not look into
    /// it.
    pub registration: Option<Block>,
}

/// The state that only an agent that joined has, and no configured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The lease; see [`Member::lease`].
    pub lease: Duration,
    /// Whether the agent is present.
    pub presence: Presence,
}

/// Whether an agent is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The agent was heard of, or at least one worker works under its name.
    Here {
        /// How many jobs the agent, or all its workers together, take at a time.
        capacity: u32,
    },
    /// Nothing is heard of the agent, or no worker works under its name.
    Away {
        /// Since when, as far as is known.
        since: Time,
    },
}

impl Presence {
    /// Returns how many jobs an agent may have at a time. A configured agent whose presence is not known counts as
    /// present.
    pub(crate) fn capacity(spec: &Spec, joined: Option<Membership>, seen: Option<Presence>) -> u32 {
        match (joined.map(|joined| joined.presence), seen) {
            (Some(Presence::Here { capacity }), _) => capacity,
            (None, Some(Presence::Here { capacity })) => capacity.min(spec.concurrency),
            (None, None) => spec.concurrency,
            (Some(Presence::Away { .. }), _) | (None, Some(Presence::Away { .. })) => 0,
        }
    }

    /// Returns the presence of an agent that takes this many jobs from now on.
    fn changed(self, capacity: u32, now: Time) -> Presence {
        match (capacity, self) {
            (0, Presence::Here { .. }) => Presence::Away { since: now },
            (0, away @ Presence::Away { .. }) => away,
            (capacity, _) => Presence::Here { capacity },
        }
    }
}

impl Member {
    /// Whether this is the same agent with the same works and limits, whether or not it is present.
    pub fn is_same_but_presence(&self, other: &Member) -> bool {
        self.lease == other.lease && self.registration == other.registration && is_same_spec(&self.spec, &other.spec)
    }

    /// Returns the spec for the agent's jobs. Some of it the agent cannot choose itself.
    fn spec(&self) -> Spec {
        // After a start of the orchestrator the agent has one lease to say what became of its work. How many of its
        // jobs wait for people is not limited, because the programs run elsewhere.
        let policy = Policy { take_up: self.lease, ..self.spec.policy.clone() };
        Spec { policy, waiting_max: u32::MAX, awaited: false, ..self.spec.clone() }
    }
}

impl Core {
    /// Adds an agent that joined at some time. A configured agent with the same name takes precedence.
    pub(super) fn add_member(&mut self, member: &Member, present: &BTreeMap<Arc<str>, u32>, now: Time) {
        if self.agents.contains_key(&member.spec.name) {
            return;
        }
        let presence = match present.get(&member.spec.name).copied().unwrap_or(0) {
            0 => Presence::Away { since: member.left_at.unwrap_or(now).min(now) },
            capacity => Presence::Here { capacity },
        };
        let name = member.spec.name.clone();
        self.add_agent(member.spec(), now);
        if let Some(agent) = self.agents.get_mut(&name) {
            agent.joined = Some(Membership { lease: member.lease, presence });
            agent.registration.clone_from(&member.registration);
        }
    }

    pub(super) fn join(&mut self, member: &Member, now: Time, batch: &mut Batch) -> Reply {
        let name = &member.spec.name;
        match self.agents.get(name).map(|agent| (agent.joined, is_same(agent, member))) {
            Some((None, _)) => return Reply::Configured,
            Some((Some(_), true)) => return Reply::Done,
            Some((Some(_), false)) if self.is_taken_by_another(member) => return Reply::OtherContract,
            Some((Some(_), false)) => self.change(member),
            None if self.agents.values().filter(|agent| agent.joined.is_some()).count() >= MEMBERS_MAX => {
                return Reply::Crowded;
            }
            None => {
                self.add_member(&Member { left_at: Some(now), ..member.clone() }, &BTreeMap::new(), now);
                // An agent that had this name before may have left a stored state.
                batch.agents.insert(name.clone(), Standing::default());
                self.watch_anew(name);
            }
        }
        self.write_member(name, batch);
        Reply::Done
    }

    /// Whether an agent that speaks another contract has this name, and is present or has work. Attempts that it has
    /// cannot be handed over to an agent that is reached in another way.
    fn is_taken_by_another(&self, member: &Member) -> bool {
        let name = &member.spec.name;
        let is_other = |agent: &Agent| agent.spec.contract != member.spec.contract;
        self.agents.get(name).is_some_and(is_other) && self.is_in_use(name)
    }

    /// Whether an agent that joined is present, or has work.
    fn is_in_use(&self, name: &str) -> bool {
        let joined = self.agents.get(name).and_then(|agent| agent.joined);
        let is_here = joined.is_some_and(|joined| matches!(joined.presence, Presence::Here { .. }));
        is_here || self.jobs().any(|job| job.running().is_some() && job.agent.as_deref() == Some(name))
    }

    /// Changes an agent's works or limits. The jobs that it has go on under the new ones.
    fn change(&mut self, member: &Member) {
        let name = &member.spec.name;
        self.remove_works(name);
        self.add_works(&member.spec);
        if let Some(agent) = self.agents.get_mut(name) {
            agent.takes = takes_of(&member.spec);
            agent.spec = member.spec();
            agent.registration.clone_from(&member.registration);
            agent.joined = agent.joined.map(|joined| Membership { lease: member.lease, ..joined });
        }
        self.watch_anew(name);
    }

    /// Sets the alarms of all jobs that the agent has or had anew: they were set by its old limits.
    fn watch_anew(&mut self, name: &Arc<str>) {
        let had = |live: &super::Live| live.job.agent.as_ref() == Some(name);
        let had: Vec<Seq> = self.jobs.iter().filter(|(_, live)| had(live)).map(|(seq, _)| *seq).collect();
        for seq in had {
            self.unwatch(seq);
            self.watch(seq);
        }
    }

    pub(super) fn set_capacity(&mut self, name: &str, capacity: u32, now: Time, batch: &mut Batch) -> Reply {
        let Some(agent) = self.agents.get_mut(name) else { return Reply::NoSuchAgent };
        self.presence_before.entry(agent.spec.name.clone()).or_insert_with(|| agent.presence());
        let Some(joined) = &mut agent.joined else {
            let seen = agent.seen.unwrap_or(Presence::Here { capacity: agent.spec.concurrency });
            agent.seen = Some(seen.changed(capacity, now));
            return Reply::Done;
        };
        let was_here = matches!(joined.presence, Presence::Here { .. });
        joined.presence = joined.presence.changed(capacity, now);
        if was_here != (capacity > 0) {
            let name = agent.spec.name.clone();
            self.write_member(&name, batch);
        }
        Reply::Done
    }

    /// Returns the agents that joined and are present, as far as that is committed, with how many jobs they take.
    pub(super) fn present(&self) -> BTreeMap<Arc<str>, u32> {
        let here = |agent: &Agent| match self.committed_presence(agent)? {
            Presence::Here { capacity } => Some((agent.spec.name.clone(), capacity)),
            Presence::Away { .. } => None,
        };
        self.agents.values().filter(|agent| agent.joined.is_some()).filter_map(here).collect()
    }

    /// Takes over what another core has seen of configured agents, as far as that is committed. It is only in memory.
    pub(super) fn see_as(&mut self, other: &Core) {
        for agent in self.agents.values_mut().filter(|agent| agent.joined.is_none()) {
            let known = other.agents.get(&agent.spec.name).filter(|known| known.joined.is_none());
            agent.seen = known.map_or(agent.seen, |known| other.committed_presence(known));
        }
    }

    fn committed_presence(&self, agent: &Agent) -> Option<Presence> {
        self.presence_before.get(&agent.spec.name).copied().unwrap_or_else(|| agent.presence())
    }

    pub(super) fn forget(&mut self, name: &str, batch: &mut Batch) -> Reply {
        let Some(agent) = self.agents.get(name) else { return Reply::NoSuchAgent };
        if agent.joined.is_none() {
            return Reply::Configured;
        }
        if self.is_in_use(name) {
            return Reply::Present;
        }
        let name = agent.spec.name.clone();
        self.remove_works(&name);
        self.agents.remove(&name);
        self.watch_anew(&name);
        batch.agents.remove(&name);
        batch.members.insert(name, None);
        Reply::Done
    }

    fn remove_works(&mut self, name: &Arc<str>) {
        self.works.retain(|_, takers| {
            takers.retain(|taker| taker != name);
            !takers.is_empty()
        });
    }

    fn write_member(&self, name: &Arc<str>, batch: &mut Batch) {
        if let Some(member) = self.agents.get(name).and_then(Agent::member) {
            batch.members.insert(name.clone(), Some(member));
        }
    }
}

impl Agent {
    /// Returns whether the agent is present; `None` for a configured agent of which that is not known.
    pub fn presence(&self) -> Option<Presence> {
        self.joined.map(|joined| joined.presence).or(self.seen)
    }

    /// Returns the agent as it is stored, if it joined.
    pub fn member(&self) -> Option<Member> {
        let joined = self.joined?;
        let left_at = match joined.presence {
            Presence::Here { .. } => None,
            Presence::Away { since } => Some(since),
        };
        let registration = self.registration.clone();
        Some(Member { spec: self.spec.clone(), lease: joined.lease, left_at, registration })
    }
}

/// Whether joining again changes nothing.
fn is_same(agent: &Agent, member: &Member) -> bool {
    let new = Member { spec: member.spec(), ..member.clone() };
    agent.member().is_some_and(|known| known.is_same_but_presence(&new))
}

fn is_same_spec(known: &Spec, new: &Spec) -> bool {
    let is_same_agent = known.contract == new.contract && known.agent_type == new.agent_type;
    let is_same_size = known.concurrency == new.concurrency;
    is_same_agent && is_same_size && known.works == new.works && known.policy == new.policy
}
