//! Agents of the message contract.
//!
//! A request is pushed to its agent, or waits until the agent pulls it ([`outbox`]); from then on both are the same
//! [`conversation`]. What the agent says comes on the connection of a push, or to the server's endpoint, which finds
//! the conversation in the [`hub`]. [`life`] decides whether an agent is there, [`verdict`] what it says means,
//! [`steps`] takes what it prints, [`chunks`] puts long output together, and [`sending`] writes what goes out. The
//! transport is in [`push`], and in the server's endpoints.

mod agent;
mod chunks;
mod conversation;
mod hub;
mod life;
mod outbox;
mod push;
mod quiet;
mod registered;
mod sending;
mod steps;
mod verdict;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::Kind;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::{Health, OPEN_FOR};
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{Attempt, Link, Reached, Watch};
use crosspoint_exchange::reply::Meaning;
use crosspoint_exchange::trace::Trace;
use uuid::Uuid;

pub(crate) use self::agent::MessageAgent;
use self::conversation::Conversation;
pub(crate) use self::hub::{Heard, Hub};
pub(crate) use self::life::Beat;
pub(crate) use self::life::SILENT_AFTER;
pub(crate) use self::registered::Registered;
pub(crate) use self::sending::objection;
use super::cancelling::Told;
use super::remote;
use super::status::is_absent;
use crate::backend::trace_of;

/// The name of the contract, as agents are listed with it.
pub(crate) const CONTRACT_NAME: &str = "message";

/// How long an agent may be silent where nothing is configured (MSG-6).
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// How long a watch for the next attempt waits at a time.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The way to one agent of the message contract.
pub(super) struct Message {
    agent: Arc<MessageAgent>,
    hub: Arc<Hub>,
}

impl Link for Message {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move { run(&self, attempt).await })
    }

    fn tidy(self: Arc<Self>, job: Arc<Job>, number: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            self.hub.concluded(job.id(), number);
            if self.hub.has_left(job.id(), number) {
                steps::remove(self.hub.spool(), job.id(), number).await;
            }
        })
    }

    fn stop_ended(self: Arc<Self>, job: Arc<Job>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { cancel(&self, job.id(), trace_of(&job, job.attempts)).await })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(async move { check(&self.agent).await })
    }

    fn token_refused_since(&self) -> Option<Time> {
        self.agent.token_state.refused_since()
    }

    fn reached(&self) -> Option<Reached> {
        let http = &self.agent.push.as_ref()?.http;
        Some(Reached { address: http.address(), trouble: http.trouble() })
    }
}

async fn run(message: &Arc<Message>, attempt: Attempt) -> Result<Success, Failed> {
    let (job, number) = (attempt.job().id(), attempt.number());
    let begun = message.hub.begin(job, number, &message.agent.name);
    let bytes_max = attempt.job().request.limits.output_bytes.unwrap_or(message.agent.output_bytes_max());
    let steps = steps::Steps::new(message.hub.spool(), bytes_max);
    let mut conversation = Conversation::new(message, attempt, begun, steps);
    let result = conversation.work().await;
    // An agent that has said how the work ended, or never had it, need not be told.
    if result.is_err() && conversation.was_sent && !conversation.has_ended {
        let trace = trace_of(conversation.attempt.job(), number);
        if conversation.attempt.is_over() {
            // Boxed, because hardly any attempt comes here, and each would be as large as this is.
            Box::pin(cancel(message, job, trace)).await;
        } else if let Some(watch) = conversation.attempt.watch() {
            let (message, name) = (message.clone(), message.agent.name.clone());
            tokio::spawn(async move {
                if leaves(&watch, &name, number).await {
                    cancel(&message, job, trace).await;
                }
            });
        }
    }
    concluded(&message.agent, result)
}

/// Waits until the job of an attempt that was given up goes on or ends. Returns whether the agent is rid of it: the
/// next attempt carries the same id, so an agent that gets it again goes on with what is wanted.
async fn leaves(watch: &Watch, agent: &Arc<str>, number: u32) -> bool {
    loop {
        let job = watch.job();
        if let Some(outcome) = job.outcome() {
            // Between two attempts a success can only be the agent's own, which came late.
            return outcome.status != Status::Completed;
        }
        if job.attempts > number {
            return job.agent.as_ref() != Some(agent);
        }
        let until = Instant::now() + LOOK_AGAIN;
        let now = watch.moved(job.events, until).await;
        if now.events == job.events && Instant::now() < until {
            // The engine ends all waits when it is about to stop. The next start has the job, and goes on with it.
            return false;
        }
    }
}

/// Returns how a message says that work ended; `None` if it says that the work goes on.
pub(crate) fn outcome_of(kind: Kind, document: &Bytes, agent_types: &[Box<str>]) -> Option<Result<Success, Failed>> {
    match verdict::read(kind, document, agent_types) {
        Ok(read) => match read.meaning {
            Meaning::Ended(result) => Some(result.map_err(|failed| *failed)),
            Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_) => None,
        },
        Err(unreadable) => Some(Err(unreadable.failed)),
    }
}

/// Writes that work is over, for an agent that speaks of it as if it were not.
pub(crate) fn over(hub: &Hub, agent: &str, job: JobId, trace: &Trace) -> Bytes {
    let agent_type = hub.agent(agent).and_then(|agent| agent.agent_type.clone());
    let to_agent = agent_type.as_deref().unwrap_or(sending::AGENT_TYPE_DEFAULT);
    sending::cancelled(Uuid::new_v4(), to_agent, job, trace)
}

/// Takes note of how an attempt ended, and returns its result as the job's caller is told it (RUN-5).
fn concluded(agent: &MessageAgent, result: Result<Success, Failed>) -> Result<Success, Failed> {
    match &result {
        Err(failed) if failed.failure == Failure::Unauthenticated => agent.token_state.refused(),
        Err(failed) if failed.document.is_none() => {}
        Ok(_) | Err(_) => agent.token_state.accepted(),
    }
    result.map_err(Failed::by_agent)
}

/// Tells the agent that work is no longer wanted (MSG-19). One that pulls finds the message with its next poll.
async fn cancel(message: &Arc<Message>, job: JobId, trace: Trace) {
    let agent = &message.agent;
    if agent.pulls() {
        if !agent.leave_cancel(job, sending::cancel(agent, job, &trace)) {
            tracing::warn!(%job, agent = &*agent.name, "too many cancellations wait; the agent is not told");
        }
        return;
    }
    if agent.cancellations.tell(tell(agent, job, &trace)).await == Told::Unheard {
        let agent = agent.clone();
        tokio::spawn(async move {
            let tell = || tell(&agent, job, &trace);
            agent.cancellations.tell_on(&agent.name, job, tell).await;
        });
    }
}

/// Tells a pushed agent once that work is no longer wanted.
async fn tell(agent: &MessageAgent, job: JobId, trace: &Trace) -> Told {
    let (_, document) = sending::cancel(agent, job, trace);
    let Some(status) = push::tell(agent, document, trace).await else { return Told::Unheard };
    // An agent that does not know this message, or not this work, cannot be stopped.
    let knows = status.is_success() || is_absent(status) || matches!(status.as_u16(), 400 | 409 | 410 | 422);
    if knows { Told::Heard } else { Told::Unheard }
}

/// MSG-7.4: a fresh heartbeat or poll is health. A pushed agent that sends none is asked.
async fn check(agent: &MessageAgent) -> Health {
    if agent.is_fresh(OPEN_FOR) {
        return Health::Well;
    }
    match &agent.push {
        Some(push) if agent.last_beat().is_none() => remote::health(&push.http).await,
        Some(_) | None => Health::Sick,
    }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::message::Presence;
    use crosspoint_http::call::AnswerRoom;

    use super::agent::Plan;
    use super::*;

    fn pulling() -> Arc<MessageAgent> {
        let plan = Plan {
            name: "puller".into(),
            agent_type: None,
            protocol_version: "1.0".to_owned(),
            is_configured: true,
            token: None,
            url: None,
            concurrency: 1,
            silence: None,
            answer_bytes_max: 1,
            carry: true,
            told: 0,
        };
        Arc::new(MessageAgent::new(plan, "server", &Arc::from([]), &AnswerRoom::new(0), None))
    }

    #[tokio::test]
    async fn a_fresh_poll_or_heartbeat_is_the_health_of_an_agent_that_pulls() {
        assert_eq!(check(&pulling()).await, Health::Sick);
        let polls = pulling();
        drop(polls.poll(1));
        assert_eq!(check(&polls).await, Health::Well);
        let beats = pulling();
        beats.beats(Beat { at: Time(0), status: Presence::Online, resources: None });
        assert_eq!(check(&beats).await, Health::Well);
    }
}
