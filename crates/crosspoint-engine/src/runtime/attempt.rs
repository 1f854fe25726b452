//! One attempt of one job: a task of its own, so that no caller who leaves takes it along.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::board::lock;
use super::desk::Handed;
use super::engine::Engine;
use super::inbox::Answer;
use crate::breaker::Health;
use crate::core::Reply;
use crate::event::Violation;
use crate::id::JobId;
use crate::job::Job;
use crate::machine::Event;
use crate::policy::MEMORY_BYTES_MAX;
use crate::time::Time;

/// An agent that was told to stop has so long to do it before its task is dropped.
const STOP_GRACE: Duration = Duration::from_secs(30);

/// An input that could not be read is read again so much later.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// How work reaches one agent: one of these for each way of talking to agents.
pub trait Link: Send + Sync + 'static {
    /// Has the work done. It must come to an end soon after [`Attempt::stopped`] does; dropping the future must stop the work.
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>>;

    /// What can be said at once, without waiting for anything: no task is made for it, and the result is in the next commit. For
    /// agents that are a few instructions, because the committing thread calls it.
    fn at_once(&self, _input: &Body) -> Option<Result<Success, Failed>> {
        None
    }

    /// Clears away what an attempt has left behind. It comes when the attempt is over and what it came to is on disk, unless we ended before:
    /// then nobody does, so that whatever is left must do no harm. The next attempt of the job may have begun meanwhile: `number` says whose
    /// it is.
    fn tidy(self: Arc<Self>, _job: Arc<Job>, _number: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Whether the agent is there, without giving it work (MSG-7).
    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(std::future::ready(Health::Well))
    }
}

/// What the board knows of an attempt.
#[derive(Default)]
pub(super) struct Handle {
    pub(super) attempt: u32,
    pub(super) stop: CancellationToken,
    answers: Mutex<VecDeque<Body>>,
    answered: Notify,
    /// Its link wants to know when we are about to end.
    parts: AtomicBool,
    /// Nothing is to be reported of it.
    abandoned: AtomicBool,
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

/// The job no longer wants to hear of this attempt: it has ended, or another attempt was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the job goes on without this attempt")]
pub struct Gone;

/// Why nothing is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unremembered {
    /// It is too much.
    #[error("a link may remember {MEMORY_BYTES_MAX} bytes of an attempt")]
    TooLong,
    /// The job goes on without the attempt.
    #[error(transparent)]
    Gone(#[from] Gone),
}

impl Attempt {
    /// The job, as it was when the attempt began.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Which attempt it is, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What the agent is given. Of a job that had to wait it is read from the store: a queue of a hundred thousand holds no inputs.
    pub async fn input(&self) -> Result<Body, Failed> {
        let document = self.document().await?;
        let input = self.job.request.input_in(&document);
        input.map(Body::trusted).ok_or_else(|| Failed::of(Failure::Internal, Dispatched::No))
    }

    /// The document that the job came as. Of a job that had to wait it is read from the store.
    pub async fn document(&self) -> Result<Block, Failed> {
        if let Some(document) = &self.document {
            return Ok(document.clone());
        }
        self.stored().await.ok_or_else(|| Failed::of(Failure::Internal, Dispatched::No))
    }

    /// Whether the agent may have gone on with it while we were gone.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// What was remembered of the attempt before it was taken up; see [`Attempt::remember`].
    pub fn memory(&self) -> Option<&Bytes> {
        self.job.memory.as_ref().map(|memory| &memory.0)
    }

    /// Remembers this of the attempt, in place of what was remembered before. When it returns, it is on disk; should we end, it is given back
    /// to the link that takes the attempt up, by [`Attempt::memory`]. It is gone with the attempt's end.
    pub async fn remember(&self, memory: impl Into<Bytes>) -> Result<(), Unremembered> {
        let memory = memory.into();
        if memory.len() > MEMORY_BYTES_MAX {
            return Err(Unremembered::TooLong);
        }
        Ok(self.report(Event::Remember { attempt: self.number, memory: Block(memory) }).await?)
    }

    /// How much is left of the time that the caller allows; `None` where it does not say.
    pub fn time_left(&self) -> Option<Duration> {
        let total = self.job.request.limits.total?;
        let since = self.job.request.accepted_at.shifted(self.job.skew_micros);
        Some(total.saturating_sub(Time::on_the_wall().since(since)))
    }

    /// That the disk cannot be read just now, or that there are too many open files, is no reason to end a job.
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

    /// Says that the agent is alive.
    pub async fn heard(&self) -> Result<(), Gone> {
        self.report(Event::Heard { attempt: self.number }).await
    }

    /// Says how far it is.
    pub async fn progress(&self, percent: Option<f64>, step: Option<&str>) -> Result<(), Gone> {
        self.advanced(Progress { percent, step: step.map(|step| Body::of(&step)), document: None }).await
    }

    /// Says how far it is, and all that the agent said of it.
    pub async fn advanced(&self, progress: Progress) -> Result<(), Gone> {
        self.report(Event::Progress { attempt: self.number, progress }).await
    }

    /// Stores a block of output; when it returns, the block is on disk.
    pub async fn output(&mut self, block: Bytes) -> Result<(), Gone> {
        let offset = self.output_bytes;
        self.output_bytes += block.len() as u64;
        self.report(Event::Output { attempt: self.number, offset, block: Block(block) }).await
    }

    /// Records beside the job that the agent broke a rule, which changes nothing else.
    pub async fn violation(&self, clause: &'static str, what: impl Into<Cow<'static, str>>) {
        self.engine.record(self.job.id(), Violation { clause, what: what.into() }).await;
    }

    /// Records the same without waiting for the disk: it is there before whatever is reported next.
    pub fn noted(&self, clause: &'static str, what: impl Into<Cow<'static, str>>) {
        self.engine.note(self.job.id(), Violation { clause, what: what.into() });
    }

    /// Asks a person, and waits for the answer as long as it takes.
    pub async fn ask(&self, question: Question) -> Result<Body, Gone> {
        // An attempt that is taken up may find the question answered before it has come to ask it.
        if let Some(answer) = lock(&self.handle.answers).pop_front() {
            return Ok(answer);
        }
        self.report(Event::Ask { attempt: self.number, question }).await?;
        loop {
            let answered = self.handle.answered.notified();
            if let Some(answer) = lock(&self.handle.answers).pop_front() {
                return Ok(answer);
            }
            tokio::select! {
                () = answered => {}
                () = self.handle.stop.cancelled() => return Err(Gone),
            }
        }
    }

    /// Says that the agent waits for no answer any more. One that was given meanwhile is nobody's.
    pub async fn unasked(&self) -> Result<(), Gone> {
        let told = self.report(Event::Unasked { attempt: self.number }).await;
        lock(&self.handle.answers).clear();
        told
    }

    /// Whether the job itself is over, and not only this attempt.
    pub fn is_over(&self) -> bool {
        self.engine.board().watch(self.job.id()).is_none_or(|watch| watch.job().outcome().is_some())
    }

    /// The job of this id in our store, whatever became of it; for links that find traces of others where they want to work.
    pub async fn other(&self, id: JobId) -> Result<Option<Arc<Job>>, Failed> {
        match self.engine.job(id).await {
            Ok(watch) => Ok(watch.map(|watch| watch.job())),
            Err(error) => {
                tracing::error!(job = %id, %error, "a job cannot be read");
                Err(Failed::of(Failure::Internal, Dispatched::No))
            }
        }
    }

    /// Comes to an end when the attempt should. It does so also beside a future that is never without something to do, such as one that reads
    /// a stream without end: a task that has used up its turn would otherwise not learn that it is over.
    pub async fn stopped(&self) {
        tokio::task::unconstrained(self.handle.stop.cancelled()).await;
    }

    /// Comes to an end when we are about to end, and the work cannot go on without us. A link that has asked for it is waited for until its attempt
    /// is over; others go on, or are dropped.
    pub fn leaving(&self) -> impl Future<Output = ()> + Send + use<> {
        self.handle.parts.store(true, Ordering::Relaxed);
        self.engine.leaving().clone().cancelled_owned()
    }

    /// The attempt ends with us, and nothing came of it. Nothing is reported: the next start takes the job up, as after a crash (ALL-3).
    pub fn abandon(&self) {
        self.handle.abandoned.store(true, Ordering::Relaxed);
    }

    async fn report(&self, event: Event) -> Result<(), Gone> {
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

/// Begins an attempt in a task of its own, and reports how it went.
pub(super) fn begin(engine: &Engine, link: Arc<dyn Link>, handed: Handed, resumed: bool) {
    let Handed { job, attempt: number, document, .. } = handed;
    let handle = Arc::new(Handle { attempt: number, ..Handle::default() });
    engine.board().attempts().insert(job.seq(), handle.clone());
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
        // A link may panic before it gives its future, too.
        let run = AssertUnwindSafe(async move { link.run(attempt).await }).catch_unwind();
        let result = tokio::select! {
            result = run => result.unwrap_or_else(|_| Err(panicked())),
            () = overdue(&handle.stop) => Err(Failed::of(Failure::Cancelled, Dispatched::Yes)),
        };
        if handle.abandoned.load(Ordering::Relaxed) {
            return engine.board().forget_attempt(job.seq(), &handle);
        }
        // Whoever was told to stop has nothing to report that anybody waits for, but for a success, which counts.
        engine.board().ending.fetch_add(1, Ordering::Relaxed);
        let reports = !handle.stop.is_cancelled() || result.is_ok();
        if !reports || engine.finish(job.id(), number, result).await {
            // A fault of the link's own leaves something lying about, and nothing worse.
            let _ = AssertUnwindSafe(async { tidying.tidy(job.clone(), number).await }).catch_unwind().await;
        }
        engine.board().ending.fetch_sub(1, Ordering::Relaxed);
        // Only now: whoever waits for the last attempt waits for its result to be on disk.
        engine.board().forget_attempt(job.seq(), &handle);
    });
}

async fn overdue(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

fn panicked() -> Failed {
    Failed::of(Failure::Internal, Dispatched::Yes)
}

impl Handle {
    /// Whether it ends with us, and has not yet.
    pub(super) fn is_parting(&self) -> bool {
        self.parts.load(Ordering::Relaxed)
    }

    pub(super) fn deliver(&self, answer: Body) {
        lock(&self.answers).push_back(answer);
        self.answered.notify_waiters();
    }
}
