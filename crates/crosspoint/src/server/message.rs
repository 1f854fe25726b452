//! `/api/agent/...`: the message contract over HTTP, for its callers and its agents (MSG-11 to MSG-19).
//!
//! One endpoint takes every message. A `work_request` is a caller's, and becomes a job. A heartbeat says that an agent
//! is there. Any other message is about work: an agent's reply, or a caller's `error` that cancels the work. Agents and
//! callers that pull ask for their messages at another endpoint. Whatever is refused here is answered with an `error`.
//!
//! In reading order: [`sender`] says who speaks, [`reply`] takes what agents say about work, [`register`] takes
//! registrations and heartbeats.

mod callers;
mod register;
mod reply;
mod sender;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::message::About;
use crosspoint_exchange::admission;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::body::Received;
use crosspoint_http::door::message::{self, CONTRACT};
use crosspoint_http::door::{Asking, SentBy};
use crosspoint_http::json::{Object, push_array, response};
use crosspoint_http::query::{parameters, seconds, unknown, wrong};
use crosspoint_http::{Refused, long};
use uuid::Uuid;

use super::App;
use super::access::Who;

pub(super) use self::register::register_agent;

/// Most messages in the answer to one poll.
const MESSAGES_MAX: u32 = 1_000;

/// Most acknowledgements in one poll.
const ACKS_MAX: usize = 10_000;

pub(super) async fn take_message(
    State(app): State<App>,
    who: Who,
    uri: Uri,
    received: Received,
) -> Result<Response, Refused> {
    let bytes = received.bytes.clone();
    let about = |refusal| admission::about(refusal, CONTRACT, &bytes, app.hub().agent_types());
    let looked = long::look(bytes.len(), || About::of(&bytes));
    match looked.kind {
        // Of a message in another version nothing more is looked at (MSG-10.3); the door says so.
        Some(kind @ (Kind::WorkStatus | Kind::WorkResult | Kind::MessageError)) if looked.unspoken().is_none() => {
            Ok(app.hear(kind, looked, &who, received).await.map_err(about)?)
        }
        // Anything else is not the message of an agent; the door says what is wrong with it.
        Some(_) | None => Ok(app.request_work((&who, &looked), &uri, received).await.map_err(about)?),
    }
}

pub(super) async fn pull_messages(State(app): State<App>, who: Who, uri: Uri) -> Result<Response, Refused> {
    let messages = app.polled(&who, &uri).await.map_err(Refusal::of_no_id)?;
    let mut out = Vec::with_capacity(16 + messages.iter().map(Bytes::len).sum::<usize>());
    let mut object = Object::open(&mut out);
    push_array(object.name("messages"), &messages, |out, message| out.extend_from_slice(message));
    object.close();
    Ok(response(StatusCode::OK, out))
}

impl App {
    /// Makes a job of a `work_request`.
    async fn request_work(
        &self,
        (who, looked): (&Who, &About),
        uri: &Uri,
        received: Received,
    ) -> Result<Response, Refusal> {
        let from = self.caller_of(who, looked.from_agent.as_deref())?;
        let agent_types = self.hub().agent_types().clone();
        let misspelled = looked.misspelled.iter().map(|name| {
            format!("MSG-3: `payload` has no `{name}`, but a member of nearly that name, which is kept and not used")
        });
        let warnings = from.untold(self.callers()).into_iter().chain(misspelled).collect();
        let asking = Asking { notify: from.notify.clone(), agent_types, warnings, ..Asking::default() };
        let doors = self.doors();
        let requested = message::request_work(&doors, SentBy(from.caller), asking, uri, received).await?;
        let owed = from.notify.map(|recipient| self.owed(recipient, requested.work.job.0.clone()));
        let answered = message::answer_work(&doors, &requested).await?;
        if let Some(owed) = owed.filter(|_| answered.is_told) {
            owed.told().await;
        }
        Ok(answered.response)
    }

    /// Returns the messages that a poll asks for.
    async fn polled(&self, who: &Who, uri: &Uri) -> Result<Vec<Bytes>, Refusal> {
        let poll = Polling::read(uri, self.0.wait_max)?;
        let until = Instant::now() + poll.wait;
        tokio::select! {
            // What the poll acknowledges counts.
            biased;
            messages = self.messages(who, &poll, until) => messages,
            // An empty answer would be followed by the next poll at once.
            () = self.stopping().cancelled() => Err(Refusal::stopping()),
        }
    }

    /// Returns the messages for an agent or a caller that pulls.
    async fn messages(&self, who: &Who, poll: &Polling, until: Instant) -> Result<Vec<Bytes>, Refusal> {
        self.speaks_for(who, &poll.name)?;
        if let Some(agent) = self.hub().agent(&poll.name) {
            self.authenticated(&agent, who)?;
            let acks: Vec<Uuid> = poll.acks.iter().filter_map(|id| id.parse().ok()).collect();
            agent.acknowledges(&acks);
            return Ok(self.hub().poll(self.engine(), &agent, poll.max, until).await);
        }
        self.pulled_by_caller(who, poll, until).await
    }
}

/// `?agent=NAME&wait=S&max=N&ack=ID,ID` (MSG-14).
struct Polling {
    name: String,
    wait: std::time::Duration,
    max: u32,
    acks: Vec<String>,
}

impl Polling {
    fn read(uri: &Uri, wait_max: std::time::Duration) -> Result<Polling, Refusal> {
        let mut poll = Polling { name: String::new(), wait: std::time::Duration::ZERO, max: 1, acks: Vec::new() };
        for (name, value) in parameters(uri)? {
            match name.as_str() {
                "agent" => poll.name = value,
                "wait" => poll.wait = seconds(&value, wait_max)?,
                "max" => {
                    let max = value.parse().ok().filter(|max| (1..=MESSAGES_MAX).contains(max));
                    poll.max = max.ok_or_else(|| wrong("max", &format!("a number from 1 to {MESSAGES_MAX}")))?;
                }
                "ack" => poll.acks.extend(value.split(',').filter(|id| !id.is_empty()).map(str::to_owned)),
                _ => return Err(unknown("agent, wait, max, ack")),
            }
        }
        if poll.name.is_empty() {
            return Err(Refusal::invalid("the query names no agent", "add ?agent=NAME").clause("MSG-14"));
        }
        if poll.acks.len() > ACKS_MAX {
            return Err(wrong("ack", &format!("at most {ACKS_MAX} ids")));
        }
        Ok(poll)
    }
}

/// The answer that a message was taken (MSG-17): nothing more is to be said.
fn taken() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// An agent's name, for log lines and the engine.
fn shared(name: &str) -> Arc<str> {
    name.into()
}
