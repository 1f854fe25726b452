//! Checks of agents' health, which decide whether an agent gets work again (MSG-7).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::engine::Engine;
use crate::breaker::{self, Health};
use crate::core::{AgentCommand, Command, Membership, Presence};

/// Longest time that a health check may take before it counts as failed.
const CHECK_TIME_MAX: Duration = Duration::from_secs(10);

impl Engine {
    pub(super) fn check(&self, agent: Arc<str>) {
        let link = self.link(&agent);
        let engine = self.clone();
        self.handle().spawn(async move {
            let health = match link {
                None => engine.presence_of(&agent),
                Some(link) => {
                    let check = AssertUnwindSafe(async move { link.check().await }).catch_unwind();
                    let health = tokio::time::timeout(CHECK_TIME_MAX, check).await;
                    health.ok().and_then(Result::ok).unwrap_or(Health::Sick)
                }
            };
            let event = AgentCommand::Breaker(breaker::Event::Checked(health));
            if let Ok(answer) = engine.inbox().put(Command::Agent(agent, event)) {
                let _ = answer.await;
            }
        });
    }

    /// Returns the health of an agent that joined: an agent whose workers keep a lease is well.
    fn presence_of(&self, name: &str) -> Health {
        let here = |joined: Membership| matches!(joined.presence, Presence::Here { .. });
        let joined = self.agent(name).and_then(|agent| agent.joined);
        if joined.is_some_and(here) { Health::Well } else { Health::Sick }
    }
}
