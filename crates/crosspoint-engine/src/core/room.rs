//! How many jobs there may be that have not ended: the backlog of one work, agent or caller leaves room for those of
//! others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Core, Rejected};
use crate::job::Request;

/// How many jobs there may be that have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Most jobs in all.
    pub jobs: usize,
    /// Most jobs of one work.
    pub of_work: usize,
    /// Most jobs that only one agent can take, because the caller named it or because it alone takes the work.
    pub of_agent: usize,
    /// Most jobs of one caller. Without tokens all callers are the same caller, to which this limit does not apply.
    pub of_caller: usize,
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The limit on all jobs.
    All,
    /// The limit on jobs of one work.
    Work,
    /// The limit on jobs for one agent.
    Agent,
    /// The limit on jobs of one caller.
    Caller,
}

/// How much of the room each work, agent and caller takes.
#[derive(Debug)]
pub(super) struct Shares {
    room: Room,
    works: BTreeMap<Arc<str>, usize>,
    agents: BTreeMap<Arc<str>, usize>,
    callers: BTreeMap<Arc<str>, usize>,
}

impl Room {
    /// Makes room for `jobs` in all, of which no work or agent takes more than half. A caller takes at most a quarter,
    /// so that it cannot fill the room of a work either.
    pub fn of(jobs: usize) -> Room {
        let half = jobs.div_ceil(2);
        Room { jobs, of_work: half, of_agent: half, of_caller: jobs.div_ceil(4) }
    }
}

impl Shares {
    pub(super) fn new(room: Room) -> Shares {
        Shares { room, works: BTreeMap::new(), agents: BTreeMap::new(), callers: BTreeMap::new() }
    }

    /// Checks whether there is room for one more job.
    ///
    /// For a stage of a job there always is: its place came with the job that it is a stage of, which has one stage at
    /// a time. Otherwise such jobs could fill the room, and none of them could ever end.
    pub(super) fn check(&self, request: &Request, agent: Option<&Arc<str>>, live: usize) -> Result<(), Rejected> {
        if request.child_of().is_some() {
            return Ok(());
        }
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

    /// Adds a job to the shares, or subtracts it.
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
    /// Returns the agent whose share a job takes: the one that the job must go to, as things are when it is accepted.
    pub(super) fn charged(&self, request: &Request) -> Option<Arc<str>> {
        if request.pinned.is_some() {
            return request.pinned.clone();
        }
        let mut takers = self.takers(request);
        takers.next().filter(|_| takers.next().is_none()).cloned()
    }
}
