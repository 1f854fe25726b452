//! Grants: who may come in with which token, and as what.
//!
//! A token is known by its digest alone: SHA-256 over the store's salt and the token. A copy of the store opens no
//! door, and the tables of digests that exist for common words are of no use against it. A grant is never removed and
//! its name is never given again, so that the jobs of one caller never become those of another.
//!
//! Everything here is pure: whether a token is good depends on the grants and the time that is given. That is the
//! system time, and a clock that jumps moves none of the times of a grant: operators mean a date, not a length.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crosspoint_contracts::time::Time;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::keys::Salt;

/// Longest name of a grant in bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// Longest name of an agent in bytes that a grant may be for.
pub const AGENT_BYTES_MAX: usize = 512;

/// Most grants that there may be. They are all in memory.
pub const GRANTS_MAX: usize = 100_000;

/// The digest of a token. It does not print itself.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

/// What a grant is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Submit jobs, and read one's own.
    Caller,
    /// Work as this agent.
    Agent(Arc<str>),
    /// Everything.
    Admin,
}

/// Leave to come in with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The name of the grant. It is unique for ever.
    pub name: Arc<str>,
    /// What the grant is for.
    pub role: Role,
    /// The digest of the token.
    pub digest: Digest,
    /// When its present token was made.
    pub created_at: Time,
    /// From when on its tokens are no longer good.
    pub expires_at: Option<Time>,
    /// Since when its tokens are no longer good, because an operator revoked it.
    pub revoked_at: Option<Time>,
    /// The token before the last rotation.
    pub former: Option<Former>,
}

/// A token that another one has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Former {
    /// The digest of the token.
    pub digest: Digest,
    /// From when on the token is no longer good.
    pub until: Time,
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unusable {
    /// No grant has this token.
    Unknown,
    /// The grant has expired.
    Expired,
    /// Another token has replaced this one, and its time beside that one is over.
    Replaced,
    /// An operator revoked the grant.
    Revoked,
}

/// All grants. Clones are independent of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    by_name: BTreeMap<Arc<str>, Arc<Grant>>,
    /// The grant of each digest, present or former. The search is not in constant time, which does no harm: what is
    /// searched for is a salted digest, and a client cannot choose the bytes of one.
    by_digest: BTreeMap<[u8; 32], Arc<str>>,
    /// The roles of all grants, also of those that are no longer usable.
    roles: BTreeSet<Role>,
}

impl Digest {
    /// Returns the digest of a token in the store that has this salt.
    pub fn of(salt: Salt, token: &str) -> Digest {
        // The salt always has the same length, so that no other salt and token are written alike.
        Digest(Sha256::new().chain_update(salt.0.as_bytes()).chain_update(token).finalize().into())
    }

    /// Makes a digest from the bytes that the store keeps.
    pub fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// Returns the digest as the bytes that the store keeps.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Takes the same time whatever the digests are.
impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[digest]")
    }
}

impl Role {
    /// Returns the word for the role, without the agent's name.
    pub fn word(&self) -> &'static str {
        match self {
            Role::Caller => "caller",
            Role::Agent(_) => "agent",
            Role::Admin => "admin",
        }
    }

    /// Returns the agent that the role is about.
    pub fn agent(&self) -> Option<&Arc<str>> {
        match self {
            Role::Agent(name) => Some(name),
            Role::Caller | Role::Admin => None,
        }
    }

    /// Whether a grant may have this role.
    pub fn is_sound(&self) -> bool {
        self.agent().is_none_or(|name| (1..=AGENT_BYTES_MAX).contains(&name.len()))
    }

    /// Returns the role with this word; `None` if there is none, or if the agent is missing or too much.
    pub fn from_word(word: &str, agent: Option<Arc<str>>) -> Option<Role> {
        match (word, agent) {
            ("caller", None) => Some(Role::Caller),
            ("agent", Some(name)) => Some(Role::Agent(name)),
            ("admin", None) => Some(Role::Admin),
            _ => None,
        }
    }
}

impl Unusable {
    /// Returns the word for it, as contracts spell it in `token_status`.
    pub fn word(self) -> &'static str {
        match self {
            Unusable::Unknown => "unknown",
            // The contracts know no word of its own for it.
            Unusable::Expired | Unusable::Replaced => "expired",
            Unusable::Revoked => "revoked",
        }
    }
}

impl Grant {
    /// Checks whether the grant may be used at all at this time, with whichever of its tokens.
    pub fn check(&self, now: Time) -> Result<(), Unusable> {
        // What an operator decided says more than what time did.
        if self.revoked_at.is_some() {
            return Err(Unusable::Revoked);
        }
        if self.expires_at.is_some_and(|at| at <= now) { Err(Unusable::Expired) } else { Ok(()) }
    }

    /// Checks whether a token of this digest is good at this time.
    pub fn judge(&self, digest: &Digest, now: Time) -> Result<(), Unusable> {
        let former = self.former.as_ref().filter(|former| former.digest == *digest);
        match (self.digest == *digest, former) {
            (true, _) => self.check(now),
            (false, Some(former)) => {
                self.check(now)?;
                if former.until <= now { Err(Unusable::Replaced) } else { Ok(()) }
            }
            (false, None) => Err(Unusable::Unknown),
        }
    }

    /// Returns until when the token before the present one is good beside it, if it is good now.
    pub fn overlap_until(&self, now: Time) -> Option<Time> {
        let until = self.former.map(|former| former.until).filter(|until| *until > now)?;
        self.check(now).ok().map(|()| self.expires_at.map_or(until, |at| at.min(until)))
    }

    fn digests(&self) -> impl Iterator<Item = [u8; 32]> + use<> {
        [Some(self.digest), self.former.map(|former| former.digest)].into_iter().flatten().map(|digest| digest.0)
    }
}

impl Grants {
    /// Returns the grant of a token with this digest, if the token is good at this time.
    pub fn judge(&self, digest: &Digest, now: Time) -> Result<&Arc<Grant>, Unusable> {
        let name = self.by_digest.get(&digest.0).ok_or(Unusable::Unknown)?;
        let grant = self.by_name.get(name).ok_or(Unusable::Unknown)?;
        grant.judge(digest, now).map(|()| grant)
    }

    /// Checks whether a token with this digest is good at this time, and returns until when it is unless something
    /// changes; `None` is for ever.
    pub fn good_until(&self, digest: &Digest, now: Time) -> Result<Option<Time>, Unusable> {
        let grant = self.judge(digest, now)?;
        // The present token and the one before may be the same in a store that was changed by hand.
        let former = grant.former.filter(|former| former.digest == *digest && grant.digest != *digest);
        Ok([grant.expires_at, former.map(|former| former.until)].into_iter().flatten().min())
    }

    /// Returns the grant with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Grant>> {
        self.by_name.get(name)
    }

    /// Returns all grants, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Grant>> {
        self.by_name.values()
    }

    /// Whether there is a grant of this role. Grants that have expired or were revoked count too: what is closed to
    /// those without a token stays closed.
    pub fn any(&self, role: &Role) -> bool {
        self.roles.contains(role)
    }

    /// Returns how many grants there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is no grant.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a grant, or replaces the one of this name.
    pub fn insert(&mut self, grant: Arc<Grant>) {
        if let Some(before) = self.by_name.get(&grant.name) {
            for digest in before.digests() {
                // Another grant may have been given the same token, where tokens come from a configuration.
                if self.by_digest.get(&digest) == Some(&before.name) {
                    self.by_digest.remove(&digest);
                }
            }
        }
        for digest in grant.digests() {
            self.by_digest.insert(digest, grant.name.clone());
        }
        self.roles.insert(grant.role.clone());
        self.by_name.insert(grant.name.clone(), grant);
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<I: IntoIterator<Item = Grant>>(all: I) -> Grants {
        let mut grants = Grants::default();
        all.into_iter().for_each(|grant| grants.insert(Arc::new(grant)));
        grants
    }
}

/// Whether a grant may have this name: one that can be shown on one line and used in an address.
pub fn is_name(name: &str) -> bool {
    let is_odd = |character: char| character.is_control() || character.is_whitespace() || character == '/';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(is_odd)
}
