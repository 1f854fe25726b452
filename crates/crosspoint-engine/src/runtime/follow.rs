//! Follows a job: its events in order, from any event on, to the outcome.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::engine::Engine;
use super::published::Watch;
use crate::event::{Entry, What};
use crate::id::{JobId, Seq};
use crate::job::Job;
use crate::store::Fault;

/// Most events that are read at a time.
const READ_MAX: usize = 64;

/// A reader of one job's events.
pub struct Follow {
    engine: Engine,
    watch: Watch,
    seq: Seq,
    /// The number of the last event that was returned.
    after: u32,
    /// The places of the next events.
    places: VecDeque<i64>,
    ready: VecDeque<Entry>,
    done: bool,
}

impl Engine {
    /// Follows the events of a job after number `after`; `None` if there is no such job.
    pub async fn follow(&self, id: JobId, after: u32) -> Result<Option<Follow>, Fault> {
        let Some(watch) = self.job(id).await? else { return Ok(None) };
        let engine = self.clone();
        let (places, ready) = (VecDeque::new(), VecDeque::new());
        Ok(Some(Follow { engine, watch, seq: id.seq(), after, places, ready, done: false }))
    }
}

impl Follow {
    /// Returns the next event; `None` after the outcome, or if there was no event until the given time.
    pub async fn next(&mut self, until: Instant) -> Result<Option<Entry>, Fault> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                self.after = entry.n;
                self.done = matches!(entry.what, What::Ended(_));
                return Ok(Some(entry));
            }
            if self.done {
                return Ok(None);
            }
            let job = self.watch.moved(self.after, until).await;
            if job.outcome().is_none() && job.events <= self.after {
                return Ok(None);
            }
            self.fill(&job).await?;
            if self.ready.is_empty() {
                // A caller that asks for events after the outcome has had the outcome.
                self.done = job.outcome().is_some();
                if !self.done {
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the job as it is now.
    pub fn job(&self) -> Arc<Job> {
        self.watch.job()
    }

    /// Whether the outcome was returned.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Finds the places of the events that have not been returned. Each page is a separate read, so that other readers
    /// have their turn in between.
    async fn find_places(&self) -> Result<VecDeque<i64>, Fault> {
        let (seq, after) = (self.seq, self.after);
        let (mut places, mut from) = (VecDeque::new(), None);
        loop {
            let page = self.engine.read(move |readers| readers.some_event_places(seq, after, from)).await?;
            page.places.into_iter().for_each(|place| places.push_front(place));
            from = page.rest;
            if from.is_none() {
                return Ok(places);
            }
        }
    }

    async fn fill(&mut self, job: &Arc<Job>) -> Result<(), Fault> {
        if self.after == 0 {
            let entry = Entry { n: 1, at: job.request.accepted_at, what: What::Accepted };
            self.ready.push_back(entry);
            return Ok(());
        }
        let (seq, after) = (self.seq, self.after);
        if self.places.is_empty() {
            self.places = self.find_places().await?;
        }
        let some: Vec<i64> = self.places.drain(..self.places.len().min(READ_MAX)).collect();
        let ended = job.outcome().is_some() && self.places.is_empty();
        let found = self
            .engine
            .read(move |readers| {
                let mut entries = readers.events_at(seq, &some)?;
                if ended {
                    // The places may have been found before the last events happened. Those are read next, and then the
                    // outcome.
                    let last = entries.last().map_or(after, |entry| entry.n);
                    // A caller that claims to have had the largest possible number has had the outcome too.
                    entries.extend(readers.ending(seq)?.filter(|entry| Some(entry.n) == last.checked_add(1)));
                }
                Ok(entries)
            })
            .await?;
        self.ready.extend(found);
        Ok(())
    }
}
