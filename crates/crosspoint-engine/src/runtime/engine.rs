//! The handle that doors use: start, stop, look.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::reply::{Failed, Success};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::attempt::{self, Link};
use super::committer::{Committer, Settled};
use super::config::Config;
use super::inbox::{Answer, Inbox};
use super::judge::Judge;
use super::links::Links;
use super::metrics::Metrics;
use super::published::{Published, Purged, lock};
use super::pull::{Handed, Instruction, PullQueues};
use super::text::Texts;
use super::violated::Violated;
use crate::audit::Readings;
use crate::core::{Command, Reply, Spec};
use crate::id::{JobId, Seq, StoreId};
use crate::job::Job;
use crate::machine::Event;
use crate::store::{Fault, Readers, Store};

/// How long attempts that are over have, at a stop, to remove what they left behind.
const TIDY_TIME_MAX: Duration = Duration::from_secs(2);

/// Most reads of the store that run at a time; further ones wait.
const READS_MAX: usize = 16;

/// A running orchestrator. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    published: Published,
    metrics: Metrics,
    violated: Violated,
    inbox: Arc<Inbox>,
    readers: Readers,
    links: Links,
    queues: Option<Arc<dyn PullQueues>>,
    judge: Option<Arc<dyn Judge>>,
    handle: Handle,
    committer: Mutex<Option<JoinHandle<()>>>,
    /// Limits how many reads of the store run at a time.
    reads: Arc<Semaphore>,
    /// Limits how much text is put together at a time.
    texts: Texts,
    /// The task that carries out what was committed.
    releaser: Mutex<Option<tokio::task::JoinHandle<()>>>,
    stopping: AtomicBool,
    /// Which readings are in the audit already.
    readings: Mutex<Readings>,
    died: CancellationToken,
    /// Cancelled when everything that cannot outlive the orchestrator has to end.
    leaving: CancellationToken,
}

/// Whether new work is accepted.
#[derive(Clone, Debug)]
pub enum Readiness {
    /// Work is accepted.
    Ready,
    /// Nothing can be committed at present.
    Failing(Arc<Fault>),
}

impl Engine {
    /// Opens the store, takes up the work that was under way, and begins. Attempts run on the caller's tokio runtime.
    pub fn start(config: Config) -> Result<Engine, Fault> {
        let (store, readers) = Store::open(&config.store)?;
        let specs: Vec<Spec> = config.agents.iter().map(|(spec, _)| spec.clone()).collect();
        let links: BTreeMap<_, _> = config.agents.into_iter().map(|(spec, link)| (spec.name, link)).collect();
        let inbox = Arc::new(Inbox::new(config.limits.waiting_max, config.limits.waiting_bytes_max));
        let engine = Engine(Arc::new(Inner {
            published: Published::default(),
            metrics: Metrics::new(&specs),
            violated: Violated::default(),
            inbox: inbox.clone(),
            readers,
            links: Links::new(links, config.member_link),
            queues: config.queues,
            judge: config.judge,
            handle: Handle::current(),
            committer: Mutex::default(),
            reads: Arc::new(Semaphore::new(READS_MAX)),
            texts: Texts::new(),
            releaser: Mutex::default(),
            stopping: AtomicBool::new(false),
            readings: Mutex::default(),
            died: CancellationToken::new(),
            leaving: CancellationToken::new(),
        }));
        let death = Death(engine.clone());
        let alive_at = store.alive_at()?;
        let Config { limits, mode, retention, audit_age, .. } = config;
        let (is_server, ids) = (mode.is_serve(), engine.ids().clone());
        let settled = Settled { agents: specs, room: limits.room, mode, ids, retention, audit_age };
        let committer = Committer::start(store, engine.clone(), inbox, settled)?;
        let spawned = thread::Builder::new().name("commit".to_owned()).spawn(move || {
            let _guard = death;
            committer.run();
        });
        let spawned = spawned.map_err(|error| Fault::Broken { path: config.store.path, detail: error.to_string() })?;
        *lock(&engine.0.committer) = Some(spawned);
        // A process that only visits a store leaves the agents of its jobs alone.
        if let Some(alive_at) = alive_at.filter(|_| is_server) {
            engine.stop_again(alive_at);
        }
        Ok(engine)
    }

    /// Hands out no more work and waits until no attempt is under way, but at most `within`. Then commits what is left
    /// and ends. Attempts that are still under way are taken up at the next start, as after a crash. Attempts that wait
    /// for a person are not waited for.
    pub async fn stop(&self, within: Duration) {
        self.stop_and_part(within, Duration::ZERO).await;
    }

    /// Stops like [`Engine::stop`], and then gives attempts that cannot outlive the orchestrator
    /// ([`Attempt::leaving`](super::Attempt::leaving)) the time `parting` to end.
    pub async fn stop_and_part(&self, within: Duration, parting: Duration) {
        let until = Instant::now() + within;
        self.rest().await;
        while self.published().busy_count() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.part(parting).await;
        let until = Instant::now() + TIDY_TIME_MAX;
        while self.published().ending.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.0.stopping.store(true, Ordering::Relaxed);
        self.0.inbox.close();
        let committer = lock(&self.0.committer).take();
        if let Some(committer) = committer {
            // The thread commits what is in the inbox and ends.
            let _ = tokio::task::spawn_blocking(|| committer.join()).await;
        }
        // Callers that asked before the end are still answered.
        let releaser = lock(&self.0.releaser).take();
        if let Some(releaser) = releaser {
            let _ = releaser.await;
        }
    }

    /// Tells attempts that cannot outlive the orchestrator that it ends, and waits for them.
    async fn part(&self, within: Duration) {
        self.0.leaving.cancel();
        let parting = || self.published().attempts().values().filter(|handle| handle.is_parting()).count();
        let until = Instant::now() + within;
        if parting() > 0 && within > Duration::ZERO {
            tracing::info!(attempts = parting(), "asked to end; their jobs are left to the next start");
        }
        while parting() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) fn leaving(&self) -> &CancellationToken {
        &self.0.leaving
    }

    /// Stops handing out work, which is left to the next start. Work is still accepted.
    pub async fn rest(&self) {
        if let Ok(resting) = self.0.inbox.put(Command::Rest) {
            let _ = resting.await;
        }
    }

    /// Ends all waits for jobs, also of followers. Called when the orchestrator is about to stop.
    pub fn end_waits(&self) {
        self.published().end_waits();
    }

    /// Completes if the committing thread dies, which happens only by a defect, or if the store was lost to another
    /// process. Nothing is lost, but nothing goes on either: the process that runs the engine should end and be started
    /// again.
    pub async fn died(&self) {
        self.0.died.cancelled().await;
    }

    /// Returns how many attempts are under way.
    pub fn attempts(&self) -> usize {
        self.published().attempts().len()
    }

    /// Returns how many jobs have not ended.
    pub fn jobs_live(&self) -> usize {
        self.published().live_count()
    }

    /// Returns how many jobs were removed since the start because they need no longer be kept.
    pub fn purged(&self) -> Purged {
        self.published().purged_so_far()
    }

    /// Returns whether new work is accepted.
    pub fn readiness(&self) -> Readiness {
        self.published().fault().map_or(Readiness::Ready, Readiness::Failing)
    }

    /// Returns the identity of the engine's store, for clients that remember where they left work.
    pub fn store_id(&self) -> StoreId {
        self.0.readers.salt().store_id()
    }

    /// Whether this process does not drive the job.
    pub(super) fn is_held(&self, seq: Seq) -> bool {
        self.published().is_held(seq)
    }

    pub(super) fn readings(&self) -> &Mutex<Readings> {
        &self.0.readings
    }

    pub(super) fn published(&self) -> &Published {
        &self.0.published
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(super) fn violated(&self) -> &Violated {
        &self.0.violated
    }

    pub(super) fn set_releaser(&self, task: tokio::task::JoinHandle<()>) {
        *lock(&self.0.releaser) = Some(task);
    }

    pub(super) fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    pub(super) fn links(&self) -> &Links {
        &self.0.links
    }

    pub(super) fn link(&self, name: &str) -> Option<Arc<dyn Link>> {
        self.0.links.of(name)
    }

    pub(super) fn judge(&self) -> Option<&Arc<dyn Judge>> {
        self.0.judge.as_ref()
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.0.handle
    }

    pub(super) fn readers(&self) -> &Readers {
        &self.0.readers
    }

    pub(super) fn texts(&self) -> &Texts {
        &self.0.texts
    }

    /// Reads the store on a blocking thread, where waiting for a disk holds up no other task.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Readers) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        // The permit belongs to the read, and not to the caller that waits for it: callers may leave and come again.
        let permit = self.0.reads.clone().acquire_owned().await;
        let readers = self.0.readers.clone();
        let reading = self.0.handle.spawn_blocking(move || {
            let _permit = permit;
            read(&readers)
        });
        match reading.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(found) => found,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime shuts down, and everything with it.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    /// Returns the document that a job came as.
    pub async fn document(&self, seq: Seq) -> Result<Option<Block>, Fault> {
        self.read(move |readers| readers.document(seq)).await
    }

    /// Sends an event to the committing thread and waits until it is on disk; `None` if the thread has ended.
    pub(super) async fn tell(&self, id: JobId, event: Event) -> Option<Answer> {
        self.0.inbox.put(Command::Job(id, event)).ok()?.await.ok()
    }

    /// Tells a job something without waiting for what comes of it.
    pub(super) fn tell_at_once(&self, id: JobId, event: Event) {
        let _ = self.0.inbox.put(Command::Job(id, event));
    }

    /// Reports the result of an attempt, and returns whether it is on disk. If the job has ended meanwhile, it is
    /// recorded that the result came late.
    pub(super) async fn finish(&self, id: JobId, attempt: u32, result: Result<Success, Failed>) -> bool {
        let event = Event::Finish { attempt, result };
        match self.tell(id, event.clone()).await {
            Some(Answer::Committed { reply: Reply::NotLive, .. }) => {
                self.record_late(id, event).await;
                true
            }
            Some(Answer::Committed { .. }) => true,
            Some(Answer::Failed(_) | Answer::NotTried(_)) | None => false,
        }
    }

    /// Reports that an attempt was never given to its agent, and returns whether that is on disk.
    pub(super) async fn withdraw(&self, id: JobId, attempt: u32) -> bool {
        matches!(self.tell(id, Event::Withdrawn { attempt }).await, Some(Answer::Committed { .. }))
    }

    /// Begins an attempt. Returns the attempt where it belongs into the pull queues.
    pub(super) fn begin(&self, handed: Handed, resumed: bool) -> Option<Handed> {
        let link = handed.job.agent.as_ref().and_then(|name| self.link(name));
        // The core gives jobs only to configured agents and to agents that joined.
        let Some(link) = link else { return Some(handed) };
        attempt::begin(self, link, handed, resumed);
        None
    }

    /// Queues the attempts of agents that have no link.
    pub(super) fn enqueue(&self, handed: &mut Vec<Handed>) {
        if let Some(queues) = self.0.queues.as_ref().filter(|_| !handed.is_empty()) {
            queues.give(std::mem::take(handed));
        }
    }

    /// Tells the pull queues about an attempt, if it may be there. An agent that joined may have got a link since.
    pub(super) fn tell_queues(&self, job: &Arc<Job>, attempt: u32, instruction: Instruction) {
        let is_configured = job.agent.as_ref().is_some_and(|name| self.0.links.of_configured(name).is_some());
        if let Some(queues) = self.0.queues.as_ref().filter(|_| !is_configured) {
            queues.instruct(job, attempt, instruction);
        }
    }

    /// Returns the result of an attempt whose agent can give it without waiting.
    pub(super) fn at_once(&self, job: &Job, attempt: u32, input: Bytes) -> Option<Command> {
        let link = job.agent.as_ref().and_then(|name| self.0.links.of_configured(name))?;
        // A result that is looked at takes its time, and not that of the committing thread.
        if self.is_judged(job) {
            return None;
        }
        let result = link.at_once(&Body::trusted(input))?;
        Some(Command::Job(job.id(), Event::Finish { attempt, result }))
    }
}

/// Notices when the committing thread ends without having been told to. Callers that wait for it are released.
struct Death(Engine);

impl Drop for Death {
    fn drop(&mut self) {
        self.0.0.inbox.abandon();
        if !self.0.0.stopping.load(Ordering::Relaxed) {
            self.0.0.died.cancel();
        }
    }
}
