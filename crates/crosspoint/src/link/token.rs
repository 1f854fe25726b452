//! Whether an agent refuses our token: something for its operator, because no caller can mend it (RUN-5).
//!
//! It is known from how attempts end. It is not stored: a token is read at the start, so the next start may have
//! another one, and the first attempt tells.

use std::sync::{Mutex, PoisonError};

use crosspoint_contracts::time::Time;
use crosspoint_engine::wall_clock;

/// What is known of the token that is presented to one agent.
pub(super) struct TokenState {
    agent: String,
    /// Whether there is one to present.
    is_configured: bool,
    refused_since: Mutex<Option<Time>>,
}

impl TokenState {
    pub(super) fn new(agent: &str, is_configured: bool) -> TokenState {
        TokenState { agent: agent.to_owned(), is_configured, refused_since: Mutex::default() }
    }

    pub(super) fn refused_since(&self) -> Option<Time> {
        *self.refused_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the agent refused the token. Only the first refusal is logged.
    pub(super) fn refused(&self) {
        let mut since = self.refused_since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_some() {
            return;
        }
        *since = Some(wall_clock::now());
        let agent = &*self.agent;
        if self.is_configured {
            tracing::warn!(agent, "the agent refuses our token; look at its token_file, and restart the server");
        } else {
            tracing::warn!(agent, "the agent wants a token; configure its token_file, and restart the server");
        }
    }

    /// Notes that the agent has worked for us.
    pub(super) fn accepted(&self) {
        let mut since = self.refused_since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.take().is_some() {
            tracing::info!(agent = &*self.agent, "the agent takes our token again");
        }
    }
}
