//! Reading a stream: progress as it comes, and the outcome the moment it is there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::run::clause::{RUN_5_3, RUN_6_3};
use crosspoint_contracts::run::{Follower, Heard, Meaning, Role, StreamEvent, Violation};
use crosspoint_contracts::sse::{Event, Limits, Reader, TooLarge};
use crosspoint_contracts::{Kind, job};
use crosspoint_exchange::reply;
use crosspoint_http::call::{Answer, Unread};
use futures_util::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::report::Reports;
use super::{Run, RunAttempt, verdict};
use crate::link::record::{Note, Record};
use crate::link::whole::{self, Head, Verdict};

/// Longest time, and most bytes, for reading on after an outcome. It shows whether the agent keeps the rules and
/// whether the connection can be used again.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);

/// Longest wait for a better terminal event after one that lacks a required member and yet says how the run ended
/// (RUN-7.2).
const HELD_TIME_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// A line holds the name of its field besides the data.
const FIELD_BYTES: usize = "data: ".len();

/// A stream that is being read.
struct Stream {
    answer: Answer,
    reader: Reader,
    follower: Follower,
    record: Record,
    /// The last terminal event that could not be taken as the outcome.
    refused: Option<StreamEvent>,
    /// Until when a better terminal event is waited for, once there is one that counts otherwise.
    held_until: Option<Instant>,
    events: u64,
    bytes: u64,
}

/// Whether an outcome ends its stream by the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsLast {
    Yes,
    No,
}

fn noted(Violation { clause, level, message }: Violation) -> Note {
    Note { clause, level, what: message }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Why a stream is over without an outcome.
enum Over {
    /// The agent ended it.
    Ended,
    /// The connection was lost.
    Lost,
    /// Its framing is wrong.
    Garbled,
    /// An event is longer than it may be.
    TooLong,
}

impl From<TooLarge> for Over {
    fn from(_: TooLarge) -> Over {
        Over::TooLong
    }
}

impl From<Unread> for Over {
    fn from(unread: Unread) -> Over {
        match unread {
            Unread::TooLong => Over::TooLong,
            Unread::Lost => Over::Lost,
            Unread::Garbled => Over::Garbled,
        }
    }
}

impl Run {
    pub(super) async fn follow(&self, answer: Answer, errand: RunAttempt) -> Result<Success, Failed> {
        let limit = self.agent.answer_bytes_max;
        let limits =
            Limits { line_bytes_max: limit.saturating_add(FIELD_BYTES), event_bytes_max: limit, ..Limits::default() };
        let head = Head::of(&answer);
        let mut stream = Stream {
            answer,
            reader: Reader::new(limits),
            follower: Follower::new(&errand.request_id),
            record: errand.record,
            refused: None,
            held_until: None,
            events: 0,
            bytes: 0,
        };
        let mut reports = Reports::new(&errand.attempt, self.agent.silence(&errand.attempt));
        let found = stream.outcome(&mut reports).await;
        reports.last();
        let (events, bytes, duration_ms) = (stream.events, stream.bytes, errand.began.elapsed().as_millis());
        tracing::debug!(job = %errand.attempt.job().id(), events, bytes, duration_ms, "the stream was read");
        match found {
            Ok((event, is_last)) => {
                if !head.status.is_success() {
                    stream.record.clause(&RUN_5_3, "the stream has an outcome, and its HTTP status says otherwise");
                }
                if is_last == IsLast::Yes {
                    self.leave(stream);
                }
                verdict::of_event(event)
            }
            Err(over) => {
                let over = match over {
                    Over::Ended => stream.unended(head),
                    Over::Lost => verdict::of_lost_stream(),
                    Over::Garbled => verdict::of_garbled_stream(),
                    Over::TooLong => whole::of_unread(Unread::TooLong, head, b"", limit),
                };
                stream.record.all(over.violations);
                over.result
            }
        }
    }

    /// Leaves a stream after its outcome. The outcome is not held up; what follows it is read meanwhile.
    fn leave(&self, mut stream: Stream) {
        // Usually the end has come with the outcome, or comes with the next packet.
        match stream.answer.chunk().now_or_never() {
            Some(Ok(None)) => stream.finish(),
            Some(Err(_)) => {}
            Some(Ok(Some(bytes))) => self.linger(stream, Some(bytes)),
            None => self.linger(stream, None),
        }
    }

    fn linger(&self, stream: Stream, bytes: Option<Bytes>) {
        if let Ok(permit) = Arc::clone(&self.lingering).try_acquire_owned() {
            tokio::spawn(stream.listen(bytes, permit));
        }
    }
}

impl Stream {
    /// Reads up to the outcome. Says whether the outcome is the last event as far as is known, or the best there was.
    async fn outcome(&mut self, reports: &mut Reports<'_>) -> Result<(StreamEvent, IsLast), Over> {
        let mut events = Vec::new();
        loop {
            let held_until = self.held_until;
            let chunk = tokio::select! {
                biased;
                () = reports.made() => continue,
                // Before the next bytes, because they may come without end.
                () = until(held_until) => {
                    self.record.clause(&RUN_6_3, "the stream is not closed after its terminal event");
                    return self.held().ok_or(Over::Ended);
                }
                chunk = self.answer.chunk() => chunk,
            };
            let over = match chunk {
                Ok(Some(bytes)) => {
                    self.bytes += bytes.len() as u64;
                    reports.heard();
                    // What came before a limit was passed counts.
                    let over = self.reader.push(&bytes, &mut events).err().map(Over::from);
                    self.answer.keeps(self.reader.held_bytes());
                    over
                }
                Ok(None) => Some(self.reader.finish(&mut events).err().map_or(Over::Ended, Over::from)),
                // An event that is whole except for its last line may be the outcome.
                Err(unread) => Some(self.reader.finish(&mut events).err().map_or(unread.into(), Over::from)),
            };
            if let Some(outcome) = self.hear(&mut events, reports) {
                return Ok((outcome, IsLast::Yes));
            }
            if let Some(over) = over {
                return if self.held_until.is_some() { self.held().ok_or(over) } else { Err(over) };
            }
        }
    }

    /// Takes events, including those that came together with the outcome.
    fn hear(&mut self, events: &mut Vec<Event>, reports: &mut Reports<'_>) -> Option<StreamEvent> {
        let mut outcome = None;
        for event in events.drain(..) {
            match self.meaning(event) {
                // That it has begun is known; what else it says about that is for callers of the same contract.
                Meaning::News(event) if event.role() == Role::Started => {
                    let began = has_own(&event.data).then(|| reply::began(Kind::RunStream, &event.data.into()));
                    began.flatten().into_iter().for_each(|began| reports.progress(began));
                }
                Meaning::News(event) => {
                    let job = event.job();
                    if let Some(job) = job.filter(|job| matches!(job.event(), job::Event::Progress { .. })) {
                        reports.progress(reply::progress(&job, Kind::RunStream, &event.data.into()));
                    }
                }
                Meaning::Outcome(event) => outcome = Some(event),
                Meaning::Held => self.held_until = Some(Instant::now() + HELD_TIME_MAX),
                Meaning::Nothing => {}
            }
        }
        outcome
    }

    /// Returns the terminal event that counts because no better one came.
    fn held(&mut self) -> Option<(StreamEvent, IsLast)> {
        let follower = std::mem::replace(&mut self.follower, Follower::new(""));
        follower.end().0.map(|event| (event, IsLast::No))
    }

    fn meaning(&mut self, event: Event) -> Meaning {
        self.events += 1;
        let Heard { meaning, violations, refused } = self.follower.hear(event);
        self.refused = refused.or(self.refused.take());
        for violation in violations {
            self.record.note(noted(violation));
        }
        meaning
    }

    /// Judges a stream that ended without an outcome.
    fn unended(&mut self, head: Head) -> Verdict {
        let follower = std::mem::replace(&mut self.follower, Follower::new(""));
        if let (_, Some(breach)) = follower.end() {
            self.record.note(noted(breach));
        }
        let refused = self.refused.take().map(|event| event.data).unwrap_or_default();
        verdict::of_unended_stream(head, refused.as_bytes())
    }

    /// Takes what is left of a stream that has its outcome.
    fn finish(&mut self) {
        let mut events = Vec::new();
        let _ = self.reader.finish(&mut events);
        for event in events {
            self.meaning(event);
        }
    }

    /// Reads what comes after the outcome, for a while (RUN-7).
    async fn listen(mut self, bytes: Option<Bytes>, _permit: OwnedSemaphorePermit) {
        let end = tokio::time::timeout(LINGER_TIME_MAX, self.rest(bytes)).await;
        if end != Ok(true) {
            self.record.clause(&RUN_6_3, "the stream is not closed after its terminal event");
        }
    }

    /// Returns whether the stream comes to its end within bounds.
    async fn rest(&mut self, bytes: Option<Bytes>) -> bool {
        let mut left = LINGER_BYTES_MAX;
        let mut events = Vec::new();
        let mut next = bytes;
        loop {
            if let Some(bytes) = next {
                let Some(less) = left.checked_sub(bytes.len()) else { return false };
                left = less;
                if self.reader.push(&bytes, &mut events).is_err() {
                    return false;
                }
                self.answer.keeps(self.reader.held_bytes());
                for event in events.drain(..) {
                    self.meaning(event);
                }
            }
            next = match self.answer.chunk().await {
                Ok(Some(bytes)) => Some(bytes),
                Ok(None) => {
                    self.finish();
                    return true;
                }
                // The connection is closed, if not cleanly.
                Err(_) => return true,
            };
        }
    }
}

/// Whether the data of `started` says more than which run has begun.
fn has_own(data: &str) -> bool {
    const KNOWN: [&str; 4] = ["request_id", "task_type", "event", "type"];
    let tape = Tape::scan(data.as_bytes());
    let root = tape.as_ref().ok().and_then(Tape::root);
    root.is_some_and(|root| root.members().any(|(name, _)| !KNOWN.contains(&&*name.decode())))
}
