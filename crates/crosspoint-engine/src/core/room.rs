//! How many jobs there may be that have not ended, and whose they are: the backlog of one work, agent or caller leaves room for the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Core, Rejected};
use crate::job::Request;

/// How many jobs there may be that have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// In all.
    pub jobs: usize,
    /// Of one work.
    pub of_work: usize,
    /// That only one agent can take: because it was named, or because it alone takes the work.
    pub of_agent: usize,
    /// Of one caller. Without tokens everyone is the same caller, for whom this does not count.
    pub of_caller: usize,
}

/// Of what there are as many jobs as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Of everything.
    All,
    /// Of this work.
    Work,
    /// For this agent.
    Agent,
    /// Of this caller.
    Caller,
}

/// Who has taken how much of the room.
#[derive(Debug)]
pub(super) struct Shares {
    room: Room,
    works: BTreeMap<Arc<str>, usize>,
    agents: BTreeMap<Arc<str>, usize>,
    callers: BTreeMap<Arc<str>, usize>,
}

impl Room {
    /// Room for so many in all, of which no work, agent or caller takes more than half.
    pub fn of(jobs: usize) -> Room {
        let half = jobs.div_ceil(2);
        Room { jobs, of_work: half, of_agent: half, of_caller: half }
    }
}

impl Shares {
    pub(super) fn new(room: Room) -> Shares {
        Shares { room, works: BTreeMap::new(), agents: BTreeMap::new(), callers: BTreeMap::new() }
    }

    /// Whether there is room for one more.
    pub(super) fn check(&self, request: &Request, agent: Option<&Arc<str>>, live: usize) -> Result<(), Rejected> {
        let taken = |of: &BTreeMap<Arc<str>, usize>, name: &str| of.get(name).copied().unwrap_or(0);
        let caller = if request.caller.is_empty() { 0 } else { taken(&self.callers, &request.caller) };
        let shares = [
            (Share::All, live, self.room.jobs),
            (Share::Work, taken(&self.works, &request.work), self.room.of_work),
            (Share::Agent, agent.map_or(0, |agent| taken(&self.agents, agent)), self.room.of_agent),
            (Share::Caller, caller, self.room.of_caller),
        ];
        let full = shares.into_iter().find(|(_, taken, most)| taken >= most);
        full.map_or(Ok(()), |(share, _, most)| Err(Rejected::Full { share, most }))
    }

    /// Counts a job, or no longer.
    pub(super) fn change(&mut self, request: &Request, agent: Option<&Arc<str>>, by: isize) {
        change(&mut self.works, &request.work, by);
        change(&mut self.callers, &request.caller, by);
        if let Some(agent) = agent {
            change(&mut self.agents, agent, by);
        }
    }
}

fn change(shares: &mut BTreeMap<Arc<str>, usize>, name: &Arc<str>, by: isize) {
    let share = shares.entry(name.clone()).or_default();
    *share = share.saturating_add_signed(by);
    if *share == 0 {
        shares.remove(name);
    }
}

impl Core {
    /// The agent whose share a job takes: the one that it must go to, as things are when it is accepted.
    pub(super) fn charged(&self, request: &Request) -> Option<Arc<str>> {
        if request.pinned.is_some() {
            return request.pinned.clone();
        }
        match self.works.get(&request.work).map(Vec::as_slice) {
            Some([only]) => Some(only.clone()),
            Some(_) | None => None,
        }
    }
}
