//! Callers that get their messages later: at their callback, or when they ask for them (MSG-17.4).

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::door::message::Requested;

use super::Polling;
use super::sender::Presented;
use crate::backend::Orchestrator;
use crate::server::App;

impl App {
    /// Sees to it that a caller is told of its work, unless the answer to its request tells it already.
    pub(super) fn tell_later(&self, _recipient: &Arc<str>, _requested: &Requested<Orchestrator>) {}

    /// Returns the messages for a caller that pulls.
    pub(super) async fn pulled_by_caller(
        &self,
        _presented: &Presented,
        _poll: &Polling,
        _until: Instant,
    ) -> Result<Vec<Bytes>, Refusal> {
        Err(Refusal::no_such_agent())
    }
}
