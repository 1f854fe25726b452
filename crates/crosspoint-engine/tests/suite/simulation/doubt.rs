//! Marks of the agents, and connections that they dropped: those count only if a health check fails too (MSG-7).

use crosspoint_engine::core::{Batch, Effect};

use super::model::Model;
use super::rule::{BAD_MARKS, Fuse, Verdict, ensure};

/// What the model knows of the connections that one agent dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Drops in a row that no check has judged yet.
    drops: u32,
    /// Whether their check is under way.
    is_checked: bool,
}

impl Model {
    pub(crate) fn mark(&mut self, agent: usize, bad: bool) {
        self.fuses[agent] = self.fuses[agent].marked(bad, self.now);
        if !bad || !self.is_closed(agent) {
            self.dropped[agent].drops = 0;
        }
    }

    /// The agent dropped a connection. Only the first drop wants a check.
    pub(crate) fn drops(&mut self, agent: usize) {
        if !self.is_closed(agent) {
            return;
        }
        let dropped = &mut self.dropped[agent];
        dropped.drops += 1;
        self.check_wanted = (!dropped.is_checked).then_some(agent);
        dropped.is_checked = true;
    }

    /// A check of the agent has ended, whatever it was made for.
    pub(crate) fn checked(&mut self, agent: usize, well: bool) {
        let Dropped { drops, .. } = std::mem::take(&mut self.dropped[agent]);
        if !self.is_closed(agent) {
            self.fuses[agent] = self.fuses[agent].checked(well, self.now);
        } else if !well {
            *self.reached.entry("drops of a sick agent").or_default() += u64::from(drops);
            (0..drops.min(BAD_MARKS)).for_each(|_| self.mark(agent, true));
        }
    }

    /// An operator has decided about the agent's breaker.
    pub(crate) fn set_fuse(&mut self, agent: usize, fuse: Fuse) {
        (self.fuses[agent], self.dropped[agent].drops) = (fuse, 0);
    }

    /// Drops are in memory alone: a core that is made anew knows of none.
    pub(crate) fn forget_drops(&mut self) {
        self.dropped.fill(Dropped::default());
    }

    /// Checks that a check is made if a drop wants one, and none otherwise.
    pub(crate) fn expect_check_of_drop(&mut self, batch: &Batch, from: usize) -> Verdict {
        let checks = batch.effects[from..].iter().filter_map(|effect| match effect {
            Effect::Check { agent } => Some(agent.clone()),
            Effect::Job { .. } => None,
        });
        let wanted = self.check_wanted.take().map(|agent| self.specs[agent].name.clone());
        let (found, wanted): (Vec<_>, Vec<_>) = (checks.collect(), wanted.into_iter().collect());
        ensure!(found == wanted, "checks of {found:?}, not of {wanted:?}");
        Ok(())
    }

    fn is_closed(&self, agent: usize) -> bool {
        matches!(self.fuses[agent], Fuse::Closed(_))
    }
}
