//! Jobs that may be what ends us (ALL-13): which of them begins, and which is blamed.

use std::sync::Arc;

use super::{Agent, Core};
use crate::id::Seq;
use crate::machine::End;
use crate::queue::Target;
use crate::time::Time;

impl Core {
    /// The oldest job that may be what ends us, if no other one has just begun (ALL-13).
    pub(super) fn next_suspect(&self, free: &[&Agent], now: Time) -> Option<(Arc<str>, Seq)> {
        if self.suspects.is_empty() || self.alone_until().is_some_and(|until| now < until) {
            return None;
        }
        let taker = |seq: &Seq| {
            let target = Target::of(&self.jobs.get(seq)?.job);
            let agent = free.iter().find(|agent| agent.targets.contains(&target))?;
            Some((agent.spec.name.clone(), *seq))
        };
        let (agent, seq) = self.suspects.iter().find_map(taker)?;
        // Whoever is in doubt waits until no other suspect runs.
        let begins = self.suspects_running.is_empty() || !self.doubtful.contains(&seq);
        begins.then_some((agent, seq))
    }

    /// Until when no suspect begins.
    pub(super) fn alone_until(&self) -> Option<Time> {
        let until = |seq: &Seq| {
            if self.doubtful.contains(seq) { Some(Time::NEVER) } else { self.job(*seq)?.alone_until() }
        };
        self.suspects_running.iter().filter_map(until).max()
    }

    /// Where several suspects were under way at an unclean end, it is not known which of them is to blame: none is, and the next time they begin alone.
    pub(super) fn doubt_suspects(&mut self) {
        if self.end == End::Unclean && self.suspects_running.len() > 1 {
            self.doubtful.clone_from(&self.suspects_running);
        }
    }

    /// How the orchestrator ended that drove this job, as far as the job may be why. It is known of servers: a visit that is killed is no crash loop.
    pub(super) fn end_of(&self, seq: Seq) -> End {
        let is_innocent = self.visited.contains(&seq) || self.doubtful.contains(&seq);
        if is_innocent { End::Clean } else { self.end }
    }
}
