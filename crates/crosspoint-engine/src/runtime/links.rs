//! How attempts reach agents: the links of configured agents, and those of agents that joined and are not reached by
//! the pull queues.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::attempt::Link;
use super::engine::Engine;
use super::published::lock;
use crate::core::{Core, Member};

/// Makes the link that reaches an agent that joined; `None` for an agent that asks for its work at the pull queues.
pub type MemberLink = Arc<dyn Fn(&Member) -> Option<Arc<dyn Link>> + Send + Sync>;

pub(super) struct Links {
    configured: BTreeMap<Arc<str>, Arc<dyn Link>>,
    member_link: Option<MemberLink>,
    members: Mutex<BTreeMap<Arc<str>, Joined>>,
}

/// An agent that joined, as it was last committed.
struct Joined {
    member: Member,
    link: Option<Arc<dyn Link>>,
}

impl Links {
    pub(super) fn new(configured: BTreeMap<Arc<str>, Arc<dyn Link>>, member_link: Option<MemberLink>) -> Links {
        Links { configured, member_link, members: Mutex::default() }
    }

    /// Returns the link of an agent; `None` for an agent that has none.
    pub(super) fn of(&self, name: &str) -> Option<Arc<dyn Link>> {
        let configured = self.configured.get(name).cloned();
        configured.or_else(|| lock(&self.members).get(name)?.link.clone())
    }

    /// Returns the link of a configured agent.
    pub(super) fn of_configured(&self, name: &str) -> Option<&Arc<dyn Link>> {
        self.configured.get(name)
    }

    /// Notes that an agent joined, changed, or was forgotten. An agent that only comes or goes keeps its link.
    pub(super) fn post(&self, name: &Arc<str>, member: Option<&Member>) {
        let Some(member) = member else {
            lock(&self.members).remove(name);
            return;
        };
        let known = lock(&self.members)
            .get(name)
            .map(|joined| (joined.member.is_same_but_presence(member), joined.link.clone()));
        let link = match known {
            Some((true, link)) => link,
            Some((false, _)) | None => self.member_link.as_ref().and_then(|make| make(member)),
        };
        lock(&self.members).insert(name.clone(), Joined { member: member.clone(), link });
    }

    /// Notes which agents have joined in all.
    pub(super) fn post_all(&self, members: &BTreeMap<Arc<str>, Member>) {
        lock(&self.members).retain(|name, _| members.contains_key(name));
        for (name, member) in members {
            self.post(name, Some(member));
        }
    }
}

impl Engine {
    /// Publishes the agents as they are on disk, and makes the links of those that joined.
    pub(super) fn post_agents(&self, core: &Core) {
        self.published().post_agents(core.agents());
        self.published().post_grants(core.grants());
        let members = core.agents().filter_map(|agent| Some((agent.spec.name.clone(), agent.member()?)));
        self.links().post_all(&members.collect());
    }

    /// Returns the agents that have joined and were not forgotten, ordered by name, whether or not they are present.
    pub fn members(&self) -> Vec<Member> {
        lock(&self.links().members).values().map(|joined| joined.member.clone()).collect()
    }
}
