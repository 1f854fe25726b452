//! How many jobs are done at a time, and which of them goes next. A job that waits for a person does nothing, so
//! another may be done meanwhile.

mod turns;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosspoint_contracts::request::Priority;
use tokio::sync::Semaphore;

use self::turns::{Turn, Turns};

/// The places of an agent's jobs; cloning shares them.
#[derive(Clone)]
pub(crate) struct Places {
    working: Arc<Turns>,
    /// How many jobs beside those may wait for a person.
    waiting: Arc<Semaphore>,
}

/// The place of one job, if it has one at the moment.
pub(crate) struct Place {
    places: Places,
    priority: Priority,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    turn: Option<Turn>,
    /// How often the place was given up. What was waited for before that is no longer wanted.
    given_up: u64,
}

impl Places {
    pub(crate) fn new(working: usize, waiting: usize) -> Places {
        let waiting = Semaphore::new(waiting.min(Semaphore::MAX_PERMITS));
        Places { working: Turns::new(working), waiting: Arc::new(waiting) }
    }

    /// Returns the place of a job that has none yet.
    pub(crate) fn place(&self, priority: Priority) -> Place {
        Place { places: self.clone(), priority, held: Arc::default() }
    }
}

impl Place {
    /// Waits for a place.
    pub(crate) async fn take(&self) {
        let turn = self.places.working.clone().take(self.priority).await;
        lock(&self.held).turn = turn;
    }

    /// Takes a place if one is free.
    pub(crate) fn try_take(&self) -> bool {
        let turn = self.places.working.try_take();
        let is_free = turn.is_some();
        lock(&self.held).turn = turn;
        is_free
    }

    /// Gives the place to another job.
    pub(crate) fn release(&self) {
        let mut held = lock(&self.held);
        held.turn = None;
        held.given_up += 1;
    }

    /// Waits for a person, and leaves the place to another job meanwhile. If too many wait already, it keeps its place
    /// until fewer do: no more work is begun than the agent has room for.
    pub(crate) async fn without<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        let room = tokio::select! {
            biased;
            room = self.places.waiting.clone().acquire_owned() => room,
            done = &mut waiting => return done,
        };
        self.release();
        let mut left = Left { place: self, is_back: false };
        let done = waiting.await;
        // The next that asks may wait now, and so leave its place to this one.
        drop(room);
        self.take().await;
        left.is_back = true;
        done
    }

    /// Takes the next place that is free, for a job that goes on meanwhile. It is one too many until then.
    fn take_later(&self) {
        let (held, working) = (self.held.clone(), self.places.working.clone());
        let given_up = lock(&held).given_up;
        let keep = move |turn| {
            let mut held = lock(&held);
            if held.given_up == given_up {
                held.turn = Some(turn);
            }
        };
        if let Some(turn) = working.try_take() {
            return keep(turn);
        }
        // Without a runtime no other job can be done either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let turn = working.take(self.priority);
            drop(runtime.spawn(async move { turn.await.map(keep) }));
        }
    }
}

/// A place that was left to another job. A handler that no longer waits for its answer needs one again.
struct Left<'p> {
    place: &'p Place,
    is_back: bool,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if !self.is_back {
            self.place.take_later();
        }
    }
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_wait_that_is_given_up_takes_the_place_again() {
        let places = Places::new(1, 1);
        let (asking, other) = (places.place(Priority::Normal), places.place(Priority::Normal));
        asking.take().await;
        for _ in 0..2 {
            assert!(asking.without(pending::<()>()).now_or_never().is_none());
            assert_eq!((places.working.free(), places.waiting.available_permits()), (0, 1));
        }
        let wait = asking.without(other.take()).now_or_never();
        assert!(wait.is_none(), "the other has the place, and this one waits for it");
        // The next place is for the job that goes on without one.
        tokio::task::yield_now().await;
        other.release();
        tokio::task::yield_now().await;
        assert_eq!(places.working.free(), 0);
        asking.release();
        assert_eq!(places.working.free(), 1);
    }

    #[tokio::test]
    async fn a_job_that_has_ended_takes_no_place() {
        let places = Places::new(1, 1);
        let (asking, other) = (places.place(Priority::Normal), places.place(Priority::Normal));
        asking.take().await;
        assert!(asking.without(other.take()).now_or_never().is_none());
        tokio::task::yield_now().await;
        asking.release();
        other.release();
        tokio::task::yield_now().await;
        assert_eq!(places.working.free(), 1);
    }

    #[tokio::test]
    async fn a_job_that_is_answered_goes_on_though_another_asks_and_kept_its_place() {
        let places = Places::new(1, 1);
        let (first, second) = (places.place(Priority::Normal), places.place(Priority::Normal));
        first.take().await;
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let mut first_asks = Box::pin(first.without(answered));
        assert!(first_asks.as_mut().now_or_never().is_none());
        second.take().await;
        let mut second_asks = Box::pin(second.without(pending::<()>()));
        assert!(second_asks.as_mut().now_or_never().is_none(), "it keeps its place: one waits already");
        drop(answer);
        assert!(first_asks.as_mut().now_or_never().is_none());
        assert!(second_asks.as_mut().now_or_never().is_none(), "now it waits, without its place");
        assert!(first_asks.as_mut().now_or_never().is_some(), "and the first has it");
    }
}
