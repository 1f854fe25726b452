//! One attempt of one job. It has a task of its own, so that a caller who leaves does not end it.

mod handle;

use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use crosspoint_contracts::time::Time;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

pub(super) use self::handle::Handle;
use super::engine::Engine;
use super::inbox::Answer;
use super::published::Watch;
use super::pull::Handed;
use crate::breaker::Health;
use crate::core::Reply;
use crate::event::Violation;
use crate::job::Job;
use crate::machine::Event;
use crate::policy::MEMORY_BYTES_MAX;

/// How long an agent that was told to stop has before its task is dropped.
const STOP_GRACE: Duration = Duration::from_secs(30);

/// Pause before an unreadable input is read again.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// How work reaches one agent. Each way of talking to agents implements it.
pub trait Link: Send + Sync + 'static {
    /// Runs the work. The future must end soon after [`Attempt::stopped`] does, and dropping it must stop the work.
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>>;

    /// Returns the result at once, if that is possible without waiting for anything. Then no task is made, and the
    /// result is in the next commit. This is for agents that are a few instructions, because the committing thread
    /// calls it.
    fn at_once(&self, _input: &Body) -> Option<Result<Success, Failed>> {
        None
    }

    /// Removes what an attempt has left behind. It is called when the attempt is over and its result is on disk. If the
    /// orchestrator ends before that, it is never called, so whatever is left must do no harm. The next attempt of the
    /// job may have begun meanwhile: `number` says which attempt to clear away.
    fn tidy(self: Arc<Self>, _job: Arc<Job>, _number: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Tells the agent that a job is over that it may still be at work on. It is called at a start, for jobs that ended
    /// not long before the orchestrator did: nothing tells whether the agent learnt of it.
    fn stop_ended(self: Arc<Self>, _job: Arc<Job>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Checks whether the agent is there, without giving it work (MSG-7).
    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(std::future::ready(Health::Well))
    }

    /// Returns since when the agent refuses the token that the operator configured for it (RUN-5).
    fn token_refused_since(&self) -> Option<Time> {
        None
    }

    /// Returns where the agent is, if it has an address.
    fn reached(&self) -> Option<Reached> {
        None
    }
}

/// Where an agent is, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The address, without secrets.
    pub address: String,
    /// Why the last attempt to connect failed; `None` if it did not.
    pub trouble: Option<String>,
}

/// One attempt, as a link sees it.
pub struct Attempt {
    job: Arc<Job>,
    number: u32,
    document: Option<Block>,
    resumed: bool,
    output_bytes: u64,
    handle: Arc<Handle>,
    engine: Engine,
}

/// The job no longer takes reports of this attempt: the job has ended, or another attempt was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the job goes on without this attempt")]
pub struct Gone;

/// Why nothing is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unremembered {
    /// The memory is too long.
    #[error("a link may remember {MEMORY_BYTES_MAX} bytes of an attempt")]
    TooLong,
    /// The job goes on without the attempt.
    #[error(transparent)]
    Gone(#[from] Gone),
}

impl Attempt {
    /// Returns the job as it was when the attempt began.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the attempt's number, counted from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the input for the agent. If the job had to wait, the input is read from the store, because a queue of a
    /// hundred thousand jobs holds no inputs in memory.
    pub async fn input(&self) -> Result<Body, Failed> {
        let document = self.document().await?;
        let input = self.job.request.input_in(&document);
        input.map(Body::trusted).ok_or_else(|| Failed::of(Failure::Internal, Dispatched::No))
    }

    /// Returns the document that the job came as. If the job had to wait, it is read from the store.
    pub async fn document(&self) -> Result<Block, Failed> {
        if let Some(document) = &self.document {
            return Ok(document.clone());
        }
        self.stored().await.ok_or_else(|| Failed::of(Failure::Internal, Dispatched::No))
    }

    /// Whether the agent may have gone on with the attempt while the orchestrator was down.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Returns what was remembered of the attempt before it was taken up; see [`Attempt::remember`].
    pub fn memory(&self) -> Option<&Bytes> {
        self.job.memory.as_ref().map(|memory| &memory.0)
    }

    /// Stores what the link has to remember of the attempt, in place of what it stored before. When it returns, the
    /// memory is on disk. If the orchestrator ends, the link that takes the attempt up gets it back by
    /// [`Attempt::memory`]. It is dropped when the attempt ends.
    pub async fn remember(&self, memory: impl Into<Bytes>) -> Result<(), Unremembered> {
        let memory = memory.into();
        if memory.len() > MEMORY_BYTES_MAX {
            return Err(Unremembered::TooLong);
        }
        Ok(self.report(Event::Remember { attempt: self.number, memory: Block(memory) }).await?)
    }

    /// Returns how much is left of the time that the caller allows; `None` where the caller sets no limit.
    pub fn time_left(&self) -> Option<Duration> {
        let total = self.job.request.limits.total?;
        let since = self.job.request.accepted_at.shifted(self.job.skew_micros);
        Some(total.saturating_sub(crate::wall_clock::now().since(since)))
    }

    /// Reads the document from the store, again and again until it can be read or the attempt is stopped. A disk that
    /// cannot be read just now, or too many open files, is no reason to end a job.
    async fn stored(&self) -> Option<Block> {
        loop {
            match self.engine.document(self.job.seq()).await {
                Ok(document) => return document,
                Err(error) => {
                    tracing::error!(job = %self.job.id(), %error, "an input cannot be read; it is tried again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(READ_PAUSE) => {}
                () = self.stopped() => return None,
            }
        }
    }

    /// Reports that the agent is alive.
    pub async fn heard(&self) -> Result<(), Gone> {
        self.report(Event::Heard { attempt: self.number }).await
    }

    /// Reports the same without waiting for it, for an agent that may say something else at any moment. An attempt that
    /// is over learns of it by [`Attempt::stopped`].
    pub fn heard_at_once(&self) {
        self.engine.tell_at_once(self.job.id(), Event::Heard { attempt: self.number });
    }

    /// Reports progress.
    pub async fn progress(&self, percent: Option<f64>, step: Option<&str>) -> Result<(), Gone> {
        self.advanced(Progress { percent, step: step.map(|step| Body::of(&step)), ..Progress::default() }).await
    }

    /// Reports what is being done, without waiting for it.
    pub fn progress_at_once(&self, step: &str) {
        let progress = Progress { step: Some(Body::of(&step)), ..Progress::default() };
        self.engine.tell_at_once(self.job.id(), Event::Progress { attempt: self.number, progress });
    }

    /// Reports progress together with the agent's own document about it.
    pub async fn advanced(&self, progress: Progress) -> Result<(), Gone> {
        self.report(Event::Progress { attempt: self.number, progress }).await
    }

    /// Stores a block of output. When it returns, the block is on disk.
    pub async fn output(&mut self, block: Bytes) -> Result<(), Gone> {
        let offset = self.output_bytes;
        self.output_bytes += block.len() as u64;
        self.report(Event::Output { attempt: self.number, offset, block: Block(block) }).await
    }

    /// Records beside the job that the agent broke a rule. Nothing else changes.
    pub async fn violation(&self, clause: &'static str, level: Level, what: impl Into<Cow<'static, str>>) {
        self.engine.record(self.job.id(), Violation { clause, level, what: what.into() }).await;
    }

    /// Records the same without waiting for the disk. It is on disk before whatever is reported next.
    pub fn noted(&self, clause: &'static str, level: Level, what: impl Into<Cow<'static, str>>) {
        self.engine.note(self.job.id(), Violation { clause, level, what: what.into() });
    }

    /// Asks a person, and waits for the answer as long as it takes.
    pub async fn ask(&self, question: Question) -> Result<Body, Gone> {
        // An attempt that is taken up may find the question answered before it asks it.
        if let Some(answer) = self.handle.next_answer() {
            return Ok(answer);
        }
        let answered = Some(self.handle.heard());
        self.report(Event::Ask { attempt: self.number, question, answered }).await?;
        loop {
            let answered = self.handle.answered.notified();
            if let Some(answer) = self.handle.next_answer() {
                return Ok(answer);
            }
            tokio::select! {
                () = answered => {}
                () = self.handle.stop.cancelled() => return Err(Gone),
            }
        }
    }

    /// Reports that the agent no longer waits for an answer. An answer that was given meanwhile is dropped.
    pub async fn unasked(&self) -> Result<(), Gone> {
        let reported = self.report(Event::Unasked { attempt: self.number }).await;
        while self.handle.next_answer().is_some() {}
        reported
    }

    /// Whether the job itself is over, and not only this attempt.
    pub fn is_over(&self) -> bool {
        self.engine.published().watch(self.job.id()).is_none_or(|watch| watch.job().outcome().is_some())
    }

    /// Completes when the attempt should end. It does so also beside a future that always has something to do, such as
    /// one that reads an endless stream: otherwise a task that has used up its turn would not learn that the attempt is
    /// over.
    pub async fn stopped(&self) {
        tokio::task::unconstrained(self.handle.stop.cancelled()).await;
    }

    /// Completes when the orchestrator is about to end. It is for work that cannot go on without the orchestrator: a
    /// stop waits for the attempts whose links have called this. Other attempts go on, or are dropped.
    pub fn leaving(&self) -> impl Future<Output = ()> + Send + use<> {
        self.handle.parts.store(true, Ordering::Relaxed);
        self.engine.leaving().clone().cancelled_owned()
    }

    /// Declares that the attempt ends with the orchestrator and has no result. Nothing is reported: the next start
    /// takes the job up, as after a crash (ALL-3).
    pub fn abandon(&self) {
        self.handle.abandoned.store(true, Ordering::Relaxed);
    }

    /// Declares that the work was never given to the agent and will not be, in no life of the orchestrator. When the
    /// link's future ends, this is reported instead of its result: the job goes back into the queue, and neither the
    /// agent nor the job is blamed. An agent that has gone has to be away before that ([`Engine::set_capacity`]), or it
    /// is given the job again at once.
    pub fn withdraw(&self) {
        self.handle.withdrawn.store(true, Ordering::Relaxed);
    }

    /// Returns a watch of the attempt's job; `None` once the job has ended.
    pub fn watch(&self) -> Option<Watch> {
        self.engine.published().watch(self.job.id())
    }

    /// Returns the engine, for links whose work consists of other jobs.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) async fn report(&self, event: Event) -> Result<(), Gone> {
        match self.engine.tell(self.job.id(), event).await {
            Some(Answer::Committed { reply: Reply::Job(job), .. })
                if job.running().is_some_and(|running| running.attempt == self.number) =>
            {
                Ok(())
            }
            Some(Answer::Committed { .. } | Answer::Failed(_) | Answer::NotTried(_)) | None => Err(Gone),
        }
    }
}

/// Begins an attempt in a task of its own, and reports its result.
pub(super) fn begin(engine: &Engine, link: Arc<dyn Link>, handed: Handed, resumed: bool) {
    let Handed { job, attempt: number, document, .. } = handed;
    let answered = job.running().map_or(0, |running| running.asked);
    let handle = Arc::new(Handle::new(number, answered));
    engine.published().attempts().insert(job.seq(), handle.clone());
    let output_bytes = job.output_bytes;
    let attempt = Attempt {
        job: job.clone(),
        number,
        document,
        resumed,
        output_bytes,
        handle: handle.clone(),
        engine: engine.clone(),
    };
    let engine = engine.clone();
    let spawner = engine.clone();
    let tidying = link.clone();
    spawner.handle().spawn(async move {
        // A link may also panic before it returns its future.
        let run = AssertUnwindSafe(async move { link.run(attempt).await }).catch_unwind();
        let result = tokio::select! {
            result = run => result.unwrap_or_else(|_| Err(panicked())),
            () = overdue(&handle.stop) => Err(Failed::of(Failure::Cancelled, Dispatched::Yes)),
        };
        if handle.abandoned.load(Ordering::Relaxed) {
            return engine.published().forget_attempt(job.seq(), &handle);
        }
        // An attempt that was told to stop has nothing to report that matters, except a success, which counts.
        engine.published().ending.fetch_add(1, Ordering::Relaxed);
        let is_withdrawn = handle.withdrawn.load(Ordering::Relaxed);
        let reports = !handle.stop.is_cancelled() || (result.is_ok() && !is_withdrawn);
        let result = if reports && !is_withdrawn { engine.judged(&job, result).await } else { result };
        let is_known = match (reports, is_withdrawn) {
            (false, _) => true,
            (true, true) => engine.withdraw(job.id(), number).await,
            (true, false) => engine.finish(job.id(), number, result).await,
        };
        if is_known {
            // If the link panics here, it leaves something behind, and nothing worse.
            let _ = AssertUnwindSafe(async { tidying.tidy(job.clone(), number).await }).catch_unwind().await;
        }
        engine.published().ending.fetch_sub(1, Ordering::Relaxed);
        // Only now: a stop that waits for the last attempt waits for its result to be on disk.
        engine.published().forget_attempt(job.seq(), &handle);
    });
}

async fn overdue(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

fn panicked() -> Failed {
    Failed::of(Failure::Internal, Dispatched::Yes)
}
