//! What an operation needs of who asks.

use crosspoint_engine::grant::Role;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};

/// What an operation needs of who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it tells nothing about work.
    Nothing,
    /// The token of a caller.
    Caller,
    /// The token of an agent.
    Agent,
    /// The token of a caller or of an agent.
    Either,
    /// The same, where a refusal repeats what the message said: the endpoint refuses, once it has read the message.
    Sender,
    /// The token of an administrator.
    Admin,
}

impl Needs {
    /// Returns the word that the description of the API has for it.
    pub(in crate::server) fn name(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing",
            Needs::Caller => "caller",
            Needs::Agent => "agent",
            Needs::Either | Needs::Sender => "caller or agent",
            Needs::Admin => "admin",
        }
    }

    /// Refuses a token. One that is for something else is told what is needed.
    pub(super) fn refused(self, claimed: &str, status: TokenStatus) -> Refusal {
        if status == TokenStatus::WrongScope {
            Refusal::wrong_scope(claimed, self.name())
        } else {
            Refusal::unauthenticated(claimed, status)
        }
    }

    /// Whether a token for this may be used. Who administers the server may do what callers may, and speaks for no
    /// agent.
    pub(super) fn met_by(self, role: &Role) -> bool {
        match (self, role) {
            (Needs::Nothing | Needs::Either | Needs::Sender, _)
            | (Needs::Caller, Role::Caller | Role::Admin)
            | (Needs::Agent, Role::Agent(_))
            | (Needs::Admin, Role::Admin) => true,
            (Needs::Caller, Role::Agent(_)) | (Needs::Agent | Needs::Admin, _) => false,
        }
    }
}
