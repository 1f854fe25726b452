//! How many jobs are done at a time. A job that waits for a person does nothing, so another may be done meanwhile.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of an agent's jobs; cloning shares them.
#[derive(Clone)]
pub(crate) struct Places {
    working: Arc<Semaphore>,
    /// How many jobs beside those may wait for a person.
    waiting: Arc<Semaphore>,
}

/// The place of one job, if it has one at the moment.
pub(crate) struct Place {
    places: Places,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Places {
    pub(crate) fn new(working: usize, waiting: usize) -> Places {
        let semaphore = |places: usize| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Places { working: semaphore(working), waiting: semaphore(waiting) }
    }

    /// Returns the place of a job that has none yet.
    pub(crate) fn place(&self) -> Place {
        Place { places: self.clone(), held: Mutex::default() }
    }
}

impl Place {
    /// Waits for a place.
    pub(crate) async fn take(&self) {
        let permit = self.places.working.clone().acquire_owned().await;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = permit.ok();
    }

    /// Gives the place to another job.
    pub(crate) fn release(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for a person, and leaves the place to another job meanwhile. If too many wait already, it keeps its place:
    /// then no more work is begun than the agent has room for.
    pub(crate) async fn without<T>(&self, waiting: impl Future<Output = T>) -> T {
        let Ok(_permit) = self.places.waiting.clone().try_acquire_owned() else { return waiting.await };
        self.release();
        let done = waiting.await;
        self.take().await;
        done
    }
}
