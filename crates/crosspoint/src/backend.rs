//! The engine, as the side behind the doors that does the work.
//!
//! The doors of contracts know [`Backend`] and snapshots of jobs; what these are in the engine is said here. The
//! native API and the door of the bridge, which shows jobs as that API does, use the engine itself.

mod refusal;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::Report;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::request::{Door, NewJob};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Rejected, Spec};
use crosspoint_engine::job::{self, Job};
use crosspoint_engine::runtime::{self, Ahead, Engine, TextRoom, Unread, Watch};
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::backend::{Agent, Backend, Denied, Followed, Submitted, Unaccepted, Whole};
use crosspoint_exchange::outgoing::Assignment;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::{Ended, Snapshot, State};
use crosspoint_exchange::trace::Trace;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::schemas::Schemas;
use crate::workflow;

pub(crate) use self::refusal::{denied, fault, reason, tried};

/// The engine behind the doors; cloning shares it.
#[derive(Clone)]
pub(crate) struct Orchestrator {
    pub(crate) engine: Engine,
    /// The schemas of works.
    pub(crate) schemas: Arc<Schemas>,
    /// What ends when the server stops.
    pub(crate) stopping: CancellationToken,
}

/// A job of the engine that can be followed.
#[derive(Clone)]
pub(crate) struct Tracked(pub(crate) Watch);

impl Backend for Orchestrator {
    type Job = Tracked;
    type Room = TextRoom;

    const JOBS_AT: Option<&'static str> = Some("/api/v1/jobs");
    const GOES_ON: bool = true;

    async fn submit(&self, caller: &Caller, new: NewJob) -> Result<Submitted<Tracked>, Unaccepted<Tracked>> {
        #[cfg(feature = "leaks")]
        crate::leak::document(&new.document.0);
        if *new.work == *workflow::WORK {
            return Err(Unaccepted::Refused(workflow::begun_elsewhere()));
        }
        self.expect_open(&new).await?;
        if let Some(report) = self.mismatch(&new).await? {
            return Err(Unaccepted::Mismatch(report));
        }
        match self.engine.acting(caller.on_record()).submit(new).await {
            Ok(submitted) => Ok(tracked(submitted)),
            Err(why) => Err(unaccepted(why)),
        }
    }

    async fn find(&self, door: Door, caller: &Caller, request_id: &str) -> Result<Option<Tracked>, Refusal> {
        let found = match self.engine.find(door, caller.name(), request_id).await {
            Ok(found) => found,
            Err(runtime::Denied::NotFound) => None,
            Err(why) => return Err(denied(&why, Refusal::no_such_job)),
        };
        // Work that was repeated, or came in at another door, is found by the job's own id.
        let found = match (found, self.engine.job_id(request_id)) {
            (None, Some(id)) if caller.name().is_empty() || self.engine.may_be_of(id, caller.name()) => {
                self.engine.job(id).await.map_err(|error| fault(&error))?
            }
            (found, _) => found,
        };
        // A caller that shows who it is sees its own work alone.
        let is_seen = |watch: &Watch| caller.name().is_empty() || *watch.job().request.caller == *caller.name();
        let found = found.filter(is_seen).map(Tracked);
        // Whatever is asked for, the answer shows the work.
        if let (Some(Tracked(watch)), Some(name)) = (&found, caller.on_record()) {
            let read = self.engine.read_by(name, watch.job().id(), door.name()).await;
            read.map_err(|why| denied(&why, Refusal::no_such_job))?;
        }
        Ok(found)
    }

    fn find_live(&self, door: Door, caller: &Caller, is_meant: impl Fn(&Snapshot<'_>) -> bool) -> Option<Tracked> {
        let is_theirs = |job: &Job| job.request.door == door && *job.request.caller == *caller.name();
        self.engine.find_live(|job| is_theirs(job) && is_meant(&snapshot(job))).map(Tracked)
    }

    async fn answer(&self, caller: &Caller, job: &Tracked, answer: Body, _: Instant) -> Result<Arc<Job>, Denied> {
        let acting = self.engine.acting(caller.on_record());
        acting.answer(job.0.job().id(), answer, None).await.map_err(|why| refusal::of_change(&why))
    }

    async fn cancel(&self, caller: &Caller, job: &Tracked) -> Result<(), Denied> {
        let acting = self.engine.acting(caller.on_record());
        acting.cancel(job.0.job().id()).await.map(drop).map_err(|why| refusal::of_change(&why))
    }

    async fn document(&self, job: &Tracked) -> Option<Block> {
        self.engine.document(job.0.job().seq()).await.ok().flatten()
    }

    async fn with_text(&self, now: Arc<Job>) -> Result<Whole<Orchestrator>, Refusal> {
        let (now, room) = with_text(&self.engine, now).await?;
        Ok(Whole { now, room })
    }

    fn agents(&self) -> Vec<Agent> {
        let agents = self.engine.agents();
        let agent = |spec: Spec| Agent { name: spec.name, works: spec.works, agent_type: spec.agent_type };
        agents.into_iter().map(|view| agent(view.spec)).collect()
    }

    fn stuck(&self, now: &Arc<Job>) -> Option<String> {
        // The question itself says that a person is asked.
        let is_asking = matches!(now.state, job::State::Waiting { .. });
        self.engine.stuck(now, ahead(now, Ahead::Left)).filter(|_| !is_asking).map(|stuck| stuck.reason)
    }

    fn agent_type(&self, agent: &str) -> Option<Arc<str>> {
        self.engine.agent(agent)?.spec.agent_type
    }
}

impl Orchestrator {
    /// Refuses new work while the server stops. A repeat is none: its work may be under way, and a caller that is told
    /// that nothing was done has it done elsewhere.
    pub(crate) async fn expect_open(&self, new: &NewJob) -> Result<(), Unaccepted<Tracked>> {
        if !self.stopping.is_cancelled() || self.engine.is_known(new.clone()).await.map_err(unaccepted)? {
            return Ok(());
        }
        Err(Unaccepted::Refused(Refusal::stopping()))
    }

    /// Returns how the input of a request fails to match the schema of its work (TASK-10). A request whose job exists
    /// is no new work: it gets its job, or learns that it differs, also where the schema has changed since (ALL-1).
    pub(crate) async fn mismatch(&self, new: &NewJob) -> Result<Option<Report>, Unaccepted<Tracked>> {
        let Some(report) = self.schemas.mistakes_in(new).await else { return Ok(None) };
        let known = self.engine.is_known(new.clone()).await.map_err(unaccepted)?;
        Ok(Some(report).filter(|_| !known))
    }
}

impl Followed for Tracked {
    type Now = Arc<Job>;

    fn now(&self) -> Arc<Job> {
        self.0.job()
    }

    fn snapshot(now: &Arc<Job>) -> Snapshot<'_> {
        snapshot(now)
    }

    async fn ended(&self, until: Instant) -> Arc<Job> {
        self.0.ended(until).await
    }

    async fn settled(&self, until: Instant) -> Arc<Job> {
        self.0.settled(until).await
    }

    async fn moved(&self, seen: &Arc<Job>, until: Instant) -> Arc<Job> {
        self.0.moved(seen.events, until).await
    }
}

/// Returns the job with the whole text of its outcome (ALL-12), and the room that the answer takes until it is sent.
pub(crate) async fn with_text(engine: &Engine, job: Arc<Job>) -> Result<(Arc<Job>, Option<TextRoom>), Refusal> {
    engine.with_text(job, output_href).await.map_err(|why| unread(&why))
}

/// Returns why output cannot be read, for callers.
fn unread(why: &Unread) -> Refusal {
    match why {
        Unread::Removed => Refusal::no_such_job(),
        Unread::Busy => Refusal::unavailable(
            "too many long answers are on their way to slow callers",
            "ask again; GET /api/v1/jobs/{id}/output has all that was printed, in any parts",
        ),
        Unread::Fault(error) => fault(error),
    }
}

/// Returns where all is that one attempt of the job printed, or all of them.
fn output_href(job: &Job, attempt: Option<u32>) -> String {
    let attempt = attempt.filter(|_| job.attempts > 1).map(|attempt| format!("?attempt={attempt}"));
    format!("/api/v1/jobs/{}/output{}", job.id(), attempt.unwrap_or_default())
}

/// Returns what the engine made of a request, for doors.
pub(crate) fn tracked(submitted: runtime::Submitted) -> Submitted<Tracked> {
    match submitted {
        runtime::Submitted::New(watch) => Submitted::New(Tracked(watch)),
        runtime::Submitted::Repeat(watch) => Submitted::Repeat(Tracked(watch)),
    }
}

/// Returns what its caller may be told of other jobs than this: nothing if the caller shows who it is.
pub(crate) fn ahead(job: &Job, of: Ahead) -> Ahead {
    if job.request.caller.is_empty() { of } else { Ahead::Hidden }
}

/// Returns why a request did not become a job, for doors.
pub(crate) fn unaccepted(why: runtime::Unaccepted) -> Unaccepted<Tracked> {
    match why {
        runtime::Unaccepted::Conflict(job) => Unaccepted::Conflict(Tracked(Watch::at_rest(job))),
        runtime::Unaccepted::TwoJobs => Unaccepted::TwoJobs,
        runtime::Unaccepted::Rejected(Rejected::TooManyNames) => Unaccepted::TooManyNames,
        runtime::Unaccepted::Rejected(Rejected::UnknownWork) => Unaccepted::UnknownWork,
        runtime::Unaccepted::Rejected(Rejected::UnknownAgent) => Unaccepted::UnknownAgent,
        runtime::Unaccepted::Rejected(Rejected::NotItsWork) => Unaccepted::NotItsWork,
        runtime::Unaccepted::Rejected(Rejected::WrongType) => Unaccepted::WrongType,
        // Only attempts ask for stages of their jobs; no door does.
        runtime::Unaccepted::Rejected(Rejected::ParentEnded) => Unaccepted::Refused(Refusal::no_such_job()),
        runtime::Unaccepted::Rejected(Rejected::Full { share, most }) => {
            Unaccepted::Refused(refusal::full(share, most))
        }
        runtime::Unaccepted::Overloaded => Unaccepted::Refused(refusal::overloaded()),
        // It was not looked at, so it may be a repeat.
        runtime::Unaccepted::Closed => Unaccepted::Refused(Refusal::ended()),
        runtime::Unaccepted::Lost => Unaccepted::Refused(refusal::lost()),
        runtime::Unaccepted::Fault(error) => Unaccepted::Refused(refusal::maybe_submitted(&error)),
        runtime::Unaccepted::NotTried(error) => Unaccepted::Refused(fault(&error)),
    }
}

/// Returns what a caller may know of a job.
pub(crate) fn snapshot(job: &Job) -> Snapshot<'_> {
    Snapshot {
        id: job.id().uuid(),
        request_id: &job.request.request_id,
        work: &job.request.work,
        door: job.request.door,
        pinned: job.request.pinned.as_deref(),
        agent: job.agent.as_deref(),
        agent_type: None,
        echo: job.request.echo.as_deref(),
        state: state(&job.state),
        progress: job.progress.as_deref(),
        began: job.began.as_deref(),
        progress_at: job.progress_at,
        events: job.events,
        answers: job.answers.len(),
        attempts: job.attempts,
        retries: job.retries,
        started_at: job.started_at,
        updated_at: job.updated_at,
    }
}

fn state(state: &job::State) -> State<'_> {
    match state {
        job::State::Queued => State::Queued,
        job::State::Running(_) => State::Running,
        job::State::Retrying { .. } | job::State::Poisoned => State::Between,
        job::State::Waiting { running, question } => {
            State::Waiting { question, number: (running.attempt, running.asked) }
        }
        job::State::Ended(ending) => {
            let is_unjudged = ending.is_unjudged;
            State::Ended(Ended { at: ending.at, outcome: &ending.outcome, is_unjudged, is_kept: true })
        }
    }
}

/// Returns one attempt of a job, for the agent that gets it.
pub(crate) fn assignment<'a>(
    job: &'a Job,
    attempt: u32,
    document: &'a Block,
    time_left: Option<Duration>,
) -> Assignment<'a> {
    let request = &job.request;
    Assignment {
        id: job.id().uuid(),
        attempt,
        door: request.door,
        request_id: &request.request_id,
        work: &request.work,
        priority: request.priority,
        seconds_max: request.limits.total,
        time_left,
        trace: request.trace.as_deref(),
        accepted_at: request.accepted_at,
        document,
        input: if request.door.contract().is_none() { request.input_in(document) } else { None },
        message_id: Uuid::new_v4(),
        now: Time(jiff::Timestamp::now().as_microsecond()),
        answer: None,
    }
}

/// Returns the place of one attempt in its caller's trace.
pub(crate) fn trace_of(job: &Job, attempt: u32) -> Trace {
    Trace::of_attempt(job.id().uuid(), job.request.trace.as_deref(), attempt)
}
