//! Who asks: what they see, and by which name they are on record.

use std::sync::{Arc, LazyLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use crosspoint_engine::grant::Role;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Ahead;
use crosspoint_exchange::admission::Caller;
use crosspoint_exchange::refusal::TokenStatus;

#[cfg(doc)]
use super::Needs;

/// The name on record for what is done without a token. It has a space, so it is no token's name.
static NO_TOKEN: LazyLock<Arc<str>> = LazyLock::new(|| "no token".into());

/// Who asks.
#[derive(Clone, Debug)]
pub(in crate::server) enum Who {
    /// Anybody: the server is open, or the request is private.
    Anyone {
        /// Whether a token came with the request that is not one of this server's.
        is_strange: bool,
        /// Whether what is done is on record: the server asks others for tokens.
        is_recorded: bool,
    },
    /// The holder of a token.
    Known(Identity),
    /// A sender whose token is wrong in this way. Only endpoints that need [`Needs::Sender`] see it, and refuse it.
    Unknown(TokenStatus),
}

/// The holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Identity {
    pub(in crate::server) name: Arc<str>,
    pub(in crate::server) role: Role,
}

impl Who {
    /// Anybody, of whom nothing is known.
    pub(in crate::server) fn anyone() -> Who {
        Who::Anyone { is_strange: false, is_recorded: false }
    }

    /// Returns who owns the work that is asked for, and is on record as asking for it.
    pub(in crate::server) fn caller(&self) -> Caller {
        match self {
            Who::Anyone { is_recorded: true, .. } => Caller::everyone().recorded_as(NO_TOKEN.clone()),
            Who::Anyone { is_recorded: false, .. } | Who::Unknown(_) => Caller::everyone(),
            Who::Known(identity) => Caller::named(identity.name.clone()),
        }
    }

    /// Whether the work may be seen and changed.
    pub(in crate::server) fn sees(&self, job: &Job) -> bool {
        match self {
            Who::Anyone { .. } | Who::Known(Identity { role: Role::Admin, .. }) => true,
            Who::Known(Identity { name, role: Role::Caller }) => *job.request.caller == **name,
            Who::Known(Identity { role: Role::Agent(_), .. }) | Who::Unknown(_) => false,
        }
    }

    /// Whether lists show content of the work: to its own caller, and where nothing is on record. A list does not say
    /// which of it was read, so an administrator sees content of one job at a time.
    pub(in crate::server) fn reads_in_lists(&self, job: &Job) -> bool {
        match self {
            Who::Anyone { is_recorded, .. } => !is_recorded,
            Who::Known(identity) => *job.request.caller == *identity.name,
            Who::Unknown(_) => false,
        }
    }

    /// Whether the token shows that no agent speaks.
    pub(in crate::server) fn is_no_agent(&self) -> bool {
        match self {
            Who::Known(Identity { role: Role::Caller | Role::Admin, .. }) => true,
            Who::Known(Identity { role: Role::Agent(_), .. }) | Who::Anyone { .. } | Who::Unknown(_) => false,
        }
    }

    /// Returns the caller whose work alone is listed; `None` if all work is.
    pub(in crate::server) fn only(&self) -> Option<Arc<str>> {
        match self {
            Who::Anyone { .. } | Who::Known(Identity { role: Role::Admin, .. }) => None,
            Who::Known(Identity { name, role: Role::Caller | Role::Agent(_) }) => Some(name.clone()),
            Who::Unknown(_) => Some(Arc::default()),
        }
    }

    /// Whether all work is seen, whosesoever it is.
    pub(in crate::server) fn sees_all(&self) -> bool {
        self.only().is_none()
    }

    /// Returns what may be said of other jobs: nothing to those who see their own work alone.
    pub(in crate::server) fn ahead(&self, of: Ahead) -> Ahead {
        if self.sees_all() { of } else { Ahead::Hidden }
    }

    /// Returns the name for acts that are on record while the server is open, too.
    pub(in crate::server) fn name_or_no_token(&self) -> Arc<str> {
        self.name().unwrap_or(&NO_TOKEN).clone()
    }

    /// Returns who is named in the record of what was done; `None` on a server that asks nobody for a token.
    pub(in crate::server) fn on_record(&self) -> Option<&Arc<str>> {
        match self {
            Who::Known(identity) => Some(&identity.name),
            Who::Anyone { is_recorded: true, .. } => Some(&NO_TOKEN),
            Who::Anyone { is_recorded: false, .. } | Who::Unknown(_) => None,
        }
    }

    /// Returns the name of the token that was shown.
    pub(in crate::server) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Who::Anyone { .. } | Who::Unknown(_) => None,
            Who::Known(identity) => Some(&identity.name),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Who, Self::Rejection> {
        Ok(parts.extensions.get::<Who>().cloned().unwrap_or(Who::anyone()))
    }
}
