//! Agents of the task contract.
//!
//! The request is posted, and the agent's answer decides the rest: a task that has ended is the simple pattern, any
//! other is polled until it has. What an answer means is decided in [`poll`], when to poll again in [`pace`];
//! [`conversation`] is the conversation, and [`mod@cancel`] its end where the task is no longer wanted.

mod cancel;
mod conversation;
mod memory;
mod pace;
mod poll;
mod question;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::Contract;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::Health;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{Attempt, Gone, Link, Reached};
use crosspoint_exchange::trace::Trace;

use self::conversation::Conversation;
use super::cancelling::{Cancellations, Told};
use super::remote::Agent;
use super::{Fate, Spoken};
use crate::backend::trace_of;
use crate::config;

/// ALL-3, ALL-4: a task goes on when the server ends, and is polled again afterwards.
pub(super) static SPOKEN: Spoken = Spoken {
    contract: Contract::Task,
    silence: Duration::from_secs(30),
    fate: Fate::WentOn,
    has_mode: false,
    has_stream: false,
    whole_address: false,
    program: None,
    endpoints: &["/tasks"],
    link: |agent, settled| Arc::new(Task::new(agent, settled)),
};

pub(super) struct Task {
    agent: Agent,
    /// Whether work that may have begun may begin again, if the operator says so (ALL-3).
    repeatable: Option<bool>,
    name: String,
    cancellations: Cancellations,
}

impl Task {
    fn new(agent: Agent, settled: &config::Agent) -> Task {
        let (repeatable, name) = (settled.repeatable, settled.name.clone());
        Task { agent, repeatable, name, cancellations: Cancellations::new() }
    }
}

impl Link for Task {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move { run(&self, &Arc::new(attempt)).await })
    }

    fn stop_ended(self: Arc<Self>, job: Arc<Job>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { cancel(&self, job.id(), trace_of(&job, job.attempts)).await })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(async move { self.agent.health().await })
    }

    fn token_refused_since(&self) -> Option<Time> {
        self.agent.token_refused_since()
    }

    fn reached(&self) -> Option<Reached> {
        self.agent.reached()
    }
}

async fn run(task: &Arc<Task>, attempt: &Arc<Attempt>) -> Result<Success, Failed> {
    let request = task.agent.request(attempt).await?;
    let trace = request.trace.clone();
    let mut conversation = Conversation::new(task, attempt, request);
    let result = tokio::select! {
        // An answer that has come counts, even if the attempt is stopped in this very moment.
        biased;
        result = conversation.work() => task.agent.concluded(result),
        () = attempt.stopped() => Err(super::gone(Gone)),
    };
    // If only the attempt was given up, the next one carries the same id, and what the agent still does is what is
    // wanted.
    if result.is_err() && attempt.is_over() {
        cancel(task, attempt.job().id(), trace).await;
    }
    result
}

/// Tells the agent that a task is no longer wanted: once, and if it has not heard, again without being waited for.
async fn cancel(task: &Arc<Task>, job: JobId, trace: Trace) {
    if task.cancellations.tell(cancel::tell(&task.agent.http, job, &trace)).await == Told::Unheard {
        let task = task.clone();
        tokio::spawn(async move {
            let tell = || cancel::tell(&task.agent.http, job, &trace);
            task.cancellations.tell_on(&task.name, job, tell).await;
        });
    }
}
