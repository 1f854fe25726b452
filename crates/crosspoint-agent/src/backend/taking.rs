//! Which job a request is: one that has one of its names, or a new one.
//!
//! A request may have two names, its `Idempotency-Key` and the id of its task. A repeat that is found by one of them
//! makes the other one a name of the same job, in memory at once, and in the store before the repeat is answered
//! (ALL-1).

use std::sync::Arc;

use crosspoint_contracts::failure::Repeat;
use crosspoint_exchange::backend::{Followed, Unaccepted};
use crosspoint_exchange::refusal::Refusal;

use super::jobs::{Jobs, TooManyNames};
use super::{Name, OwnJobs};
use crate::answers::Place;
use crate::questions::{Answered, Questions};
use crate::record::{Asked, Job, Phase};

/// What a name is that of.
pub(super) enum Known<'n> {
    Job(Job),
    /// Only the store has the answer, here.
    Stored(&'n Name, Place),
}

impl Known<'_> {
    /// Whether both are the same job.
    fn is(&self, other: &Known<'_>) -> bool {
        match (self, other) {
            (Known::Job(job), Known::Job(other)) => job.is(other),
            (Known::Stored(_, place), Known::Stored(_, other)) => place == other,
            (Known::Job(_), Known::Stored(..)) | (Known::Stored(..), Known::Job(_)) => false,
        }
    }
}

pub(super) enum Taken {
    /// The job has these names from now on; they are still to be kept.
    Known(Job, Vec<Name>),
    /// Only the store has the answer, under this name. Says whether all names of the request are those of one job, and
    /// which of them are free.
    Stored(Name, Place, bool, Vec<Name>),
    New(Job),
}

/// Work that was interrupted after people had answered its questions, and is begun again.
pub(super) struct Interrupted {
    pub(super) place: Place,
    pub(super) answered: Vec<Answered>,
}

impl OwnJobs {
    /// Returns the job of a request that was seen before, or takes a place for a new one.
    /// Work of `interrupted` is begun again: what the store has at its place is no answer.
    pub(super) fn take(&self, asked: &Arc<Asked>, interrupted: Option<&Interrupted>) -> Result<Taken, Unaccepted<Job>> {
        let mut jobs = self.jobs();
        let is_repeated = self.is_repeated(&asked.work);
        let is_answer = |known: &Known<'_>| match known {
            Known::Job(_) => true,
            Known::Stored(_, place) => interrupted.is_none_or(|interrupted| interrupted.place != *place),
        };
        let (mut known, mut free) = (Vec::new(), Vec::new());
        for name in &asked.names {
            match self.known(&jobs, name, is_repeated).filter(is_answer) {
                Some(found) => known.push(found),
                None => free.push(name.clone()),
            }
        }
        let mut known = known.into_iter();
        if let Some(first) = known.next() {
            // All its names must be those of one job (ALL-1).
            let is_one = known.all(|other| other.is(&first));
            return match first {
                Known::Job(job) if job.now().asked.likeness() != asked.likeness() => Err(Unaccepted::Conflict(job)),
                Known::Job(_) if !is_one => Err(Unaccepted::TwoJobs),
                Known::Job(job) => {
                    jobs.claim(&job, &free).map_err(|TooManyNames| Unaccepted::TooManyNames)?;
                    self.reserve(&Name::of_job(job.now().asked.id), &free);
                    Ok(Taken::Known(job, free))
                }
                Known::Stored(name, place) => Ok(Taken::Stored(name.clone(), place, is_one, free)),
            };
        }
        if let Some(refusal) = jobs.full(asked) {
            return Err(Unaccepted::Refused(refusal));
        }
        let questions = interrupted.map(|interrupted| Questions::after(interrupted.answered.clone()));
        // Work that is not begun again needs no answers again.
        let answers = self.0.answers.clone().filter(|_| is_repeated);
        if let (Some(answers), Some(_)) = (&answers, &questions) {
            asked.names.iter().for_each(|name| answers.reopen(name));
        }
        let record = self.record(asked.clone(), Phase::Queued);
        let job = Job::asking(record, questions.unwrap_or_default(), answers);
        jobs.add(asked, &job);
        Ok(Taken::New(job))
    }

    /// Returns what has this name. An answer is stored before its job leaves the memory, so it is in one of the two.
    fn known<'n>(&self, jobs: &Jobs, name: &'n Name, is_repeated: bool) -> Option<Known<'n>> {
        // A job that may be done again is there only for those who ask how it ended.
        let in_memory = jobs.named.get(name).filter(|job| !job.is_done_again()).cloned();
        let stored = || {
            let answers = self.0.answers.as_ref()?;
            let place = if is_repeated { answers.untorn_place(name) } else { answers.place(name) };
            Some(Known::Stored(name, place?))
        };
        in_memory.map(Known::Job).or_else(stored)
    }

    /// Whether work that was interrupted is begun again.
    fn is_repeated(&self, work: &str) -> bool {
        self.0.works.get(work).is_some_and(|work| !work.at_most_once)
    }

    fn reserve(&self, held: &Name, names: &[Name]) {
        if let Some(answers) = &self.0.answers {
            answers.reserve(held, names);
        }
    }

    /// Reserves further names of a request that only the store has. Returns whether they are still free.
    pub(super) fn reserve_stored(&self, held: &Name, names: &[Name]) -> bool {
        let jobs = self.jobs();
        let are_free = names.iter().all(|name| self.known(&jobs, name, false).is_none());
        if are_free {
            self.reserve(held, names);
        }
        are_free
    }

    /// Keeps names that were reserved: they are on disk before the repeat that came with them is answered.
    pub(super) async fn claim(&self, held: &Name, names: &[Name]) -> Result<(), Unaccepted<Job>> {
        let Some(answers) = self.0.answers.as_ref().filter(|_| !names.is_empty()) else { return Ok(()) };
        match answers.claim(held, names).await {
            true => Ok(()),
            false => {
                let refusal =
                    Refusal::unavailable("the agent cannot note on its disk that this request came again", "");
                Err(Unaccepted::Refused(refusal.with_repeat(Repeat::Safe, "send it again")))
            }
        }
    }
}
