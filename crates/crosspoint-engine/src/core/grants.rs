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
    /// Replace the token of a grant that is usable.
    Rotate {
        /// The name of the grant.
        name: Arc<str>,
        /// The digest of the new token.
        digest: Digest,
        /// How long the present token stays good beside it. The one before that is good no longer.
        overlap: Duration,
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
            GrantCommand::Rotate { name, digest, overlap } => {
                let Some(known) = self.grants.get(name) else { return Reply::NoSuchGrant };
                if let Err(unusable) = known.check(now) {
                    return Reply::Unusable(unusable);
                }
                let former = Some(Former { digest: known.digest, until: now.plus(*overlap) });
                let grant = Grant { digest: *digest, former, ..(**known).clone() };
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
