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
use crosspoint_contracts::time::Time;
use crosspoint_exchange::admission::Admitted;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::backend::{Backend, Followed};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::snapshot::{Snapshot, State};
use futures_util::stream;

use super::{CONTRACT, locate, refuse, written};
use crate::door::Doors;
use crate::event_stream::{self, KEEP_ALIVE_PERIOD};
use crate::limit::StreamPlace;
use crate::refusal_document;

/// Answers with the stream of a run.
pub(crate) fn response<B: Backend>(
    doors: Doors<B>,
    run: Admitted<B::Job>,
    place: StreamPlace,
) -> Result<Response, Refusal> {
    let now = run.job.now();
    let job = B::Job::snapshot(&now);
    let request_id = run.beside.known_as.as_deref().unwrap_or(job.request_id);
    // Both are present: the contract demands it of every request.
    let writer = StreamWriter::new(request_id, job.work).map_err(|_| Refusal::internal())?;
    let telling = Telling { doors, run, writer, last_told: LastTold::default(), began: None, over: false, room: None };
    // RUN-6.3: the connection is closed after the last piece.
    let pieces = stream::unfold(telling, |mut telling| async move {
        let bytes = telling.next().await?;
        Some((bytes, telling))
    });
    let mut response = event_stream::response(pieces, place);
    locate::<B>(&mut response, &job);
    Ok(response)
}

/// A stream, and what its caller has been told.
struct Telling<B: Backend> {
    doors: Doors<B>,
    run: Admitted<B::Job>,
    writer: StreamWriter,
    last_told: LastTold,
    /// What the agent said when it began, as far as the caller knows it.
    began: Option<String>,
    /// Whether the terminal event was written.
    over: bool,
    /// The room that the terminal event takes until its caller has taken it.
    room: Option<B::Room>,
}

/// What a caller has been told about a job.
#[derive(Clone, Copy, Default, PartialEq)]
struct LastTold {
    /// The time of the last progress.
    progress: Option<Time>,
    /// The attempt that asks, and the number of its question.
    question: Option<(u32, u32)>,
}

impl LastTold {
    fn of(job: &Snapshot<'_>) -> LastTold {
        let question = match job.state {
            State::Waiting { number, .. } => Some(number),
            State::Queued | State::Running | State::Between | State::Ended(_) => None,
        };
        LastTold { progress: job.progress.map(|_| job.progress_at), question }
    }

    /// Whether this is news for a caller that was told `before`. An answered question is not.
    fn is_news_after(self, before: LastTold) -> bool {
        let progressed = self.progress.is_some() && self.progress != before.progress;
        progressed || (self.question.is_some() && self.question != before.question)
    }
}

impl<B: Backend> Telling<B> {
    /// Returns the next bytes of the stream, or `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let mut out = Vec::new();
        let mut now = self.run.job.now();
        if self.writer.life() == Life::New {
            self.begin(&B::Job::snapshot(&now), &mut out);
        }
        // RUN-6.6.
        let until = Instant::now() + KEEP_ALIVE_PERIOD;
        loop {
            if B::Job::snapshot(&now).ended().is_some() {
                now = match self.doors.backend.with_text(now).await {
                    Ok(whole) => {
                        self.room = whole.room;
                        whole.now
                    }
                    Err(refusal) => {
                        self.refuse(refusal, &mut out);
                        return Some(out.into());
                    }
                };
            }
            self.tell(&B::Job::snapshot(&now), &mut out);
            if !out.is_empty() {
                return Some(out.into());
            }
            if self.doors.leaving().is_cancelled() {
                self.leave(&mut out);
            } else if Instant::now() >= until {
                let _ = self.writer.comment(&mut out);
            } else {
                now = tokio::select! {
                    now = self.run.job.moved(&now, until) => now,
                    () = self.doors.leaving().cancelled() => self.run.job.now(),
                };
            }
        }
    }

    /// RUN-10.2: a caller that joins a run is told that it has started and how far it is. For a run that has ended it
    /// gets only the outcome.
    fn begin(&mut self, job: &Snapshot<'_>, out: &mut Vec<u8>) {
        if !self.start(job, out) {
            let _ = self.writer.started(out);
        }
        if self.run.joined && job.ended().is_some() {
            self.last_told = LastTold::of(job);
        }
    }

    /// Writes what the agent said when it began, if it said something and the caller does not know it. It may be the
    /// second `started`: the first does not wait for an agent.
    fn start(&mut self, job: &Snapshot<'_>, out: &mut Vec<u8>) -> bool {
        let beside = Beside { known_as: self.run.beside.known_as.clone(), ..Beside::default() };
        let Some(data) = answer::began(job, CONTRACT, &beside) else { return false };
        if self.began.as_ref() == Some(&data) {
            return false;
        }
        let is_written = self.writer.started_with(out, &data).is_ok();
        self.began = Some(data);
        is_written
    }

    /// Writes what is new about the job, if anything is.
    fn tell(&mut self, job: &Snapshot<'_>, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        self.start(job, out);
        let now = LastTold::of(job);
        let news = now.is_news_after(self.last_told);
        self.last_told = now;
        let ended = job.ended().is_some();
        if news {
            self.advance(job, ended, out);
        }
        if ended {
            self.end(job, out);
        }
    }

    /// Writes progress. Progress made just before the end is written before the end.
    fn advance(&mut self, job: &Snapshot<'_>, ended: bool, out: &mut Vec<u8>) {
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
        let id = B::Job::snapshot(&self.run.job.now()).id;
        self.refuse(Refusal::leaving(id), out);
    }

    /// Ends the stream with a refusal in place of the outcome.
    fn refuse(&mut self, refusal: Refusal, out: &mut Vec<u8>) {
        let refusal = refuse(&self.run, refusal);
        self.finish(&refusal_document::document(&refusal, CONTRACT), out);
    }

    /// Writes the outcome of the run.
    fn end(&mut self, job: &Snapshot<'_>, out: &mut Vec<u8>) {
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
