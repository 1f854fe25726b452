//! `/tasks/{id}/events`: a task in its current state, and again each time that it has changed (TASK-4.4).
//!
//! A stream holds only the job's watch. It writes the task as it is when the caller takes it, so a slow caller misses
//! states in between and costs nothing. The last event is the ended task. When the server stops, the stream ends
//! without it: the task goes on, and the caller reconnects with `Last-Event-ID`.

use std::time::Instant;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::job::State as Told;
use crosspoint_contracts::sse;
use crosspoint_contracts::task::Status;
use crosspoint_contracts::time::Time;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::backend::{Backend, Followed};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::Snapshot;
use futures_util::stream;

use super::CONTRACT;
use super::refused::status_word;
use crate::door::Doors;
use crate::event_stream::{KEEP_ALIVE_PERIOD, keep_alive, last_seen, response};
use crate::limit::StreamPlace;
use crate::{long, query};

/// Where a stream begins and ends.
pub(crate) struct Stretch {
    after: u32,
    only_past: bool,
}

impl Stretch {
    pub(crate) fn read(uri: &Uri, headers: &HeaderMap) -> Result<Stretch, Refusal> {
        let asked = query::events(uri)?;
        let after = last_seen(headers)?.or(asked.after).unwrap_or(0);
        Ok(Stretch { after, only_past: asked.only_past })
    }
}

pub(crate) fn stream<B: Backend>(
    doors: Doors<B>,
    (task, beside): (B::Job, Beside),
    Stretch { after, only_past }: Stretch,
    place: StreamPlace,
) -> Response {
    let following = Following { doors, task, beside, after, only_past, shown: None, room: None };
    let events = stream::unfold(following, |mut following| async move {
        let bytes = following.next().await?;
        Some((bytes, following))
    });
    response(events, place)
}

struct Following<B: Backend> {
    doors: Doors<B>,
    task: B::Job,
    /// The id that the caller asked by.
    beside: Beside,
    /// The number of the last event of the job that the caller knows of.
    after: u32,
    only_past: bool,
    shown: Option<Shown>,
    /// The room that the last document takes until its caller has taken it.
    room: Option<B::Room>,
}

/// What makes two documents about a task differ. Not every event of a job shows in them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    state: Told,
    is_between: bool,
    attempts: u32,
    answers: usize,
    updated_at: Time,
    progress_at: Time,
}

impl Shown {
    fn of(job: &Snapshot<'_>) -> Shown {
        let &Snapshot { attempts, answers, updated_at, progress_at, .. } = job;
        Shown {
            state: job.state.contract_state(),
            is_between: job.is_between(),
            attempts,
            answers,
            updated_at,
            progress_at,
        }
    }
}

impl Shown {
    /// Whether the caller has seen the ended task.
    fn is_last(self) -> bool {
        matches!(self.state, Told::Completed | Told::Failed | Told::Cancelled)
    }
}

impl<B: Backend> Following<B> {
    /// Returns the next bytes of the stream, or `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let until = Instant::now() + KEEP_ALIVE_PERIOD;
        loop {
            if self.shown.is_some_and(Shown::is_last) || self.doors.leaving().is_cancelled() {
                return None;
            }
            let now = self.task.now();
            let job = B::Job::snapshot(&now);
            let shown = Some(Shown::of(&job));
            if job.events > self.after && self.shown != shown {
                (self.after, self.shown) = (job.events, shown);
                // A task that cannot be read now is there again for a caller that reconnects.
                let whole = self.doors.whole(now).await.ok()?;
                self.room = whole.room;
                return Some(written(&B::Job::snapshot(&whole.now), &self.beside));
            }
            if self.only_past || job.ended().is_some() {
                return None;
            }
            if Instant::now() >= until {
                return Some(keep_alive());
            }
            let moved = self.task.moved(&now, until);
            tokio::select! {
                _ = moved => {}
                () = self.doors.leaving().cancelled() => return None,
            }
        }
    }
}

fn written(job: &Snapshot<'_>, beside: &Beside) -> Bytes {
    let answer = long::look(job.outcome_bytes(), || answer::answer(job, CONTRACT, beside));
    let status = if answer.is_readable { status_word(job.state.contract_state()) } else { Status::Failed.word() };
    let mut out = Vec::with_capacity(answer.text.len() + 64);
    // Names of events are ours and contain no line breaks.
    let _ = sse::event(&mut out, status, Some(u64::from(job.events)), &answer.text);
    out.into()
}
