//! A job of the agent: what its callers may know of it at one moment, and how it is followed.

mod asking;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::exchange::Place;
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_contracts::request::{Door, NewJob};
use crosspoint_contracts::time::Time;
use crosspoint_exchange::backend::Followed;
use crosspoint_exchange::snapshot::{Ended, Snapshot, State};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Output;
use crate::answers::Answers;
use crate::backend::Name;
use crate::questions::{Questions, Shown};
use crate::same::Likeness;

/// What was asked for. It never changes.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: Uuid,
    pub(crate) door: Door,
    pub(crate) caller: Arc<str>,
    pub(crate) request_id: Box<str>,
    /// What makes another request the same as this one.
    pub(crate) names: Vec<Name>,
    /// Made when it is asked for: most requests come once.
    pub(crate) likeness: OnceLock<Likeness>,
    pub(crate) work: Arc<str>,
    pub(crate) pinned: Option<Arc<str>>,
    pub(crate) echo: Option<Box<str>>,
    pub(crate) trace: Option<Box<str>>,
    /// The orchestrator that is to be told of the outcome.
    pub(crate) owed_to: Option<Arc<str>>,
    /// Until when the caller waits for the work.
    pub(crate) deadline: Option<Instant>,
    /// Whether the time in which a person is asked does not count for it.
    pub(crate) is_asking_free: bool,
    /// How much memory a program may use for it, in bytes (MSG-6.5).
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) document: Block,
    /// The input, cut out of the document.
    pub(crate) input: Body,
}

/// A job at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) asked: Arc<Asked>,
    pub(crate) agent: Arc<str>,
    pub(crate) agent_type: Option<Arc<str>>,
    pub(crate) phase: Phase,
    pub(crate) progress: Option<Progress>,
    pub(crate) progress_at: Time,
    pub(crate) events: u32,
    pub(crate) answers: usize,
    pub(crate) started_at: Option<Time>,
    pub(crate) updated_at: Time,
}

/// How far a job is.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// The agent does as much as it may at a time.
    Queued,
    Running,
    /// The handler asks a person, for this time.
    Waiting {
        question: Question,
        number: u32,
        shown: Shown,
    },
    Ended {
        at: Time,
        outcome: Arc<Outcome>,
        /// Whether the same request gets this outcome. Else it is done again.
        is_kept: bool,
    },
}

/// A job that can be followed and changed; cloning shares it.
#[derive(Clone)]
pub(crate) struct Job(Arc<Shared>);

struct Shared {
    now: Mutex<Arc<Record>>,
    /// Told whenever the record has changed.
    changed: Notify,
    /// Made when somebody asks for it, like the output: most jobs are neither stopped nor print.
    stop: OnceLock<CancellationToken>,
    questions: Mutex<Questions>,
    /// Told when there is an answer for the handler.
    answered: Notify,
    /// The store that keeps answers to questions, for work that is begun again if it is interrupted.
    answers: Option<Answers>,
    /// What the handler has printed so far.
    output: OnceLock<Output>,
    /// Held while the job is being ended, until its outcome is kept.
    ending: tokio::sync::Mutex<()>,
}

impl Job {
    /// Makes a job that waits for its turn.
    pub(crate) fn new(record: Record) -> Job {
        Job::asking(record, Questions::default(), None)
    }

    /// Makes a job that waits for its turn, may have asked before, and keeps the answers to its questions here.
    pub(crate) fn asking(record: Record, questions: Questions, answers: Option<Answers>) -> Job {
        Job(Arc::new(Shared {
            now: Mutex::new(Arc::new(record)),
            changed: Notify::new(),
            stop: OnceLock::new(),
            questions: Mutex::new(questions),
            answered: Notify::new(),
            answers,
            output: OnceLock::new(),
            ending: tokio::sync::Mutex::default(),
        }))
    }

    /// Waits until nothing else ends the job, and keeps everything else from it. Returns the outcome that the job has
    /// by then, if it has one.
    pub(crate) async fn ending(&self) -> (tokio::sync::MutexGuard<'_, ()>, Option<Arc<Outcome>>) {
        let guard = self.0.ending.lock().await;
        let outcome = match &self.record().phase {
            Phase::Ended { outcome, .. } => Some(outcome.clone()),
            Phase::Queued | Phase::Running | Phase::Waiting { .. } => None,
        };
        (guard, outcome)
    }

    /// Whether both are the same job.
    pub(crate) fn is(&self, other: &Job) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns what the handler prints.
    pub(crate) fn output(&self) -> &Output {
        self.0.output.get_or_init(Output::default)
    }

    /// Returns what was printed so far, and forgets it; `None` if that is nothing.
    pub(crate) fn take_text(&self) -> Option<String> {
        self.0.output.get().map(Output::take).filter(|text| !text.is_empty())
    }

    /// Returns the token that is cancelled when the job is to stop.
    pub(crate) fn stop(&self) -> &CancellationToken {
        self.0.stop.get_or_init(CancellationToken::new)
    }

    /// Whether the job is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stop.get().is_some_and(CancellationToken::is_cancelled)
    }

    fn record(&self) -> MutexGuard<'_, Arc<Record>> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the job, unless it has ended: an outcome never changes. Returns whether it did.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Record)) -> bool {
        self.change_if(|record| {
            change(record);
            true
        })
    }

    /// Like [`Job::change`], with a function that returns whether it changed anything.
    fn change_if(&self, change: impl FnOnce(&mut Record) -> bool) -> bool {
        let mut now = self.record();
        if matches!(now.phase, Phase::Ended { .. }) {
            return false;
        }
        let record = Arc::make_mut(&mut now);
        if !change(record) {
            return false;
        }
        record.events = record.events.saturating_add(1);
        record.updated_at = crate::clock::now();
        drop(now);
        self.0.changed.notify_waiters();
        true
    }

    /// Whether the job has failed so that the same request is done again.
    pub(crate) fn is_done_again(&self) -> bool {
        matches!(self.record().phase, Phase::Ended { is_kept: false, .. })
    }

    /// Forgets what only a job that goes on needs.
    pub(crate) fn clear(&self) {
        // Most jobs print nothing, and a handler may have left its context with another task.
        if self.0.output.set(Output::closed()).is_err() {
            self.output().close();
        }
        *self.questions() = Questions::default();
    }

    /// Takes the question of this number back, if it is still asked.
    pub(crate) fn withdraw(&self, number: u32) {
        self.change_if(|record| match record.phase {
            Phase::Waiting { number: asked, .. } if asked == number => {
                record.phase = Phase::Running;
                true
            }
            Phase::Waiting { .. } | Phase::Queued | Phase::Running | Phase::Ended { .. } => false,
        });
    }

    async fn until(&self, until: Instant, is_meant: impl Fn(&Record) -> bool) -> Arc<Record> {
        // Most work is done at once, and then no clock has to run.
        let now = self.now();
        if is_meant(&now) {
            return now;
        }
        let waiting = async {
            loop {
                let changed = self.0.changed.notified();
                let now = self.now();
                if is_meant(&now) {
                    return now;
                }
                changed.await;
            }
        };
        tokio::time::timeout_at(until.into(), waiting).await.unwrap_or_else(|_| self.now())
    }
}

impl Followed for Job {
    type Now = Arc<Record>;

    fn now(&self) -> Arc<Record> {
        self.record().clone()
    }

    fn snapshot(now: &Arc<Record>) -> Snapshot<'_> {
        now.snapshot()
    }

    async fn ended(&self, until: Instant) -> Arc<Record> {
        self.until(until, |record| matches!(record.phase, Phase::Ended { .. })).await
    }

    async fn settled(&self, until: Instant) -> Arc<Record> {
        self.until(until, |record| matches!(record.phase, Phase::Ended { .. } | Phase::Waiting { .. })).await
    }

    async fn moved(&self, seen: &Arc<Record>, until: Instant) -> Arc<Record> {
        self.until(until, |record| record.events != seen.events).await
    }
}

impl Asked {
    /// Makes the job of a request.
    pub(crate) fn new(new: NewJob, now: Instant) -> Asked {
        let names = Name::of(&new);
        // A request without an input has an empty one.
        let input = match new.input.is_empty() {
            true => Bytes::from_static(b"{}"),
            false => new.document.0.slice(new.input),
        };
        let id = crate::ids::new();
        // The agent makes one attempt.
        let longest = [new.limits.total, new.limits.attempt].into_iter().flatten().min();
        Asked {
            id,
            names,
            likeness: OnceLock::new(),
            door: new.door,
            caller: new.caller,
            request_id: new.request_id.unwrap_or_else(|| id.to_string().into()),
            work: new.work,
            pinned: new.agent,
            echo: new.echo,
            trace: new.trace,
            owed_to: new.notify,
            deadline: longest.and_then(|longest| now.checked_add(longest)),
            is_asking_free: longest != new.limits.total,
            memory_bytes: new.limits.memory_bytes,
            document: new.document,
            input: Body::trusted(input),
        }
    }
}

impl Asked {
    /// Returns what makes another request the same as this one.
    pub(crate) fn likeness(&self) -> &Likeness {
        self.likeness.get_or_init(|| Likeness::of(&self.work, self.input.bytes()))
    }

    /// Returns the same request with further names.
    pub(crate) fn also_named(&self, names: &[Name]) -> Asked {
        let more = names.iter().filter(|name| !self.names.contains(name));
        Asked { names: self.names.iter().chain(more).cloned().collect(), ..self.clone() }
    }

    /// Whether the caller has a way to answer a question: its contract has a home for one.
    pub(crate) fn can_be_answered(&self) -> bool {
        match self.door {
            Door::Native => true,
            Door::Contract(contract) => matches!(contract.exchange().question, Place::Home(_)),
        }
    }
}

impl Record {
    /// Returns the number of the question that is asked.
    pub(crate) fn question_number(&self) -> Option<u32> {
        match self.phase {
            Phase::Waiting { number, .. } => Some(number),
            Phase::Queued | Phase::Running | Phase::Ended { .. } => None,
        }
    }

    /// Notes that a document about this moment leaves the agent: the question in it can be answered from now on.
    pub(crate) fn is_shown(&self) {
        if let Phase::Waiting { shown, .. } = &self.phase {
            shown.note();
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let asked = &*self.asked;
        Snapshot {
            id: asked.id,
            request_id: &asked.request_id,
            work: &asked.work,
            door: asked.door,
            pinned: asked.pinned.as_deref(),
            agent: Some(&self.agent),
            agent_type: self.agent_type.as_deref(),
            echo: asked.echo.as_deref(),
            state: match &self.phase {
                Phase::Queued => State::Queued,
                Phase::Running => State::Running,
                Phase::Waiting { question, number, .. } => State::Waiting { question, number: (1, *number) },
                Phase::Ended { at, outcome, is_kept } => {
                    State::Ended(Ended { at: *at, outcome, is_unjudged: false, is_kept: *is_kept })
                }
            },
            progress: self.progress.as_ref(),
            began: None,
            progress_at: self.progress_at,
            events: self.events,
            answers: self.answers,
            attempts: u32::from(self.started_at.is_some()),
            retries: 0,
            started_at: self.started_at,
            updated_at: self.updated_at,
        }
    }
}
