//! What this worker holds: each job from when it is given until the server has acknowledged its result.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosspoint_contracts::content::Body;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Most jobs that may be held: as many as a call for work may list.
const HELD_MAX: usize = 10_000;

pub(super) struct HeldJobs {
    inside: Mutex<Inside>,
    /// A job was put down, or began to wait for a person.
    freed: Notify,
    concurrency: usize,
    /// How many programs may wait for people besides those that work: each is a process.
    waiting_max: usize,
}

#[derive(Default)]
struct Inside {
    held: BTreeMap<String, Held>,
    leaving: bool,
    /// Whether a call is under way that may be answered with jobs.
    asking: bool,
}

struct Held {
    attempt: u32,
    /// How many answers have arrived.
    answers: u32,
    /// How many questions were asked. While one is open, the program only waits, and another job may run.
    asked: u32,
    /// The program has ended and its result is being reported, so the job can no longer be stopped.
    ended: bool,
    /// No process of the program is alive; what it printed may still have to be sent.
    over: bool,
    stop: CancellationToken,
    kill: CancellationToken,
    answered: mpsc::UnboundedSender<Body>,
}

/// What becomes of a job that the server gives.
pub(super) enum Hold {
    /// It is begun.
    New(JobSignals),
    /// It is held already.
    Held,
    /// It is given back, because the worker is leaving.
    Declined,
}

/// What a job is told while it runs.
pub(super) struct JobSignals {
    /// The job is not wanted any more.
    pub(super) stop: CancellationToken,
    /// The program must be dead at once.
    pub(super) kill: CancellationToken,
    pub(super) answers: mpsc::UnboundedReceiver<Body>,
}

impl HeldJobs {
    pub(super) fn new(concurrency: usize, waiting_max: usize) -> HeldJobs {
        HeldJobs { inside: Mutex::default(), freed: Notify::new(), concurrency, waiting_max }
    }

    /// How many jobs are taken at a time; none when the worker is leaving.
    pub(super) fn concurrency(&self) -> usize {
        if self.lock().leaving { 0 } else { self.concurrency }
    }

    /// Returns for how many jobs there is room, and the body of a call for work that says so and lists all that is
    /// held.
    pub(super) fn taking(&self, session: Uuid) -> (usize, String) {
        let (room, body) = self.listing(session);
        self.lock().asking = room > 0;
        self.freed.notify_waiters();
        (room, body)
    }

    /// Like `taking`, for a call beside that one.
    pub(super) fn listing(&self, session: Uuid) -> (usize, String) {
        let inside = self.lock();
        let room = self.room(&inside);
        let mut body = format!(r#"{{"session":"{session}","room":{room},"holding":["#);
        for (at, (id, held)) in inside.held.iter().enumerate() {
            let (comma, attempt, answers) = (if at > 0 { "," } else { "" }, held.attempt, held.answers);
            // Writing to a string cannot fail.
            let _ = write!(body, r#"{comma}{{"id":"{id}","attempt":{attempt},"answers":{answers}}}"#);
        }
        body.push_str("]}");
        (room, body)
    }

    /// Notes that the call for work has failed and brings no jobs.
    pub(super) fn given_nothing(&self) {
        self.lock().asking = false;
        self.freed.notify_waiters();
    }

    /// Begins to hold a job. A job that is to be given back is held until the server has acknowledged that.
    pub(super) fn hold(&self, id: &str, attempt: u32) -> Hold {
        let mut inside = self.lock();
        if inside.held.contains_key(id) {
            return Hold::Held;
        }
        let (answered, answers) = mpsc::unbounded_channel();
        let signals = JobSignals { stop: CancellationToken::new(), kill: CancellationToken::new(), answers };
        let (stop, kill) = (signals.stop.clone(), signals.kill.clone());
        let ended = inside.leaving;
        let held = Held { attempt, answers: 0, asked: 0, ended, over: false, stop, kill, answered };
        inside.held.insert(id.to_owned(), held);
        if ended { Hold::Declined } else { Hold::New(signals) }
    }

    /// Stops a job; returns whether it was not being stopped before.
    pub(super) fn stop(&self, id: &str, attempt: u32) -> bool {
        let inside = self.lock();
        let held = inside.held.get(id).filter(|held| held.attempt == attempt && !held.ended);
        let held = held.filter(|held| !held.stop.is_cancelled());
        held.map(|held| held.stop.cancel()).is_some()
    }

    /// Notes that the program has asked this many questions, and waits for the answer to the last.
    pub(super) fn asked(&self, id: &str, number: u32) {
        if let Some(held) = self.lock().held.get_mut(id) {
            held.asked = number;
        }
        self.freed.notify_waiters();
    }

    /// Passes an answer on, if it is the next one. The server repeats an answer until the worker lists it.
    pub(super) fn answer(&self, id: &str, attempt: u32, number: u32, answer: Body) -> bool {
        let mut inside = self.lock();
        let held = inside.held.get_mut(id).filter(|held| held.attempt == attempt && held.answers + 1 == number);
        let Some(held) = held else { return false };
        held.answers = number;
        let _ = held.answered.send(answer);
        true
    }

    /// Notes that the program has ended, and that its result is about to be reported.
    pub(super) fn ended(&self, id: &str) {
        if let Some(held) = self.lock().held.get_mut(id) {
            held.ended = true;
        }
    }

    /// Notes that the program is not alive any more, although not all of its output has been sent.
    pub(super) fn over(&self, id: &str) {
        if let Some(held) = self.lock().held.get_mut(id) {
            held.over = true;
        }
    }

    pub(super) fn put_down(&self, id: &str) {
        self.lock().held.remove(id);
        self.freed.notify_waiters();
    }

    /// Kills every program that still runs; returns how many.
    pub(super) fn kill_all(&self) -> usize {
        let inside = self.lock();
        let running = inside.held.values().filter(|held| !held.ended && !held.over && !held.kill.is_cancelled());
        running.map(|held| held.kill.cancel()).count()
    }

    /// Takes no more jobs; returns how many are still held.
    pub(super) fn leave(&self) -> usize {
        let mut inside = self.lock();
        inside.leaving = true;
        inside.held.len()
    }

    /// Returns when there is room.
    pub(super) async fn has_room(&self) {
        loop {
            let freed = self.freed.notified();
            if self.room(&self.lock()) > 0 {
                return;
            }
            freed.await;
        }
    }

    /// Returns when a job is put down, or begins to wait for a person.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn room(&self, inside: &Inside) -> usize {
        let working = inside.held.values().filter(|held| held.ended || held.asked <= held.answers).count();
        let waiting = inside.held.len() - working;
        let room = self.concurrency.saturating_sub(working).min(HELD_MAX.saturating_sub(inside.held.len()));
        if inside.leaving || waiting >= self.waiting_max { 0 } else { room }
    }

    /// Returns when nothing is held, and no call is under way that could bring jobs.
    pub(super) async fn empty(&self) {
        loop {
            let freed = self.freed.notified();
            if self.is_empty() {
                return;
            }
            freed.await;
        }
    }

    fn is_empty(&self) -> bool {
        let inside = self.lock();
        inside.held.is_empty() && !inside.asking
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
