//! What keeps one caller from taking an agent for itself: the agent goes round the callers, and leaves some of its
//! places for questions to the others.

use std::collections::BTreeMap;
use std::sync::Arc;

/// How the callers share one agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Fairness {
    /// The caller whose job the agent was given last.
    pub(super) served: Arc<str>,
    /// How many jobs of each caller the agent has: those that wait for a person, and those that run, which may ask a
    /// person next. Callers without a token are not told apart.
    has: BTreeMap<Arc<str>, u32>,
}

impl Fairness {
    /// Adds a job of this caller that runs or waits for a person, or subtracts it.
    pub(super) fn count(&mut self, caller: &Arc<str>, by: i32) {
        if caller.is_empty() {
            return;
        }
        let has = self.has.entry(caller.clone()).or_default();
        *has = has.saturating_add_signed(by);
        if *has == 0 {
            self.has.remove(caller);
        }
    }

    /// Returns the callers that get no more of the agent's places: if all their jobs ask, they have three quarters of
    /// the places for jobs that wait for people. Such jobs may wait for ever, and an agent that has no such place left
    /// takes no work. An agent that asks nobody has no limit on those places, and bars nobody.
    pub(super) fn barred(&self, waiting_max: u32) -> impl Iterator<Item = &str> {
        let most = (waiting_max - waiting_max / 4).min(waiting_max.saturating_sub(1)).max(1);
        self.has.iter().filter(move |(_, has)| **has >= most).map(|(caller, _)| &**caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_leaves_places_to_the_others() {
        let (ann, open) = (Arc::<str>::from("ann"), Arc::<str>::from(""));
        for (waiting_max, most) in [(1, 1), (2, 1), (3, 2), (4, 3), (64, 48), (u32::MAX, 3_221_225_472)] {
            let mut fairness = Fairness { has: BTreeMap::from([(ann.clone(), most - 1)]), ..Fairness::default() };
            let is_barred = |fairness: &Fairness| fairness.barred(waiting_max).eq(["ann"]);
            assert!(!is_barred(&fairness), "{waiting_max}");
            fairness.count(&ann, 1);
            assert!(is_barred(&fairness), "{waiting_max}");
            fairness.count(&ann, -1);
            assert!(!is_barred(&fairness), "{waiting_max}");
        }
        let mut fairness = Fairness::default();
        (0..100).for_each(|_| fairness.count(&open, 1));
        assert_eq!(fairness.barred(4).count(), 0, "callers without a token are not told apart");
    }
}
