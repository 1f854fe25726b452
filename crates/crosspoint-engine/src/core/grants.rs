//! Grants: created, rotated and revoked, and never removed.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::{Batch, Core, Reply};
use crate::grant::{Digest, Former, GRANTS_MAX, Grant, Grants, Unusable};

/// A command about grants.
#[derive(Clone, Debug)]
pub enum GrantCommand {
    /// Create a grant. It is created now, and expires as long afterwards as its two times are apart.
    Create(Arc<Grant>),
    /// Revoke the grant with this name. One that was revoked before stays so, which is no change.
    Revoke(Arc<str>),
    /// Replace the token of a grant that was not revoked. One that has expired is good again.
    Rotate {
        /// The name of the grant.
        name: Arc<str>,
        /// The digest of the new token.
        digest: Digest,
        /// How long the present token stays good beside it. The one before that is good no longer.
        overlap: Duration,
        /// How long the new token is good; `None` is as long as the present one was meant to be.
        expires_in: Option<Duration>,
    },
}

impl Core {
    /// Returns all grants.
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    pub(super) fn command_grant(&mut self, command: &GrantCommand, now: Time, batch: &mut Batch) -> Reply {
        match command {
            GrantCommand::Create(grant) => self.create_grant(grant, now, batch),
            GrantCommand::Revoke(name) => {
                let Some(known) = self.grants.get(name) else { return Reply::NoSuchGrant };
                if known.revoked_at.is_some() {
                    return Reply::Unusable(Unusable::Revoked);
                }
                let grant = Grant { revoked_at: Some(now), ..(**known).clone() };
                self.write_grant(grant, batch)
            }
            GrantCommand::Rotate { name, digest, overlap, expires_in } => {
                let Some(known) = self.grants.get(name) else { return Reply::NoSuchGrant };
                if known.revoked_at.is_some() {
                    return Reply::Unusable(Unusable::Revoked);
                }
                let grant = rotated(known, *digest, *overlap, *expires_in, now);
                self.write_grant(grant, batch)
            }
        }
    }

    fn create_grant(&mut self, new: &Grant, now: Time, batch: &mut Batch) -> Reply {
        if self.grants.get(&new.name).is_some() {
            return Reply::NameTaken;
        }
        if self.grants.len() >= GRANTS_MAX {
            return Reply::Crowded;
        }
        let expires_at = new.expires_at.map(|at| now.plus(at.since(new.created_at)));
        let grant = Grant { created_at: now, expires_at, revoked_at: None, former: None, ..new.clone() };
        self.write_grant(grant, batch)
    }

    fn write_grant(&mut self, grant: Grant, batch: &mut Batch) -> Reply {
        let grant = Arc::new(grant);
        // Readers may still have the grants as they were committed last.
        Arc::make_mut(&mut self.grants).insert(grant.clone());
        batch.grants.insert(grant.name.clone(), grant.clone());
        Reply::Grant(grant)
    }
}

/// Returns a grant with another token. The token before it is never good for longer than it would have been.
fn rotated(known: &Grant, digest: Digest, overlap: Duration, expires_in: Option<Duration>, now: Time) -> Grant {
    let until = now.plus(overlap);
    let until = known.expires_at.map_or(until, |at| at.min(until));
    let expires_in = expires_in.or_else(|| known.expires_at.map(|at| at.since(known.created_at)));
    let former = Some(Former { digest: known.digest, until });
    let expires_at = expires_in.map(|time| now.plus(time));
    Grant { digest, created_at: now, expires_at, former, ..known.clone() }
}
