//! One program at a time for one job.
//!
//! An attempt that is given up has its grace to end in, and the next attempt may be due before that. Two programs would
//! then do the same work beside each other. So each start of a program takes the job's turn first. The turn is given
//! back when the supervisor was reaped, which is when nothing of the program is left. The turns are those of this
//! process, as its children are; between processes there is `orphan_lock`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The jobs that have a program, or wait for one to end.
static JOB_LOCKS: Mutex<BTreeMap<String, Arc<Semaphore>>> = Mutex::new(BTreeMap::new());

/// A job's turn, until it is dropped.
pub(super) struct JobLock {
    job_id: String,
    permit: Option<OwnedSemaphorePermit>,
}

impl JobLock {
    /// Waits for the job's turn.
    pub(super) async fn take(job_id: &str) -> JobLock {
        let job_id = job_id.to_owned();
        let turns = {
            let mut all = JOB_LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(job_id.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        // Made before the turn is acquired, so that a caller that gives up waiting cleans up too.
        let mut turn = JobLock { job_id, permit: None };
        // The semaphore is never closed.
        turn.permit = turns.acquire_owned().await.ok();
        turn
    }
}

impl Drop for JobLock {
    fn drop(&mut self) {
        let mut all = JOB_LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.permit.take());
        // Each holder and each waiter of the turn has a reference too.
        if all.get(&self.job_id).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            all.remove(&self.job_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_job_has_one_turn_at_a_time_and_nothing_is_kept_of_it() {
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(JobLock::take("a"));
        let Poll::Ready(first) = first.as_mut().poll(&mut context) else { panic!("it is free") };
        let mut second = Box::pin(JobLock::take("a"));
        assert!(second.as_mut().poll(&mut context).is_pending());
        let mut given_up = Box::pin(JobLock::take("a"));
        assert!(given_up.as_mut().poll(&mut context).is_pending());
        drop(given_up);
        let mut other = Box::pin(JobLock::take("b"));
        assert!(other.as_mut().poll(&mut context).is_ready());
        drop((first, other));
        let Poll::Ready(second) = second.as_mut().poll(&mut context) else { panic!("it is free again") };
        drop(second);
        assert!(JOB_LOCKS.lock().expect("nobody panicked").is_empty());
    }
}
