//! Following a job across broken connections: a server that restarts, a proxy that gives up.
//!
//! The number of the last event is the only state. The server is asked for the events after it, again and again with
//! growing pauses, until the outcome has come or no server has answered for a minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crosspoint_contracts::sse::{self, Reader};
use reqwest::Response;

use super::failed::Failed;
use super::{Client, segment};

/// Longest time without an answer before following is given up. The job goes on all the same.
const AWAY_TIME_MAX: Duration = Duration::from_secs(60);
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// One event as it came. It holds content, so it has no `Debug`.
pub(crate) struct Event {
    pub(crate) n: u32,
    pub(crate) name: String,
    /// A JSON object.
    pub(crate) data: String,
}

/// What following returns next.
pub(crate) enum Heard {
    Event(Event),
    /// The connection broke, and is being made again. Returned once.
    Lost,
    /// The outcome has come.
    End,
}

/// How far a job is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    UntilTheEnd,
    UntilNow,
}

pub(crate) struct Follow {
    client: Client,
    extent: Extent,
    id: String,
    after: u32,
    stream: Option<(Response, Reader)>,
    ready: VecDeque<Event>,
    /// The outcome was returned.
    done: bool,
    /// No event has come since the connection was made.
    barren: bool,
    away: Option<Away>,
    is_lost_reported: bool,
}

/// How long no server has answered.
pub(super) struct Away {
    since: Instant,
    pause: Duration,
}

impl Away {
    pub(super) fn begin() -> Away {
        Away { since: Instant::now(), pause: PAUSE_FIRST }
    }

    /// Waits a little, unless the server has been away for too long or will not come back.
    pub(super) async fn wait(&mut self, client: &Client, failed: Failed) -> Result<(), Failed> {
        if !failed.passes() || self.since.elapsed() > AWAY_TIME_MAX || client.is_embedded() {
            return Err(failed);
        }
        // It ends when its work rests, and nothing comes back in its place.
        if !client.is_server() {
            let hint = "give the command again: what was done is in the store";
            return Err(Failed::other("the command that had the store has ended", hint));
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}

impl Event {
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.name.as_str(), "completed" | "failed" | "cancelled")
    }
}

impl Follow {
    pub(super) fn new(client: Client, id: &str, after: u32, extent: Extent) -> Follow {
        Follow {
            client,
            extent,
            id: id.to_owned(),
            after,
            stream: None,
            ready: VecDeque::new(),
            done: false,
            barren: false,
            away: None,
            is_lost_reported: false,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Heard, Failed> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                (self.after, self.away, self.barren) = (event.n, None, false);
                self.done = event.is_end();
                return Ok(Heard::Event(event));
            }
            if self.done {
                return Ok(Heard::End);
            }
            if let Err(failed) = self.fill().await {
                self.stream = None;
                self.pause(failed).await?;
                if !std::mem::replace(&mut self.is_lost_reported, true) {
                    return Ok(Heard::Lost);
                }
            }
        }
    }

    /// Reads until there is an event, or the connection breaks.
    async fn fill(&mut self) -> Result<(), Failed> {
        if self.stream.is_none() {
            self.client.look_again();
            let query = if self.extent == Extent::UntilNow { "?follow=false" } else { "" };
            let path = format!("/api/v1/jobs/{}/events{query}", segment(&self.id));
            let response = self.client.stream(&path, Some(self.after)).await?;
            (self.stream, self.barren) = (Some((response, Reader::new(sse::Limits::unbounded()))), true);
        }
        let Some((response, reader)) = &mut self.stream else { return Ok(()) };
        let chunk = response.chunk().await.map_err(|error| Failed::of(&self.client.shown(), error))?;
        let Some(bytes) = chunk else { return self.ended().await };
        let mut events = Vec::new();
        let pushed = reader.push(&bytes, &mut events);
        pushed.map_err(|error| Failed::other(error.to_string(), "crosspoint jobs show shows where the job is"))?;
        self.ready.extend(events.into_iter().filter_map(event).filter(|event| event.n > self.after));
        Ok(())
    }

    /// Handles the end of the stream: the server stops, or there are no more events.
    async fn ended(&mut self) -> Result<(), Failed> {
        self.stream = None;
        if self.extent == Extent::UntilNow {
            self.done = true;
            return Ok(());
        }
        if self.barren && self.client.job(&self.id).await?.outcome().is_some() {
            self.done = true;
            return Ok(());
        }
        Err(Failed::ended())
    }

    async fn pause(&mut self, failed: Failed) -> Result<(), Failed> {
        self.away.get_or_insert_with(Away::begin).wait(&self.client, failed).await
    }
}

/// Reads an event. Events of another form are passed over.
fn event(event: sse::Event) -> Option<Event> {
    let n = event.id?.parse().ok()?;
    let data = String::from_utf8(event.data?).ok()?;
    Some(Event { n, name: event.name?, data })
}
