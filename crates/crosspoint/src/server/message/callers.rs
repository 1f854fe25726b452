//! Callers that get their messages later: at their callback, or when they ask for them (MSG-17.4).

use std::time::Instant;

use bytes::Bytes;
use crosspoint_engine::runtime::Watch;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};

use super::Polling;
use super::sender::{Presented, refused};
use crate::config::Caller;
use crate::server::App;

impl App {
    /// Sees to it that a caller is told of its work, unless the answer to its request tells it already: a caller that
    /// does not get that answer sends its request again.
    pub(super) async fn tell_later(&self, recipient: &str, watch: Watch, is_told: bool) {
        if !is_told || self.engine().told(watch.job().id()).await.is_err() {
            self.deliveries().follow(recipient, watch);
        }
    }

    /// Returns the messages for a caller that pulls.
    pub(super) async fn pulled_by_caller(
        &self,
        presented: &Presented,
        poll: &Polling,
        until: Instant,
    ) -> Result<Vec<Bytes>, Refusal> {
        let named = self.callers().iter().find(|caller| caller.name == poll.name);
        self.is_caller(named.ok_or_else(no_such_name)?, presented)?;
        let max = usize::try_from(poll.max).unwrap_or(usize::MAX);
        Ok(self.deliveries().take(&poll.name, max, until, &poll.acks).await)
    }

    /// Checks that a pull that claims to come from this caller does (MSG-13).
    fn is_caller(&self, caller: &Caller, presented: &Presented) -> Result<(), Refusal> {
        let status = match presented.token() {
            Some(token) if caller.is_token(token) => return Ok(()),
            Some(token) if self.is_caller_token(token) || self.owner_of(token).is_some() => TokenStatus::WrongAgent,
            Some(_) if caller.has_token() => TokenStatus::Unknown,
            None if caller.has_token() => TokenStatus::Missing,
            // Nothing is asked of this caller.
            Some(_) | None => return Ok(()),
        };
        Err(refused(&caller.name, status))
    }
}

/// A poll names an agent or a caller, and this is neither.
fn no_such_name() -> Refusal {
    let hint = "an agent registers at POST /api/agent/register or has an [[agent]] table, a caller has a [[caller]] \
                table; GET /api/v1/agents and /api/v1/callers list them";
    Refusal::not_found("neither an agent of messages nor a caller has this name", hint).clause("MSG-14").field("agent")
}
