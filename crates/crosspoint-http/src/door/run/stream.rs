//! The stream of a run: `started`, progress as it changes, one terminal event, and the end.
//!
//! A stream keeps only its position. It reads the job when the caller can take more. So a slow caller misses steps in
//! between and costs nothing, and ten thousand waiting callers cost little. Whatever happens behind it, the last event
//! is the one terminal event (RUN-7), even when this server stops, which ends the stream and not the run.

use std::time::Instant;

use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::run::{Life, StreamWriter, failure};
use crosspoint_engine::job::{Job, State};
use crosspoint_engine::time::Time;
use futures_util::stream;

use super::{CONTRACT, refuse, written};
use crate::passage::admission::Admitted;
use crate::passage::answer::{self, Beside};
use crate::server::jobs::locate;
use crate::server::refusal::Refusal;
use crate::server::{App, events, refusal_document};

/// Answers with the stream of a run.
pub(super) fn response(app: App, run: Admitted) -> Result<Response, Refusal> {
    let job = run.watch.job();
    let request_id = run.beside.known_as.as_deref().unwrap_or(&job.request.request_id);
    // Both are present: the contract demands it of every request.
    let writer = StreamWriter::new(request_id, &job.request.work).map_err(|_| Refusal::internal())?;
    let telling = Telling { app, run, writer, told: Told::default(), over: false };
    // RUN-6.3: the connection is closed after the last piece.
    let mut response = events::response(stream::unfold(telling, |mut telling| async move {
        let bytes = telling.next().await?;
        Some((bytes, telling))
    }));
    locate(&mut response, &job);
    Ok(response)
}

/// A stream, and what its caller has been told.
struct Telling {
    app: App,
    run: Admitted,
    writer: StreamWriter,
    told: Told,
    /// Whether the terminal event was written.
    over: bool,
}

/// What a caller has been told about a job.
#[derive(Clone, Copy, Default, PartialEq)]
struct Told {
    /// The time of the last progress.
    progress: Option<Time>,
    /// The attempt that asks, and the number of its question.
    question: Option<(u32, u32)>,
}

impl Told {
    fn of(job: &Job) -> Told {
        let question = match &job.state {
            State::Waiting { running, .. } => Some((running.attempt, running.asked)),
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned | State::Ended(_) => None,
        };
        Told { progress: job.progress.as_ref().map(|_| job.progress_at), question }
    }

    /// Whether this is news for a caller that was told `before`. An answered question is not.
    fn is_news_after(self, before: Told) -> bool {
        let progressed = self.progress.is_some() && self.progress != before.progress;
        progressed || (self.question.is_some() && self.question != before.question)
    }
}

impl Telling {
    /// Returns the next bytes of the stream, or `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let mut out = Vec::new();
        let mut job = self.run.watch.job();
        if self.writer.life() == Life::New {
            self.begin(&job, &mut out);
        }
        // RUN-6.6.
        let until = Instant::now() + events::KEEP_ALIVE_PERIOD;
        loop {
            self.tell(&job, &mut out);
            if !out.is_empty() {
                return Some(out.into());
            }
            if self.app.stopping().is_cancelled() {
                self.leave(&mut out);
            } else if Instant::now() >= until {
                let _ = self.writer.comment(&mut out);
            } else {
                job = tokio::select! {
                    job = self.run.watch.moved(job.events, until) => job,
                    () = self.app.stopping().cancelled() => self.run.watch.job(),
                };
            }
        }
    }

    /// RUN-10.2: a caller that joins a run is told that it has started and how far it is. For a run that has ended it
    /// gets only the outcome.
    fn begin(&mut self, job: &Job, out: &mut Vec<u8>) {
        let _ = self.writer.started(out);
        if self.run.joined && job.outcome().is_some() {
            self.told = Told::of(job);
        }
    }

    /// Writes what is new about the job, if anything is.
    fn tell(&mut self, job: &Job, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        let now = Told::of(job);
        let news = now.is_news_after(self.told);
        self.told = now;
        let ended = job.outcome().is_some();
        if news {
            self.advance(job, ended, out);
        }
        if ended {
            self.end(job, out);
        }
    }

    /// Writes progress. Progress made just before the end is written before the end.
    fn advance(&mut self, job: &Job, ended: bool, out: &mut Vec<u8>) {
        // Warnings about the request are written once, at the end.
        let beside = Beside { known_as: self.run.beside.known_as.clone(), ..Beside::default() };
        let data = match ended {
            true => answer::progress(job, CONTRACT, &beside),
            false => Some(answer::document(job, CONTRACT, &beside)),
        };
        // The agent's data was checked when it arrived (ALL-11).
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let _ = self.writer.progress_of(out, &data);
        }
    }

    /// Ends the stream because the server stops. The run goes on.
    fn leave(&mut self, out: &mut Vec<u8>) {
        let refusal = refuse(&self.run, Refusal::leaving(self.run.watch.job().id()));
        self.finish(&refusal_document::document(&refusal, CONTRACT), out);
    }

    /// Writes the outcome of the run.
    fn end(&mut self, job: &Job, out: &mut Vec<u8>) {
        self.finish(&written(&self.run, job), out);
    }

    /// Writes the terminal event.
    fn finish(&mut self, data: &str, out: &mut Vec<u8>) {
        self.over = true;
        if data.is_empty() || self.writer.finish_with(out, data).is_err() {
            self.fail(out);
        }
    }

    /// RUN-7: writes a terminal event in place of one that could not be written.
    fn fail(&mut self, out: &mut Vec<u8>) {
        let broken = Failure::BrokenContract;
        let _ = self.writer.fail(out, failure::write(broken).0, broken.sentence());
    }
}
