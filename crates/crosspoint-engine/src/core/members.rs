//! Agents that join and leave: their workers join first and then ask for work.
//!
//! It is on disk that such an agent has ever joined, so that its work stays known while it is away (ALL-6): jobs for it
//! are accepted then, and wait. Whether it is present is not on disk: after a start no agent is, until its workers join
//! again. How many jobs it takes is the sum over all workers under its name. The code that keeps their leases adds them
//! up and tells the core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;

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
}

/// The state that only an agent that joined has, and no configured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The lease; see [`Member::lease`].
    pub lease: Duration,
    /// Whether the agent is present.
    pub presence: Presence,
}

/// Whether an agent that joined is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// At least one worker works under the agent's name.
    Here {
        /// How many jobs all its workers together take at a time.
        capacity: u32,
    },
    /// No worker works under the agent's name.
    Away {
        /// Since when, as far as is known.
        since: Time,
    },
}

impl Member {
    /// Returns the spec for the agent's jobs. Some of it the agent cannot choose itself.
    fn spec(&self) -> Spec {
        // After a start of the orchestrator the agent has one lease to say what became of its work. How many of its
        // jobs wait for people is not limited, because the programs run elsewhere.
        let policy = Policy { take_up: self.lease, ..self.spec.policy.clone() };
        Spec { policy, waiting_max: u32::MAX, ..self.spec.clone() }
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
        self.add_agent(member.spec());
        if let Some(agent) = self.agents.get_mut(&name) {
            agent.joined = Some(Membership { lease: member.lease, presence });
        }
    }

    pub(super) fn join(&mut self, member: &Member, now: Time, batch: &mut Batch) -> Reply {
        let name = &member.spec.name;
        match self.agents.get(name).map(|agent| (agent.joined, is_same(agent, member))) {
            Some((None, _)) => return Reply::Configured,
            Some((Some(_), true)) => return Reply::Done,
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

    /// Changes an agent's works or limits. The jobs that it has go on under the new ones.
    fn change(&mut self, member: &Member) {
        let name = &member.spec.name;
        self.remove_works(name);
        self.add_works(&member.spec);
        if let Some(agent) = self.agents.get_mut(name) {
            agent.targets = Core::targets_of(&member.spec);
            agent.spec = member.spec();
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
        let Some(joined) = &mut agent.joined else { return Reply::Configured };
        let was_here = matches!(joined.presence, Presence::Here { .. });
        joined.presence = match (capacity, joined.presence) {
            (0, Presence::Here { .. }) => Presence::Away { since: now },
            (0, away @ Presence::Away { .. }) => away,
            (capacity, _) => Presence::Here { capacity },
        };
        if was_here != (capacity > 0) {
            let name = agent.spec.name.clone();
            self.write_member(&name, batch);
        }
        Reply::Done
    }

    pub(super) fn forget(&mut self, name: &str, batch: &mut Batch) -> Reply {
        let Some(agent) = self.agents.get(name) else { return Reply::NoSuchAgent };
        let Some(joined) = agent.joined else { return Reply::Configured };
        let has = |job: &crate::job::Job| job.running().is_some() && job.agent.as_deref() == Some(name);
        if matches!(joined.presence, Presence::Here { .. }) || self.jobs().any(|job| has(job)) {
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
        let Some((agent, joined)) = self.agents.get(name).and_then(|agent| Some((agent, agent.joined?))) else {
            return;
        };
        let left_at = match joined.presence {
            Presence::Here { .. } => None,
            Presence::Away { since } => Some(since),
        };
        let member = Member { spec: agent.spec.clone(), lease: joined.lease, left_at };
        batch.members.insert(name.clone(), Some(member));
    }
}

/// Whether joining again changes nothing.
fn is_same(agent: &Agent, member: &Member) -> bool {
    let (known, new) = (&agent.spec, member.spec());
    let lease = agent.joined.map(|joined| joined.lease);
    known.works == new.works && known.policy == new.policy && lease == Some(member.lease)
}
