//! The side behind the doors: an agent's own jobs, each run by a handler.
//!
//! A request that was seen before gets the job that it is about: the one under way, or the one that has ended (MSG-8).
//! What has ended is in memory for a while, and in the store of answers for longer.

mod jobs;
mod name;
mod taking;
mod working;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::Repeat;
use crosspoint_contracts::request::{Door, NewJob};
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::backend::{Agent, Backend, Denied, Followed, Submitted, Unaccepted, Whole};
use crosspoint_exchange::refusal::Refusal;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use self::jobs::{FURTHER_NAMES_MAX, Jobs};
pub(crate) use self::name::Name;
use self::taking::{Interrupted, Taken};
use crate::answers::{Answers, Kept};
use crate::handler::Boxed;
use crate::places::Places;
use crate::questions::NotTaken;
use crate::record::{Asked, Job, Phase, Record};
use crate::{Context, doing};

/// Most names that a request has: its key and its id.
const OWN_NAMES_MAX: usize = 2;

/// An agent's jobs; cloning shares them.
#[derive(Clone)]
pub(crate) struct OwnJobs(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    agent_type: Option<Arc<str>>,
    works: BTreeMap<Arc<str>, Work>,
    places: Places,
    /// How long a handler that is told to stop may go on.
    grace: Duration,
    jobs: Mutex<Jobs>,
    answers: Option<Answers>,
    /// Told whenever a job has ended.
    ended: Notify,
    /// Whether the agent stops, and jobs with it.
    is_stopped: AtomicBool,
}

/// How one kind of work is done.
pub(crate) struct Work {
    pub(crate) handler: Boxed,
    /// Whether work that was interrupted by the end of the process may not be begun again.
    pub(crate) at_most_once: bool,
}

impl OwnJobs {
    pub(crate) fn new(
        (name, agent_type): (Arc<str>, Option<Arc<str>>),
        works: BTreeMap<Arc<str>, Work>,
        (places, grace): (Places, Duration),
        answers: Option<Answers>,
    ) -> OwnJobs {
        let (jobs, ended, is_stopped) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        OwnJobs(Arc::new(Shared { name, agent_type, works, places, grace, jobs, answers, ended, is_stopped }))
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses new work from now on. A request that was seen before gets its job all the same: told that nothing was
    /// done, its caller would have the work done elsewhere a second time (MSG-8).
    pub(crate) fn refuse_new(&self) {
        self.jobs().close();
    }

    /// Whether no job is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs().are_ended()
    }

    /// Waits until no job is under way.
    pub(crate) async fn idle(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.jobs().are_ended() {
                return;
            }
            ended.await;
        }
    }

    /// Gives the store of answers back, once nothing more is to be kept.
    pub(crate) async fn close(&self) {
        if let Some(answers) = &self.0.answers {
            answers.close().await;
        }
    }

    /// Stops all jobs that are under way, and waits until they have ended. They can be asked for again: no caller
    /// cancelled them.
    pub(crate) async fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        let live: Vec<Job> = self.jobs().by_id.values().cloned().collect();
        live.iter().for_each(|job| job.stop().cancel());
        let _ = tokio::time::timeout(self.0.grace, self.idle()).await;
    }

    /// Notes that the outcome of a job was told to the orchestrator that is owed it.
    pub(crate) fn told(&self, job: &Job) {
        let asked = &job.now().asked;
        if let Some(answers) = self.0.answers.as_ref().filter(|_| asked.owed_to.is_some()) {
            answers.told(asked.id);
        }
    }

    /// Takes the jobs whose outcomes this orchestrator was not told before the agent was started.
    pub(crate) fn take_owed(&self, to: &str) -> Vec<Uuid> {
        self.0.answers.as_ref().map(|answers| answers.take_owed(to)).unwrap_or_default()
    }

    /// Returns a job that the store has the answer of.
    pub(crate) async fn stored(&self, id: Uuid) -> Option<Job> {
        let kept = self.read(&Name::of_job(id)).await.ok()?;
        kept.asked().map(|asked| self.remembered(kept, asked))
    }

    fn record(&self, asked: Arc<Asked>, phase: Phase) -> Record {
        let now = crate::clock::now();
        Record {
            asked,
            agent: self.0.name.clone(),
            agent_type: self.0.agent_type.clone(),
            phase,
            progress: None,
            progress_at: now,
            events: 0,
            answers: 0,
            started_at: None,
            updated_at: now,
        }
    }

    /// Returns what the store has of a job.
    async fn read(&self, name: &Name) -> Result<Kept, Refusal> {
        let kept = match &self.0.answers {
            Some(answers) => answers.read(name).await,
            None => None,
        };
        // Whether the work was done cannot be told, so it is not done again.
        kept.ok_or_else(|| {
            let refusal = Refusal::unavailable("the answer to this request cannot be read again", "");
            refusal.with_repeat(Repeat::Unknown, "look at the agent's log: whether the work was done cannot be told")
        })
    }

    /// Returns the ended job that the store has an answer of.
    fn remembered(&self, kept: Kept, asked: Asked) -> Job {
        let (at, started_at) = (kept.at, kept.started_at());
        let phase = Phase::Ended { at, outcome: Arc::new(kept.outcome), is_kept: true };
        let record = self.record(Arc::new(asked), phase);
        Job::new(Record { started_at, progress_at: at, updated_at: at, ..record })
    }

    /// Stops a job, and notes it on disk before that.
    async fn end_cancelled(&self, job: &Job) -> Result<(), Denied> {
        let (_guard, told) = job.ending().await;
        let now = job.now();
        if told.is_some() {
            return Err(Denied::Ended(now.snapshot().state.contract_state()));
        }
        let (at, outcome) = (crate::clock::now(), Arc::new(doing::cancelled()));
        if let Some(answers) = &self.0.answers {
            answers.keep(&now, at, &outcome).await;
        }
        job.change(|record| record.phase = Phase::Ended { at, outcome, is_kept: true });
        job.stop().cancel();
        Ok(())
    }
}

impl Backend for OwnJobs {
    type Job = Job;
    type Room = ();

    async fn submit(&self, _: &Caller, new: NewJob) -> Result<Submitted<Job>, Unaccepted<Job>> {
        // All jobs share the name of their work.
        let Some((work, _)) = self.0.works.get_key_value(&new.work) else { return Err(Unaccepted::UnknownWork) };
        let new = NewJob { work: work.clone(), ..new };
        if new.agent.as_ref().is_some_and(|agent| *agent != self.0.name) {
            return Err(Unaccepted::UnknownAgent);
        }
        let is_other = |(own, wanted): (&Arc<str>, &Arc<str>)| own != wanted;
        if self.0.agent_type.as_ref().zip(new.addressed.as_ref()).is_some_and(is_other) {
            return Err(Unaccepted::WrongType);
        }
        let priority = new.priority;
        let mut asked = Arc::new(Asked::new(new, Instant::now().into_std()));
        let mut interrupted = None;
        let job = loop {
            match self.take(&asked, interrupted.as_ref())? {
                Taken::Known(job, free) => {
                    let claimed = self.claim(&Name::of_job(job.now().asked.id), &free).await;
                    return match claimed {
                        Ok(()) => Ok(Submitted::Repeat(job)),
                        Err(why) => {
                            self.jobs().unclaim(&job, &free);
                            Err(why)
                        }
                    };
                }
                Taken::Stored(name, place, is_one, free) => {
                    let mut kept = self.read(&name).await.map_err(Unaccepted::Refused)?;
                    let is_same = kept.likeness == *asked.likeness();
                    if is_same && !is_one {
                        return Err(Unaccepted::TwoJobs);
                    }
                    if is_same && let Some(answered) = kept.answered.take() {
                        interrupted = Some(Interrupted { place, answered });
                        asked = Arc::new(asked.also_named(&kept.names));
                        continue;
                    }
                    if is_same && !free.is_empty() {
                        if kept.names.len() + free.len() > FURTHER_NAMES_MAX + OWN_NAMES_MAX {
                            return Err(Unaccepted::TooManyNames);
                        }
                        // One of them may have become the name of another job meanwhile.
                        if !self.reserve_stored(&name, &free) {
                            continue;
                        }
                        self.claim(&name, &free).await?;
                    }
                    let before = kept.asked_again(&asked);
                    let job = self.remembered(kept, before);
                    return if is_same { Ok(Submitted::Repeat(job)) } else { Err(Unaccepted::Conflict(job)) };
                }
                Taken::New(job) => break job,
            }
        };
        // From here on nothing is waited for: a caller that leaves must not leave a job that never ends.
        let place = self.0.places.place(priority);
        let context = Context::new(job.clone(), asked.clone(), self.0.agent_type.clone(), place);
        let mut work = Box::pin(self.clone().work(job.clone(), asked, context));
        // Most work is done at once. What is not goes on in a task of its own, whatever becomes of its caller.
        if poll_fn(|poll| Poll::Ready(work.as_mut().poll(poll).is_pending())).await {
            tokio::spawn(work);
        }
        Ok(Submitted::New(job))
    }

    async fn find(&self, door: Door, caller: &Caller, request_id: &str) -> Result<Option<Job>, Refusal> {
        let by_id = request_id.parse::<Uuid>().ok();
        let names = [Some(Name::by_id(&Arc::from(caller.name()), door, request_id)), by_id.map(Name::of_job)];
        let stored = {
            let jobs = self.jobs();
            let named = names[0].as_ref().and_then(|name| jobs.named.get(name));
            if let Some(job) = named.or_else(|| jobs.by_id.get(&by_id?)) {
                return Ok(Some(job.clone()));
            }
            // What a torn line is about is not known until it is asked for again.
            let is_stored =
                |name: &&Name| self.0.answers.as_ref().is_some_and(|store| store.untorn_place(name).is_some());
            names.iter().flatten().find(is_stored)
        };
        let Some(name) = stored else { return Ok(None) };
        let kept = self.read(name).await?;
        // Work that was interrupted is not known until it is asked for again, and then begins again.
        if kept.answered.is_some() {
            return Ok(None);
        }
        Ok(kept.asked().map(|asked| self.remembered(kept, asked)))
    }

    fn find_live(
        &self,
        door: Door,
        caller: &Caller,
        is_meant: impl Fn(&crosspoint_exchange::snapshot::Snapshot<'_>) -> bool,
    ) -> Option<Job> {
        let jobs = self.jobs();
        let is_theirs = |now: &Arc<Record>| now.asked.door == door && *now.asked.caller == *caller.name();
        let is_wanted = |now: &Arc<Record>| is_theirs(now) && is_meant(&Job::snapshot(now));
        jobs.by_id.values().find(|job| is_wanted(&job.now())).cloned()
    }

    async fn answer(
        &self,
        _: &Caller,
        job: &Job,
        answer: Body,
        came: std::time::Instant,
    ) -> Result<Arc<Record>, Denied> {
        let taken = job.answer(answer, None, came).await;
        let state = Job::snapshot(&job.now()).state.contract_state();
        taken.map_err(|why| match why {
            NotTaken::Ended => Denied::Ended(state),
            NotTaken::NotAsked => Denied::NotWaiting(state),
            NotTaken::NotShown | NotTaken::Other => Denied::NotShown,
        })
    }

    async fn cancel(&self, _: &Caller, job: &Job) -> Result<(), Denied> {
        let (backend, job) = (self.clone(), job.clone());
        // It is done whole, whatever becomes of the caller: what is on disk is what becomes of the job.
        let cancelled = tokio::spawn(async move { backend.end_cancelled(&job).await });
        cancelled.await.unwrap_or_else(|_| Err(Denied::Refused(Refusal::internal())))
    }

    async fn document(&self, job: &Job) -> Option<Block> {
        // The store has no documents.
        Some(job.now().asked.document.clone()).filter(|document| !document.0.is_empty())
    }

    async fn with_text(&self, now: Arc<Record>) -> Result<Whole<OwnJobs>, Refusal> {
        now.is_shown();
        Ok(Whole { now, room: None })
    }

    fn agents(&self) -> Vec<Agent> {
        let works = self.0.works.keys().cloned().collect();
        vec![Agent { name: self.0.name.clone(), works, agent_type: self.0.agent_type.clone() }]
    }

    fn agent_type(&self, _: &str) -> Option<Arc<str>> {
        self.0.agent_type.clone()
    }
}
