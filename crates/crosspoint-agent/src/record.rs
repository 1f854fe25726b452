//! A job of the agent: what its callers may know of it at one moment, and how it is followed.

use std::collections::VecDeque;
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
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Output;
use crate::backend::Name;
use crate::same::Likeness;

/// Most messages with answers that are remembered of one job.
const BROUGHT_MAX: usize = 64;

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
    now: watch::Sender<Arc<Record>>,
    stop: CancellationToken,
    /// Answers that the handler has not taken.
    answers: Mutex<VecDeque<Body>>,
    /// Told when there is one more.
    answered: Notify,
    /// The messages that brought answers, the latest last.
    brought: Mutex<VecDeque<Box<str>>>,
    /// What the handler has printed so far.
    output: Output,
    /// Held while the job is being ended, until its outcome is kept.
    ending: tokio::sync::Mutex<()>,
}

impl Job {
    /// Makes a job that waits for its turn.
    pub(crate) fn new(record: Record) -> Job {
        Job(Arc::new(Shared {
            now: watch::Sender::new(Arc::new(record)),
            stop: CancellationToken::new(),
            answers: Mutex::default(),
            answered: Notify::new(),
            brought: Mutex::default(),
            output: Output::default(),
            ending: tokio::sync::Mutex::default(),
        }))
    }

    /// Waits until nothing else ends the job, and keeps everything else from it. Returns the outcome that the job has
    /// by then, if it has one.
    pub(crate) async fn ending(&self) -> (tokio::sync::MutexGuard<'_, ()>, Option<Arc<Outcome>>) {
        let guard = self.0.ending.lock().await;
        let outcome = match &self.now().phase {
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
        &self.0.output
    }

    /// Returns the token that is cancelled when the job is to stop.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
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
        self.0.now.send_if_modified(|now| {
            if matches!(now.phase, Phase::Ended { .. }) {
                return false;
            }
            let record = Arc::make_mut(now);
            if !change(record) {
                return false;
            }
            record.events = record.events.saturating_add(1);
            record.updated_at = crate::clock::now();
            true
        })
    }

    /// Whether the job has failed so that the same request is done again.
    pub(crate) fn is_done_again(&self) -> bool {
        matches!(self.now().phase, Phase::Ended { is_kept: false, .. })
    }

    /// Asks this question. Answers to an earlier question that was given up are forgotten.
    pub(crate) fn ask(&self, question: Question, number: u32) {
        self.change(|record| {
            self.answers().clear();
            record.phase = Phase::Waiting { question, number };
        });
    }

    /// Waits for an answer to the question that is asked.
    pub(crate) async fn answered(&self) -> Body {
        loop {
            let answered = self.0.answered.notified();
            if let Some(answer) = self.answers().pop_front() {
                return answer;
            }
            answered.await;
        }
    }

    fn answers(&self) -> MutexGuard<'_, VecDeque<Body>> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the handler an answer to its question. Returns whether it asks one.
    pub(crate) fn answer(&self, answer: Body) -> bool {
        let mut is_asked = false;
        // Sent while nothing else changes the job, so that it can answer no later question.
        self.change_if(|record| {
            if let Phase::Waiting { .. } = record.phase {
                record.phase = Phase::Running;
                record.answers += 1;
                self.answers().push_back(answer);
                self.0.answered.notify_waiters();
                is_asked = true;
                return true;
            }
            false
        });
        is_asked
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

    /// Returns whether a message of this id has brought no answer so far.
    pub(crate) fn is_new_answer(&self, message_id: &str) -> bool {
        let mut brought = self.0.brought.lock().unwrap_or_else(PoisonError::into_inner);
        if brought.iter().any(|id| **id == *message_id) {
            return false;
        }
        brought.push_back(message_id.into());
        if brought.len() > BROUGHT_MAX {
            brought.pop_front();
        }
        true
    }

    async fn until(&self, until: Instant, is_meant: impl Fn(&Record) -> bool) -> Arc<Record> {
        let mut now = self.0.now.subscribe();
        let waiting = now.wait_for(|record| is_meant(record));
        if let Ok(Ok(record)) = tokio::time::timeout_at(until.into(), waiting).await {
            return record.clone();
        }
        self.now()
    }
}

impl Followed for Job {
    type Now = Arc<Record>;

    fn now(&self) -> Arc<Record> {
        self.0.now.borrow().clone()
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

    /// Whether the caller has a way to answer a question: its contract has a home for one.
    pub(crate) fn can_be_answered(&self) -> bool {
        match self.door {
            Door::Native => true,
            Door::Contract(contract) => matches!(contract.exchange().question, Place::Home(_)),
        }
    }
}

impl Record {
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
                Phase::Waiting { question, number } => State::Waiting { question, number: (1, *number) },
                Phase::Ended { at, outcome, .. } => State::Ended(Ended { at: *at, outcome, is_unjudged: false }),
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
