//! What the door of a contract needs of the side that does the work.
//!
//! The orchestrator's engine is such a side. An agent that serves callers by itself is another. Both get work through
//! the same doors, so that no door is written twice.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use crosspoint_contracts::Report;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::job::State;
use crosspoint_contracts::request::{Door, NewJob};

use crate::admission::Caller;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;

/// The side that does the work.
pub trait Backend: Clone + Send + Sync + 'static {
    /// A job that can be followed.
    type Job: Followed;

    /// The room that a long answer takes in memory. It is to be kept until the answer is sent.
    type Room: Send + Unpin + 'static;

    /// Path under which callers find a job by its own id, whatever contract they speak; `None` if there is none.
    const JOBS_AT: Option<&'static str> = None;

    /// Whether jobs that have not ended go on when a server that stops is back. Where they do not, followers are told
    /// how they end.
    const GOES_ON: bool = false;

    /// Takes new work of a caller, or finds the job that has the same request key. When it returns, the job is durable.
    /// While the server stops, jobs of repeated requests are still found, and only new work is refused.
    fn submit(
        &self,
        caller: &Caller,
        new: NewJob,
    ) -> impl Future<Output = Result<Submitted<Self::Job>, Unaccepted<Self::Job>>> + Send;

    /// Finds the job that a caller knows by this id.
    fn find(
        &self,
        door: Door,
        caller: &Caller,
        request_id: &str,
    ) -> impl Future<Output = Result<Option<Self::Job>, Refusal>> + Send;

    /// Finds a job of a caller that has not ended and that is meant. All of them are looked at.
    fn find_live(&self, _: Door, _: &Caller, _: impl Fn(&Snapshot<'_>) -> bool) -> Option<Self::Job> {
        None
    }

    /// Answers the question that a job waits with. `caller` does it, whose job it may be or not. The answer came at
    /// this time; it cannot be meant for a question that its sender has not seen by then. Returns the job as it is with
    /// the answer, before it asks anything else.
    fn answer(
        &self,
        caller: &Caller,
        job: &Self::Job,
        answer: Body,
        came: Instant,
    ) -> impl Future<Output = Result<Moment<Self>, Denied>> + Send;

    /// Stops a job. `caller` does it, whose job it may be or not.
    fn cancel(&self, caller: &Caller, job: &Self::Job) -> impl Future<Output = Result<(), Denied>> + Send;

    /// Returns the document that a job came as; `None` if it cannot be read.
    fn document(&self, job: &Self::Job) -> impl Future<Output = Option<Block>> + Send;

    /// Returns a job at one moment with the whole text of its outcome, for a document that is about to be written
    /// (ALL-12). Long texts are not kept in memory, so a caller among many may have to wait for room.
    fn with_text(&self, now: Moment<Self>) -> impl Future<Output = Result<Whole<Self>, Refusal>> + Send;

    /// Lists who takes which work.
    fn agents(&self) -> Vec<Agent>;

    /// Returns why a job at one moment does not move, for people; `None` if it does.
    fn stuck(&self, _: &Moment<Self>) -> Option<String> {
        None
    }

    /// Returns the type of an agent, if it has one.
    fn agent_type(&self, _: &str) -> Option<Arc<str>> {
        None
    }
}

/// A job of a backend at one moment.
pub type Moment<B> = <<B as Backend>::Job as Followed>::Now;

/// A job at one moment, with the whole text of its outcome.
pub struct Whole<B: Backend> {
    /// The job.
    pub now: Moment<B>,
    /// The room that the answer takes, if it is long.
    pub room: Option<B::Room>,
}

/// A job that can be looked at and waited for. Cloning follows the same job.
pub trait Followed: Clone + Send + Sync + 'static {
    /// The job at one moment.
    type Now: Send + Sync;

    /// Returns the job as it is now.
    fn now(&self) -> Self::Now;

    /// Returns what a caller may know of the job at that moment.
    fn snapshot(now: &Self::Now) -> Snapshot<'_>;

    /// Waits until the job has ended, or until a time.
    fn ended(&self, until: Instant) -> impl Future<Output = Self::Now> + Send;

    /// Waits until the job has ended or asks a person, or until a time.
    fn settled(&self, until: Instant) -> impl Future<Output = Self::Now> + Send;

    /// Waits until something has happened to the job since `seen`, or until a time.
    fn moved(&self, seen: &Self::Now, until: Instant) -> impl Future<Output = Self::Now> + Send;
}

/// An agent and the works that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The agent's name.
    pub name: Arc<str>,
    /// The works that it takes.
    pub works: Vec<Arc<str>>,
    /// Its type, if it has one.
    pub agent_type: Option<Arc<str>>,
}

/// What became of a request.
pub enum Submitted<J> {
    /// The request is a new job.
    New(J),
    /// The request is a job that existed already.
    Repeat(J),
}

/// Why a request did not become a job.
pub enum Unaccepted<J> {
    /// The request key belongs to this job, which has other work or input.
    Conflict(J),
    /// The request has two names, which are those of two jobs.
    TwoJobs,
    /// The request has a new name for a job that has as many names as a job may have.
    TooManyNames,
    /// No agent takes the work.
    UnknownWork,
    /// No agent has the name that the caller gave.
    UnknownAgent,
    /// The agent that the caller named does not take the work.
    NotItsWork,
    /// No agent of the type that the request is addressed to takes the work, and none without a type does.
    WrongType,
    /// The input does not match the schema of its work (TASK-10). The places are those of the caller's own document.
    Mismatch(Report),
    /// A reason that has nothing to do with the caller's contract.
    Refused(Refusal),
}

/// Why a job was not changed as its caller wants.
pub enum Denied {
    /// There is no such job.
    NotFound,
    /// The job has ended like this, and an ended job never changes.
    Ended(State),
    /// The job is in this state and asks nothing.
    NotWaiting(State),
    /// The job asks a question that no caller has been shown, so the answer is for another one.
    NotShown,
    /// The job waits for an operator, not for its caller.
    WaitsForOperator,
    /// A reason that has nothing to do with the caller's contract.
    Refused(Refusal),
}
