//! Callers that get their messages later: at their callback, or when they ask for them (MSG-17.4).

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};
use crosspoint_http::door::message::Requested;

use super::Polling;
use super::sender::{Presented, refused};
use crate::backend::Orchestrator;
use crate::server::App;

impl App {
    /// Sees to it that a caller is told of its work. If the answer to its request tells the outcome, nothing more is
    /// owed: a caller that does not get the answer sends its request again.
    pub(super) fn tell_later(&self, recipient: &Arc<str>, requested: &Requested<Orchestrator>) {
        let watch = requested.work.job.0.clone();
        if !requested.is_told {
            return self.deliveries().follow(recipient, watch);
        }
        let (engine, job) = (self.engine().clone(), watch.job().id());
        tokio::spawn(async move {
            if engine.told(job).await.is_err() {
                tracing::warn!(%job, "it cannot be noted that the caller was told; it is told again");
            }
        });
    }

    /// Returns the messages for a caller that pulls.
    pub(super) async fn pulled_by_caller(
        &self,
        presented: &Presented,
        poll: &Polling,
        until: Instant,
    ) -> Result<Vec<Bytes>, Refusal> {
        let known = self.callers().iter().find(|caller| caller.name == poll.name);
        let caller = known.ok_or_else(Refusal::no_such_agent)?;
        match presented.token() {
            Some(token) if caller.is_token(token) => {}
            Some(_) if caller.has_token() => return Err(refused(&caller.name, TokenStatus::Unknown)),
            None if caller.has_token() => return Err(refused(&caller.name, TokenStatus::Missing)),
            Some(_) | None => {}
        }
        Ok(self.deliveries().take(&caller.name, poll.max as usize, until, &poll.acks).await)
    }
}
