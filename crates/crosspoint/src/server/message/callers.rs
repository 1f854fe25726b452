//! Callers that get their messages later: at their callback, or when they ask for them (MSG-17.4).

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosspoint_engine::grant::Role;
use crosspoint_engine::runtime::Watch;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};

use super::Polling;
use super::sender::refused;
use crate::backend::denied;
use crate::config::Caller;
use crate::server::App;
use crate::server::access::{Identity, Who};

/// What is owed to a caller while it waits for the answer to its request. When this is dropped, because the answer does
/// not tell the outcome or the caller has hung up, the caller is told later.
pub(super) struct Owed<'a> {
    app: &'a App,
    recipient: Arc<str>,
    /// The job; `None` once nothing is owed.
    watch: Option<Watch>,
}

impl Owed<'_> {
    /// The answer tells the outcome: a caller that does not get it sends its request again.
    pub(super) async fn told(mut self) {
        let Some(watch) = &self.watch else { return };
        if self.app.engine().told(watch.job().id()).await.is_ok() {
            self.watch = None;
        }
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            self.app.deliveries().follow(&self.recipient, watch);
        }
    }
}

impl App {
    pub(super) fn owed(&self, recipient: Arc<str>, watch: Watch) -> Owed<'_> {
        Owed { app: self, recipient, watch: Some(watch) }
    }

    /// Returns the messages for a caller that pulls.
    pub(super) async fn pulled_by_caller(
        &self,
        who: &Who,
        poll: &Polling,
        until: Instant,
    ) -> Result<Vec<Bytes>, Refusal> {
        let named = self.callers().iter().find(|caller| caller.name == poll.name);
        App::is_caller(named.ok_or_else(no_such_name)?, who)?;
        let max = usize::try_from(poll.max).unwrap_or(usize::MAX);
        let taken = self.deliveries().take((&poll.name, who.on_record()), max, until, &poll.acks).await;
        taken.map_err(|why| denied(&why, Refusal::no_such_job))
    }

    /// Checks that a pull that claims to come from this caller does (MSG-13).
    fn is_caller(caller: &Caller, who: &Who) -> Result<(), Refusal> {
        let status = match who {
            Who::Anyone { .. } => return Ok(()),
            Who::Known(Identity { name, role: Role::Caller }) if **name == *caller.name => return Ok(()),
            Who::Known(_) => TokenStatus::WrongAgent,
            Who::Unknown(status) => *status,
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
