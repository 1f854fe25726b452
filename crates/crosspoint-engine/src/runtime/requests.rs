//! How requests are answered, and what callers and operators can look at: find, list.

use std::sync::Arc;

use crosspoint_contracts::request::{Door, Key, NewJob};
use crosspoint_contracts::time::Time;

use super::engine::Engine;
use super::inbox::Answer;
use super::published::Watch;
use super::same_request::Likeness;
use crate::core::{Command, Rejected, Reply, Submission};
use crate::event::Violation;
use crate::id::{Ids, JobId, Seq};
use crate::job::{Job, Origin, Request};
use crate::keys::{Hashes, Name, Other};
use crate::machine::{self, Event, Refused};
use crate::policy::Policy;
use crate::store::{Fault, Filter, Found, Page, Readers};

/// What became of a request.
pub enum Submitted {
    /// The request is a new job.
    New(Watch),
    /// The request is a job that existed already.
    Repeat(Watch),
}

/// Why a request did not become a job.
#[derive(Debug)]
pub enum Unaccepted {
    /// The key belongs to this job, which has other work or input.
    Conflict(Arc<Job>),
    /// The request has two names, which are those of two jobs.
    TwoJobs,
    /// The request cannot be accepted.
    Rejected(Rejected),
    /// Too many requests are waiting.
    Overloaded,
    /// The orchestrator is about to end, and has not taken the request.
    Closed,
    /// The orchestrator ended before it could say whether the request was accepted.
    Lost,
    /// The request was tried, and is not known to be written.
    Fault(Arc<Fault>),
    /// Nothing can be written or read at present, and nothing was tried.
    NotTried(Arc<Fault>),
}

/// Why a request to look at or change something was denied.
#[derive(Debug)]
pub enum Denied {
    /// There is no such job or agent.
    NotFound,
    /// The job's state does not allow it.
    Refused(Refused),
    /// The job has not ended.
    NotEnded(Arc<Job>),
    /// The orchestrator is about to end.
    Closed,
    /// The orchestrator ended before the result was known.
    Lost,
    /// The change was tried, and is not known to be written.
    Fault(Arc<Fault>),
    /// Nothing can be written or read at present, and nothing was tried.
    NotTried(Arc<Fault>),
}

/// A fault while reading has changed nothing.
impl From<Fault> for Denied {
    fn from(fault: Fault) -> Denied {
        Denied::NotTried(Arc::new(fault))
    }
}

impl Engine {
    /// Whether a job has the key of this request. Then the request is no new work, whatever it holds now (ALL-1).
    pub async fn is_known(&self, new: NewJob) -> Result<bool, Unaccepted> {
        let submission = Arc::new(self.submission(new, None));
        for hash in [submission.hashes.key, submission.hashes.alias].into_iter().flatten() {
            let mut others = Vec::new();
            loop {
                let found = self.inbox().put(Command::Find(hash, others.clone())).map_err(|_| Unaccepted::Closed)?;
                let Answer::Committed { reply: Reply::Known(seq), .. } = found.await.map_err(|_| Unaccepted::Lost)?
                else {
                    break;
                };
                let compared = self.compare(&submission, seq).await;
                match compared.map_err(|fault| Unaccepted::NotTried(Arc::new(fault)))? {
                    Likeness::Same(..) | Likeness::OtherRequest(_) => return Ok(true),
                    Likeness::OtherKey(other) => others.push(other),
                }
            }
        }
        Ok(false)
    }

    pub(super) fn submission(&self, new: NewJob, origin: Option<Origin>) -> Submission {
        let request_id = new.request_id.unwrap_or_default();
        let nameless = request_id.is_empty();
        let key = if nameless && new.key == Key::RequestId { Key::None } else { new.key };
        let hash = |key: &Key| self.readers().salt().hash(&new.caller, new.door, &request_id, key);
        // Where ids are unique, callers ask by them, whatever header came with the request.
        let by_id = new.door.has_unique_ids() && !nameless && matches!(key, Key::Other(_));
        let alias = if by_id { hash(&Key::RequestId) } else { None };
        let hashes = Hashes { key: hash(&key), alias };
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let request = Request {
            // The core gives it its id.
            id: JobId::new(Seq(0), Time::default(), 0),
            origin,
            door: new.door,
            caller: new.caller,
            request_id,
            key,
            work: new.work,
            pinned: new.agent,
            addressed: new.addressed,
            priority: new.priority,
            limits: new.limits,
            accepted_at: Time::default(),
            trace: new.trace,
            echo: new.echo,
            notify: new.notify,
            input: offset(new.input.start)..offset(new.input.end),
        };
        Submission { request, nameless, hashes, others: Vec::new(), repeats: None, document: new.document, step: None }
    }

    /// Finds the job that a caller knows by this id of its own, to look at or to wait for.
    pub async fn find(&self, door: Door, caller: &str, request_id: &str) -> Result<Option<Watch>, Denied> {
        let Some(hash) = self.readers().salt().hash(caller, door, request_id, &Key::RequestId) else { return Ok(None) };
        let name = Name { door: Some(door), text: request_id.into() };
        let is_theirs = |request: &Request| *request.caller == *caller;
        let wanted = |request: &Request| is_theirs(request) && request.own_id() == name;
        let mut others = Vec::new();
        loop {
            let found = self.inbox().put(Command::Find(hash, others.clone())).map_err(|_| Denied::Closed)?;
            let seq = match found.await {
                Ok(Answer::Committed { reply: Reply::Known(seq), .. }) => seq,
                Ok(Answer::Committed { .. }) => return Ok(None),
                Ok(Answer::Failed(fault) | Answer::NotTried(fault)) => return Err(Denied::NotTried(fault)),
                Err(_) => return Err(Denied::Closed),
            };
            let known = self.published().watch_at(seq).filter(|watch| wanted(&watch.job().request));
            if known.is_some() {
                return Ok(known);
            }
            let read = move |readers: &Readers| Ok((readers.job_at(seq)?, readers.further_names(seq)?));
            let (job, further) = self.read(read).await?;
            let had = further.len();
            if let Some(job) = job
                && (wanted(&job.request) || is_theirs(&job.request) && further.contains(&name))
            {
                return Ok(self.watch(job).await?);
            }
            // Two different keys have the same hash.
            others.push(Other { seq, had });
        }
    }

    /// Finds the youngest job that has not ended and that is wanted. All of them are looked at.
    pub fn find_live(&self, wanted: impl FnMut(&Job) -> bool) -> Option<Watch> {
        let found = self.published().live(None, wanted, 1);
        found.first().and_then(|job| self.published().watch(job.id()))
    }

    /// Returns what reads the ids of jobs.
    pub fn ids(&self) -> &Ids {
        self.readers().ids()
    }

    /// Reads the id of a job; `None` if the text is no UUID. Whether there is such a job is not known.
    pub fn job_id(&self, text: &str) -> Option<JobId> {
        self.ids().parse(text)
    }

    /// Returns where a list goes on behind the job with this id; `None` if it is not the id of a job of this caller. A
    /// job that was removed is known by the proof in its id, which ids of earlier versions lack. Who sees all jobs
    /// learns nothing from where a list goes on.
    pub async fn place(&self, id: JobId, caller: Option<&str>) -> Result<Option<Seq>, Fault> {
        let Some(caller) = caller else { return Ok(Some(id.seq())) };
        let is_theirs = match self.ids().is_of(id, caller) {
            Some(is_theirs) => is_theirs,
            None => {
                let job = self.read(move |readers| readers.job(id)).await?;
                job.is_some_and(|job| *caller == *job.request.caller)
            }
        };
        Ok(is_theirs.then_some(id.seq()))
    }

    /// Whether this id may be that of a job of this caller. It is known without a look at the store, unless the id is
    /// of an earlier version.
    pub fn may_be_of(&self, id: JobId, caller: &str) -> bool {
        self.ids().is_of(id, caller).unwrap_or(true)
    }

    /// Returns a job, to look at or to wait for.
    pub async fn job(&self, id: JobId) -> Result<Option<Watch>, Fault> {
        if let Some(watch) = self.published().watch(id) {
            return Ok(Some(watch));
        }
        match self.read(move |readers| readers.job(id)).await? {
            Some(job) => self.watch(job).await,
            None => Ok(None),
        }
    }

    /// Returns a watch of a job that was read from the store.
    ///
    /// A job is published just after it is on disk, and removed from the published state just after its outcome is. A
    /// job that had no outcome when it was read and is not published is about to be published, or has ended since:
    /// reading it again tells which. `None` says that the job is gone.
    pub(super) async fn watch(&self, mut job: Job) -> Result<Option<Watch>, Fault> {
        loop {
            let id = job.id();
            if let Some(watch) = self.published().watch(id) {
                return Ok(Some(watch));
            }
            if job.outcome().is_some() {
                return Ok(Some(Watch::at_rest(Arc::new(job))));
            }
            match self.read(move |readers| readers.job(id)).await? {
                Some(now) => job = now,
                // The job has ended, and was removed.
                None => return Ok(None),
            }
        }
    }

    /// Lists jobs, the youngest first. A page may hold fewer jobs than were asked for and still say where to go on.
    pub async fn list(&self, filter: Filter) -> Result<Page, Fault> {
        if let Some(phase) = filter.phase
            && !phase.is_end()
        {
            return Ok(self.list_live(&filter));
        }
        let mut page = self.read(move |readers| readers.list(&filter)).await?;
        for job in &mut page.jobs {
            // For jobs that have not ended, the published state knows more than the disk.
            if job.outcome().is_none()
                && let Some(watch) = self.published().watch(job.id())
            {
                *job = (*watch.job()).clone();
            }
        }
        Ok(page)
    }

    /// Lists jobs that have not ended. All of them are published, so a million others need not be searched.
    fn list_live(&self, filter: &Filter) -> Page {
        let wanted = |job: &Job| {
            filter.phase.is_none_or(|phase| job.phase() == phase)
                && filter.work.as_ref().is_none_or(|work| *job.request.work == **work)
                && filter.agent.as_ref().is_none_or(|agent| job.agent_or_pinned() == Some(agent))
                && filter.door.is_none_or(|door| job.request.door == door)
                && filter.caller.as_ref().is_none_or(|caller| job.request.caller == *caller)
        };
        let jobs: Vec<Job> =
            self.published().live(filter.before, wanted, filter.limit).iter().map(|job| (**job).clone()).collect();
        let next = if jobs.len() == filter.limit { jobs.last().map(Job::id) } else { None };
        Page { jobs, next, looked_at: 0 }
    }

    /// Returns the rules that were broken about a job.
    pub async fn violations(&self, id: JobId) -> Result<Vec<Found>, Fault> {
        if !self.violated().may_have(id.seq()) {
            return Ok(Vec::new());
        }
        self.read(move |readers| readers.violations(id.seq())).await
    }

    /// Handles an event that came for a job that has ended. The machine says whether it breaks a rule, which is then
    /// recorded.
    pub(super) async fn record_late(&self, id: JobId, event: Event) {
        let Ok(Some(job)) = self.read(move |readers| readers.job(id)).await else { return };
        let Ok(step) = machine::step(&job, event, Time::default(), &Policy::DEFAULT) else { return };
        if let Some(violation) = step.violation {
            self.record(id, violation).await;
        }
    }

    /// Records a broken rule without waiting for it, and without learning whether it was written.
    pub(super) fn note(&self, id: JobId, violation: Violation) {
        let _ = self.inbox().put(Command::Violation(id.seq(), violation));
    }

    /// Records that a rule about a job was broken. It is on disk when this returns, if the store can be written.
    pub async fn record(&self, id: JobId, violation: Violation) {
        if let Ok(answer) = self.inbox().put(Command::Violation(id.seq(), violation)) {
            let _ = answer.await;
        }
    }
}
