//! `/tasks/{id}/events`: a task in its current state, and again each time that it has changed (TASK-4.4).
//!
//! A stream holds only the job's watch. It writes the task as it is when the caller takes it, so a slow caller misses
//! states in between and costs nothing. The last event is the ended task. When the server stops, the stream ends
//! without it: the task goes on, and the caller reconnects with `Last-Event-ID`.

use std::time::Instant;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::sse;
use crosspoint_contracts::task::Status;
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::runtime::Watch;
use crosspoint_engine::time::Time;
use futures_util::stream;

use super::CONTRACT;
use super::refused::status_of;
use crate::long;
use crate::passage::answer::{self, Beside};
use crate::server::events::{KEEP_ALIVE_PERIOD, keep_alive, last_seen, response};
use crate::server::jobs::outcome_bytes;
use crate::server::refusal::Refusal;
use crate::server::{App, query};

/// Where a stream begins and ends.
pub(super) struct Stretch {
    after: u32,
    only_past: bool,
}

impl Stretch {
    pub(super) fn read(uri: &Uri, headers: &HeaderMap) -> Result<Stretch, Refusal> {
        let asked = query::events(uri)?;
        let after = last_seen(headers)?.or(asked.after).unwrap_or(0);
        Ok(Stretch { after, only_past: asked.only_past })
    }
}

pub(super) fn stream(app: App, watch: Watch, Stretch { after, only_past }: Stretch) -> Response {
    let following = Following { app, watch, after, only_past, shown: None };
    let events = stream::unfold(following, |mut following| async move {
        let bytes = following.next().await?;
        Some((bytes, following))
    });
    response(events)
}

struct Following {
    app: App,
    watch: Watch,
    /// The number of the last event of the job that the caller knows of.
    after: u32,
    only_past: bool,
    shown: Option<Shown>,
}

/// What makes two documents about a task differ. Not every event of a job shows in them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    phase: Phase,
    attempts: u32,
    answers: usize,
    updated_at: Time,
    progress_at: Time,
}

impl Shown {
    fn of(job: &Job) -> Shown {
        let (phase, answers) = (job.phase(), job.answers.len());
        let &Job { attempts, updated_at, progress_at, .. } = job;
        Shown { phase, attempts, answers, updated_at, progress_at }
    }
}

impl Following {
    /// Returns the next bytes of the stream, or `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let until = Instant::now() + KEEP_ALIVE_PERIOD;
        loop {
            if self.shown.is_some_and(|shown| shown.phase.is_end()) || self.app.stopping().is_cancelled() {
                return None;
            }
            let job = self.watch.job();
            let shown = Some(Shown::of(&job));
            if job.events > self.after && self.shown != shown {
                (self.after, self.shown) = (job.events, shown);
                return Some(written(&job));
            }
            if self.only_past || job.outcome().is_some() {
                return None;
            }
            if Instant::now() >= until {
                return Some(keep_alive());
            }
            let moved = self.watch.moved(job.events, until);
            tokio::select! {
                _ = moved => {}
                () = self.app.stopping().cancelled() => return None,
            }
        }
    }
}

fn written(job: &Job) -> Bytes {
    let answer = long::look(outcome_bytes(job), || answer::answer(job, CONTRACT, &Beside::default()));
    let status = if answer.is_readable { status_of(job) } else { Status::Failed.word() };
    let mut out = Vec::with_capacity(answer.text.len() + 64);
    // Names of events are ours and contain no line breaks.
    let _ = sse::event(&mut out, status, Some(u64::from(job.events)), &answer.text);
    out.into()
}
