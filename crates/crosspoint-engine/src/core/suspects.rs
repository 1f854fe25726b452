//! Jobs that may be what crashes the orchestrator (ALL-13): which of them begins, and which is blamed.

use std::sync::Arc;

use crosspoint_contracts::time::Time;

use super::{Agent, Core};
use crate::id::Seq;
use crate::machine::End;
use crate::queue::Target;

impl Core {
    /// Returns the oldest suspect that an agent can take, if no other suspect has just begun (ALL-13).
    pub(super) fn next_suspect(&self, free: &[&Agent], now: Time) -> Option<(Arc<str>, Seq)> {
        if self.suspects.is_empty() || self.alone_until().is_some_and(|until| now < until) {
            return None;
        }
        let taker = |seq: &Seq| {
            let target = Target::of(&self.jobs.get(seq)?.job);
            let agent = free.iter().find(|agent| agent.takes.iter().any(|takes| takes.takes(&target)))?;
            Some((agent.spec.name.clone(), *seq))
        };
        let (agent, seq) = self.suspects.iter().find_map(taker)?;
        // A doubtful suspect waits until no other suspect runs.
        let begins = self.suspects_running.is_empty() || !self.doubtful.contains(&seq);
        begins.then_some((agent, seq))
    }

    /// Returns until when no suspect begins.
    pub(super) fn alone_until(&self) -> Option<Time> {
        let until = |seq: &Seq| {
            if self.doubtful.contains(seq) { Some(Time::NEVER) } else { self.job(*seq)?.alone_until() }
        };
        self.suspects_running.iter().filter_map(until).max()
    }

    /// Marks suspects as doubtful if several of them were under way at an unclean end. It is not known which of them is
    /// to blame, so none is blamed, and the next time each begins alone.
    pub(super) fn doubt_suspects(&mut self) {
        if self.end == End::Unclean && self.suspects_running.len() > 1 {
            self.doubtful.clone_from(&self.suspects_running);
        }
    }

    /// Returns how the orchestrator that drove this job ended, as far as the job may be the reason. Only the ends of
    /// servers count: a visit that is killed is no crash loop.
    pub(super) fn end_of(&self, seq: Seq) -> End {
        let is_innocent = self.visited.contains(&seq) || self.doubtful.contains(&seq);
        if is_innocent { End::Clean } else { self.end }
    }
}
