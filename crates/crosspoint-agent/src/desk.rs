//! The side behind the doors: an agent's own jobs, each run by a handler.
//!
//! A request that was seen before gets the job that it is about: the one under way, or the one that has ended (MSG-8).
//! What has ended is in memory for a while, and in the store of answers for longer.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::request::{Door, Key, NewJob};
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::backend::{Agent, Backend, Denied, Followed, Submitted, Unaccepted, Whole};
use crosspoint_exchange::refusal::{Limit, Refusal};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::answers::{Answers, Place};
use crate::handler::Boxed;
use crate::places::Places;
use crate::record::{Asked, Job, Phase, Record};
use crate::{Context, doing};

/// Most jobs that have not ended.
const LIVE_MAX: usize = 10_000;

/// Most jobs that have ended and are in memory, and most bytes of them: those that repeat a request soon are answered
/// without a look at the disk.
const ENDED_MAX: usize = 1_000;
const ENDED_BYTES_MAX: usize = 64 << 20;

/// An agent's jobs; cloning shares them.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Shared>);

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

/// What makes two requests the same, for one caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    caller: Arc<str>,
    /// The door whose ids are meant; `None` for a key that all doors share.
    door: Option<&'static str>,
    key: Box<str>,
}

#[derive(Default)]
struct Jobs {
    named: BTreeMap<Name, Job>,
    by_id: BTreeMap<Uuid, Job>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<Ended>,
    ended_bytes: usize,
    live: usize,
}

struct Ended {
    id: Uuid,
    names: Vec<Name>,
    bytes: usize,
}

impl Desk {
    pub(crate) fn new(
        (name, agent_type): (Arc<str>, Option<Arc<str>>),
        works: BTreeMap<Arc<str>, Work>,
        (places, grace): (Places, Duration),
        answers: Option<Answers>,
    ) -> Desk {
        let (jobs, ended, is_stopped) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        Desk(Arc::new(Shared { name, agent_type, works, places, grace, jobs, answers, ended, is_stopped }))
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no job is under way.
    pub(crate) async fn idle(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.jobs().live == 0 {
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

    /// Returns the job of a request that was seen before and is in memory, or takes a place for a new one.
    fn take(&self, asked: &Arc<Asked>) -> Result<Taken, Unaccepted<Job>> {
        let names = &asked.names;
        let mut jobs = self.jobs();
        let known = names.iter().find_map(|name| jobs.named.get(name));
        // A job that may be done again is there only for those who ask how it ended.
        if let Some(job) = known.filter(|job| !job.is_done_again()).cloned() {
            let is_same = job.now().asked.likeness == asked.likeness;
            return if is_same { Ok(Taken::Known(job)) } else { Err(Unaccepted::Conflict(job)) };
        }
        // An answer is stored before its job leaves the memory, so it is in one of the two.
        if let Some(place) =
            self.0.answers.as_ref().and_then(|answers| names.iter().find_map(|name| answers.place(name)))
        {
            return Ok(Taken::Stored(place));
        }
        if jobs.live >= LIVE_MAX {
            return Err(Unaccepted::Refused(Refusal::full(Limit::Jobs, LIVE_MAX)));
        }
        let (job, answers) = Job::new(self.record(asked.clone(), Phase::Queued));
        jobs.live += 1;
        jobs.by_id.insert(asked.id, job.clone());
        for name in names {
            jobs.named.insert(name.clone(), job.clone());
        }
        Ok(Taken::New(job, answers))
    }

    /// Returns a job whose answer only the store has.
    async fn remembered(&self, place: Place, asked: Arc<Asked>) -> Result<Submitted<Job>, Unaccepted<Job>> {
        let kept = match &self.0.answers {
            Some(answers) => answers.read(place).await,
            None => None,
        };
        // Whether the work was done cannot be told, so it is not done again.
        let unread =
            || Refusal::unavailable("the answer to this request cannot be read again", "look at the agent's log");
        let kept = kept.ok_or_else(|| Unaccepted::Refused(unread()))?;
        let (ended, before) = kept.into_job(&self.record(asked.clone(), Phase::Queued));
        if before == asked.likeness { Ok(Submitted::Repeat(ended)) } else { Err(Unaccepted::Conflict(ended)) }
    }

    /// Gives a job its outcome, unless it has one.
    fn end(&self, job: &Job, outcome: Arc<Outcome>) {
        job.change(|record| record.phase = Phase::Ended { at: crate::clock::now(), outcome });
        let now = job.now();
        let bytes = now.asked.document.0.len() + Job::snapshot(&now).outcome_bytes();
        let ended = Ended { id: now.asked.id, names: now.asked.names.clone(), bytes };
        let mut jobs = self.jobs();
        jobs.live -= 1;
        jobs.ended_bytes += bytes;
        jobs.ended.push_back(ended);
        while (jobs.ended.len() > ENDED_MAX || jobs.ended_bytes > ENDED_BYTES_MAX)
            && let Some(oldest) = jobs.ended.pop_front()
        {
            jobs.ended_bytes -= oldest.bytes;
            jobs.forget(&oldest);
        }
        drop(jobs);
        self.0.ended.notify_waiters();
    }

    /// Does the work of a job, when there is room for it.
    async fn work(self, job: Job, asked: Arc<Asked>, context: Context) {
        let has_place = tokio::select! {
            () = context.place().take() => true,
            () = job.stop().cancelled() => false,
        };
        let outcome = match self.0.works.get(&asked.work).filter(|_| has_place) {
            Some(work) => {
                if work.at_most_once
                    && let Some(answers) = &self.0.answers
                {
                    answers.begin(&asked).await;
                }
                job.change(|record| {
                    record.phase = Phase::Running;
                    record.started_at = Some(crate::clock::now());
                });
                Arc::new(doing::run(&work.handler, self.0.grace, &job, &asked, &context).await)
            }
            None => doing::cancelled(),
        };
        // A handler may have left a copy of its context with another task.
        context.place().release();
        let (_guard, told) = job.ending().await;
        // Work that its caller cancelled stays cancelled: that is what the caller was told.
        if let Some(told) = told {
            return self.end(&job, told);
        }
        // Work that could not be done because the agent stops is interrupted, as by a crash.
        if self.0.is_stopped.load(Ordering::Relaxed) && outcome.failure().is_some() {
            return self.end(&job, doing::interrupted());
        }
        let is_kept = doing::is_kept(&outcome);
        if let Some(answers) = &self.0.answers {
            match is_kept {
                true => answers.keep(&asked, &outcome).await,
                false => answers.undo(&asked).await,
            }
        }
        self.end(&job, outcome);
    }
}

impl Jobs {
    fn forget(&mut self, ended: &Ended) {
        self.by_id.remove(&ended.id);
        for name in &ended.names {
            // The same request may have been done again under this name.
            if self.named.get(name).is_some_and(|job| job.now().asked.id == ended.id) {
                self.named.remove(name);
            }
        }
    }
}

enum Taken {
    Known(Job),
    /// Only the store has the answer.
    Stored(Place),
    New(Job, tokio::sync::mpsc::UnboundedReceiver<Body>),
}

impl Name {
    /// Returns the names of a request.
    pub(crate) fn of(new: &NewJob) -> Vec<Name> {
        let id = new.request_id.as_deref().filter(|id| !id.is_empty());
        let by_id = |id: &str| Name::by_id(&new.caller, new.door, id);
        let by_key = |key: &str| Name { caller: new.caller.clone(), door: None, key: key.into() };
        match (&new.key, id) {
            (Key::RequestId, Some(id)) => vec![by_id(id)],
            // Where ids are unique, callers ask by them, whatever header came with the request.
            (Key::Other(key), Some(id)) if new.door.has_unique_ids() => vec![by_key(key), by_id(id)],
            (Key::Other(key), _) => vec![by_key(key)],
            (Key::None | Key::RequestId, _) => Vec::new(),
        }
    }

    fn by_id(caller: &Arc<str>, door: Door, id: &str) -> Name {
        Name { caller: caller.clone(), door: Some(door.name()), key: id.into() }
    }

    /// Returns the name as one text, for the store of answers.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}\n{}", self.caller, self.door.unwrap_or_default(), self.key)
    }
}

impl Backend for Desk {
    type Job = Job;
    type Room = ();

    async fn submit(&self, _: &Caller, new: NewJob) -> Result<Submitted<Job>, Unaccepted<Job>> {
        if !self.0.works.contains_key(&new.work) {
            return Err(Unaccepted::UnknownWork);
        }
        if new.agent.as_ref().is_some_and(|agent| *agent != self.0.name) {
            return Err(Unaccepted::UnknownAgent);
        }
        let is_other = |(own, wanted): (&Arc<str>, &Arc<str>)| own != wanted;
        if self.0.agent_type.as_ref().zip(new.addressed.as_ref()).is_some_and(is_other) {
            return Err(Unaccepted::WrongType);
        }
        let asked = Arc::new(Asked::new(new, Instant::now()));
        let (job, answers) = match self.take(&asked)? {
            Taken::Known(job) => return Ok(Submitted::Repeat(job)),
            Taken::Stored(place) => return self.remembered(place, asked).await,
            Taken::New(job, answers) => (job, answers),
        };
        // From here on nothing is waited for: a caller that leaves must not leave a job that never ends.
        let context = Context::new(job.clone(), answers, self.0.places.place());
        let mut work = Box::pin(self.clone().work(job.clone(), asked, context));
        // Most work is done at once. What is not goes on in a task of its own, whatever becomes of its caller.
        if poll_fn(|poll| Poll::Ready(work.as_mut().poll(poll).is_pending())).await {
            tokio::spawn(work);
        }
        Ok(Submitted::New(job))
    }

    async fn find(&self, door: Door, caller: &Caller, request_id: &str) -> Result<Option<Job>, Refusal> {
        let name = Name::by_id(&Arc::from(caller.name()), door, request_id);
        let jobs = self.jobs();
        let named = jobs.named.get(&name).cloned();
        Ok(named.or_else(|| jobs.by_id.get(&request_id.parse::<Uuid>().ok()?).cloned()))
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

    async fn answer(&self, _: &Caller, job: &Job, answer: Body) -> Result<(), Denied> {
        let now = job.now();
        let state = Job::snapshot(&now).state.contract_state();
        match (&now.phase, job.answer(answer)) {
            (_, true) => Ok(()),
            (Phase::Ended { .. }, false) => Err(Denied::Ended(state)),
            (Phase::Queued | Phase::Running | Phase::Waiting { .. }, false) => Err(Denied::NotWaiting(state)),
        }
    }

    async fn cancel(&self, _: &Caller, job: &Job) -> Result<(), Denied> {
        let (_guard, told) = job.ending().await;
        let now = job.now();
        if told.is_some() {
            return Err(Denied::Ended(now.snapshot().state.contract_state()));
        }
        let outcome = doing::cancelled();
        if let Some(answers) = &self.0.answers {
            answers.keep(&now.asked, &outcome).await;
        }
        job.change(|record| record.phase = Phase::Ended { at: crate::clock::now(), outcome });
        job.stop().cancel();
        Ok(())
    }

    async fn document(&self, job: &Job) -> Option<Block> {
        Some(job.now().asked.document.clone())
    }

    async fn with_text(&self, now: Arc<Record>) -> Result<Whole<Desk>, Refusal> {
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
