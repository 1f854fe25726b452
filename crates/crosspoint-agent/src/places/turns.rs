//! The turns of jobs that wait for a place.
//!
//! The highest priority goes first, and within it the job that came first (TASK-1). That alone would let low work wait
//! for ever while other work keeps coming, so every eighth turn goes to the job that came first of all, as in the queue
//! of the orchestrator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosspoint_contracts::request::Priority;
use tokio::sync::oneshot;

/// Every turn that is a multiple of this goes to the job that came first, whatever its priority.
const OLDEST_EVERY: u64 = 8;

/// The places in which work is done, and the jobs that wait for one.
pub(super) struct Turns(Mutex<State>);

struct State {
    free: usize,
    /// How many have come to wait, and how many had their turn.
    arrived: u64,
    called: u64,
    /// Those that wait, by priority and in the order in which they came.
    lanes: [Lane; Priority::ALL.len()],
}

type Lane = BTreeMap<u64, oneshot::Sender<Turn>>;

/// A place that is taken. Dropping it gives it to the next job.
pub(super) struct Turn {
    /// Absent once the place is given back.
    turns: Option<Arc<Turns>>,
}

/// A job that waits. Dropping it leaves the queue.
struct Waiting<'t> {
    turns: &'t Turns,
    priority: Priority,
    number: u64,
}

impl Turns {
    pub(super) fn new(places: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State { free: places, arrived: 0, called: 0, lanes: Default::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place if one is free. Then no job waits.
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Turn> {
        self.lock().take().then(|| Turn { turns: Some(self.clone()) })
    }

    /// Waits for a place; `None` never comes while there are places.
    pub(super) async fn take(self: Arc<Self>, priority: Priority) -> Option<Turn> {
        let (called, turn) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            if state.take() {
                return Some(Turn { turns: Some(self.clone()) });
            }
            state.wait(priority, called)
        };
        let _waiting = Waiting { turns: &self, priority, number };
        turn.await.ok()
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.lock().free
    }
}

impl State {
    /// Takes a place that is free. Returns whether there was one.
    fn take(&mut self) -> bool {
        let is_free = self.free > 0;
        self.free -= usize::from(is_free);
        is_free
    }

    fn wait(&mut self, priority: Priority, called: oneshot::Sender<Turn>) -> u64 {
        self.arrived += 1;
        self.lanes[priority as usize].insert(self.arrived, called);
        self.arrived
    }

    /// Returns the job whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let waiting = self.lanes.iter_mut().filter(|lane| !lane.is_empty());
        let lane = match (self.called + 1).is_multiple_of(OLDEST_EVERY) {
            true => waiting.min_by_key(|lane| lane.first_key_value().map(|(number, _)| *number)),
            false => waiting.last(),
        };
        let (_, called) = lane?.pop_first()?;
        self.called += 1;
        Some(called)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else { return };
        loop {
            let mut state = turns.lock();
            let Some(next) = state.next() else {
                state.free += 1;
                return;
            };
            drop(state);
            // One that no longer waits gives it back here, not by a drop within this one.
            let Err(mut back) = next.send(Turn { turns: Some(turns.clone()) }) else { return };
            back.turns = None;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let left = self.turns.lock().lanes[self.priority as usize].remove(&self.number);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Has jobs of these priorities wait for one place, and returns the order in which they get it, by their number.
    async fn order(priorities: &[Priority]) -> Vec<usize> {
        let turns = Turns::new(1);
        let held = turns.try_take().expect("it is free");
        let mut waiting: Vec<_> =
            priorities.iter().map(|priority| Some(Box::pin(turns.clone().take(*priority)))).collect();
        for wait in waiting.iter_mut().flatten() {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        drop(held);
        let mut order = Vec::new();
        while order.len() < priorities.len() {
            let called: Vec<_> = (0..waiting.len())
                .filter_map(|number| {
                    let turn = waiting[number].as_mut()?.as_mut().now_or_never()?;
                    waiting[number] = None;
                    Some((number, turn))
                })
                .collect();
            assert_eq!(called.len(), 1, "there is one place");
            order.extend(called.iter().map(|(number, _)| *number));
        }
        assert_eq!(turns.free(), 1);
        order
    }

    #[tokio::test]
    async fn the_highest_priority_goes_first_and_among_equals_the_first() {
        use Priority::{High, Low, Normal, Urgent};
        assert_eq!(order(&[Low, Normal, High, Normal, Urgent, High]).await, [4, 2, 5, 1, 3, 0]);
    }

    #[tokio::test]
    async fn low_work_has_its_turn_though_higher_work_waits() {
        let mut priorities = vec![Priority::Low; 2];
        priorities.resize(20, Priority::Urgent);
        let order = order(&priorities).await;
        assert_eq!((order[7], order[15]), (0, 1), "{order:?}");
    }

    #[tokio::test]
    async fn one_that_no_longer_waits_leaves_its_turn_to_the_next() {
        let turns = Turns::new(1);
        let held = turns.try_take().expect("it is free");
        let mut gone = Box::pin(turns.clone().take(Priority::Urgent));
        let mut called = Box::pin(turns.clone().take(Priority::High));
        let mut next = Box::pin(turns.clone().take(Priority::Normal));
        for wait in [&mut gone, &mut called, &mut next] {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        drop(gone);
        drop(held);
        // It was called, and has not noticed.
        drop(called);
        assert!(next.now_or_never().is_some());
        assert_eq!(turns.free(), 1);
    }
}
