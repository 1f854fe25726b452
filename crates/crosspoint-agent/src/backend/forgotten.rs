//! Jobs that nobody can ask for any more, until the threads that made them free them.
//!
//! Allocators give each thread memory of its own. That of most systems makes a thread wait that gives back what another
//! one took, and a job that ended long ago was mostly made by another thread than the one that forgets it. That waiting
//! took a tenth of the time of a short job.

use std::thread::ThreadId;

use crate::record::Job;

/// Most threads that jobs are left to, and most jobs and bytes of a job that each is left. Others are freed at once: a
/// thread may never come back.
const THREADS_MAX: usize = 64;
const JOBS_MAX: usize = 64;
const BYTES_MAX: usize = 64 << 10;

/// The jobs that are left to each thread.
#[derive(Default)]
pub(super) struct Forgotten(Vec<(ThreadId, Vec<Job>)>);

impl Forgotten {
    /// Leaves a job of this size to a thread. Returns it if it is to be freed at once.
    pub(super) fn leave(&mut self, thread: ThreadId, job: Job, bytes: usize) -> Option<Job> {
        let place = match self.0.iter().position(|(other, _)| *other == thread) {
            Some(place) => place,
            None if self.0.len() < THREADS_MAX => {
                self.0.push((thread, Vec::new()));
                self.0.len() - 1
            }
            None => return Some(job),
        };
        let left = &mut self.0[place].1;
        if left.len() >= JOBS_MAX || bytes > BYTES_MAX {
            return Some(job);
        }
        left.push(job);
        None
    }

    /// Takes what was left to a thread.
    pub(super) fn take(&mut self, thread: ThreadId) -> Vec<Job> {
        let left = self.0.iter_mut().find(|(other, _)| *other == thread);
        left.map(|(_, jobs)| std::mem::take(jobs)).unwrap_or_default()
    }
}
