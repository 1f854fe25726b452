//! Agents of the task contract.
//!
//! The request is posted, and the agent's answer decides the rest: a task that has ended is the simple pattern, any
//! other is polled until it has. What an answer means is decided in [`poll`], when to poll again in [`pace`];
//! [`conversation`] is the conversation.

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
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use crosspoint_http::call::Media;

use self::conversation::Conversation;
use super::remote::Agent;
use super::{Fate, Spoken};

/// Longest time that an agent has to take a cancellation. No result depends on it.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(5);

/// ALL-3, ALL-4: a task goes on when the server ends, and is polled again afterwards.
pub(super) static SPOKEN: Spoken = Spoken {
    contract: Contract::Task,
    silence: Duration::from_secs(30),
    fate: Fate::WentOn,
    has_mode: false,
    has_stream: false,
    endpoints: &["/tasks"],
    link: |agent, settled| Arc::new(Task::new(agent, settled.repeatable)),
};

pub(super) struct Task {
    agent: Agent,
    /// Whether work that may have begun may begin again, if the operator says so (ALL-3).
    repeatable: Option<bool>,
}

impl Task {
    pub(super) fn new(agent: Agent, repeatable: Option<bool>) -> Task {
        Task { agent, repeatable }
    }
}

impl Link for Task {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move { run(&self, &Arc::new(attempt)).await })
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(async move { self.agent.health().await })
    }

    fn token_refused_since(&self) -> Option<Time> {
        self.agent.token_refused_since()
    }
}

async fn run(task: &Task, attempt: &Arc<Attempt>) -> Result<Success, Failed> {
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
        let http = &task.agent.http;
        let endpoint = http.endpoint(&format!("tasks/{}/cancel", attempt.job().id()));
        let cancelling = http.post(&endpoint, "{}", &trace, Media::Json);
        if let Ok(Ok(answer)) = tokio::time::timeout(CANCEL_TIME_MAX, cancelling).await {
            answer.dismiss().await;
        }
    }
    result
}
