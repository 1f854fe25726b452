//! Grants: created, rotated and revoked between all the other commands, over crashes and jumps of the clock. What is
//! published must always be what is on disk.
//!
//! Their dice and their letters are apart from the others, so that a seed tells the same story of jobs as without them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Command, GrantCommand, Reply};
use crosspoint_engine::grant::{Digest, Grant, Grants, Role, Unusable};

use super::dice::Dice;
use super::members::Cast;
use super::rule::{Verdict, ensure};
use super::world::{Lost, World};

/// What the model knows of a grant. Its times are of the wall clock, which may jump: a date is a date.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    token: u64,
    former: Option<(u64, Time)>,
    expires_at: Option<Time>,
    /// How long its tokens are good.
    length: Option<Duration>,
    revoked: bool,
}

/// Everything about grants that is outside the engine.
pub(crate) struct Tokens {
    dice: Dice,
    /// How many tokens were ever made.
    made: u64,
    /// What readers see.
    published: Arc<Grants>,
    /// Whether operators leave grants alone from now on, so that nothing about them changes.
    calm: bool,
}

impl Tokens {
    pub(crate) fn new(seed: u64) -> Tokens {
        Tokens { dice: Dice::new(!seed), made: 0, published: Arc::default(), calm: false }
    }

    pub(crate) fn calm(&mut self) {
        self.calm = true;
    }
}

/// Stands for the digest of a token. Nothing is hashed, because there are millions of them.
fn digest(token: u64) -> Digest {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&token.to_be_bytes());
    Digest::from_bytes(bytes)
}

impl Granted {
    fn check(&self, now: Time) -> Result<(), Unusable> {
        if self.revoked {
            return Err(Unusable::Revoked);
        }
        if self.expires_at.is_some_and(|at| at <= now) { Err(Unusable::Expired) } else { Ok(()) }
    }
}

/// Judges a token by looking at all grants.
fn judge(grants: &BTreeMap<Arc<str>, Granted>, token: u64, now: Time) -> Result<Arc<str>, Unusable> {
    for (name, grant) in grants {
        if grant.token == token {
            return grant.check(now).map(|()| name.clone());
        }
        if let Some((former, until)) = grant.former
            && former == token
        {
            grant.check(now)?;
            return if until <= now { Err(Unusable::Replaced) } else { Ok(name.clone()) };
        }
    }
    Err(Unusable::Unknown)
}

impl World {
    /// What operators do with grants in this round.
    pub(crate) fn grant_letters(&mut self) -> Vec<Command> {
        if self.cast != Cast::Typed || self.tokens.calm {
            return Vec::new();
        }
        let (now, dice) = (self.model.wall(), &mut self.tokens.dice);
        let mut letters = Vec::new();
        while dice.percent(15) {
            let name: Arc<str> = format!("grant{}", dice.below(12)).into();
            let time = Duration::from_millis(dice.pick(&[0, 500, 20_000, 600_000]));
            self.tokens.made += 1;
            let digest = digest(self.tokens.made);
            letters.push(Command::Grant(match dice.below(5) {
                0 | 1 => GrantCommand::Create(Arc::new(Grant {
                    name,
                    role: dice.pick(&[|| Role::Caller, || Role::Admin, || Role::Agent("agent0".into())])(),
                    digest,
                    created_at: now,
                    expires_at: dice.percent(40).then(|| now.plus(time)),
                    revoked_at: None,
                    former: None,
                })),
                2 | 3 => {
                    let expires_in = dice.percent(30).then_some(time);
                    GrantCommand::Rotate { name, digest, overlap: time, expires_in }
                }
                _ => GrantCommand::Revoke(name),
            }));
        }
        letters
    }

    /// Checks the reply to a command about grants, and remembers what it means. The token that was made last for a
    /// letter is found by its digest.
    pub(crate) fn granted(&mut self, command: &GrantCommand, reply: &Reply) -> Verdict {
        let now = self.model.wall();
        let token_of = |digest: &Digest| (1..=self.tokens.made).find(|token| self::digest(*token) == *digest);
        let (due, what) = match command {
            GrantCommand::Create(new) if self.model.grants.contains_key(&new.name) => ("taken", "a name twice"),
            GrantCommand::Create(new) => {
                let token = token_of(&new.digest).ok_or("a token that was never made")?;
                // How long it is good counts, and not from when the clock was looked at.
                let length = new.expires_at.map(|at| at.since(new.created_at));
                let expires_at = length.map(|length| now.plus(length));
                let granted = Granted { token, former: None, expires_at, length, revoked: false };
                self.model.grants.insert(new.name.clone(), granted);
                ("grant", "granted")
            }
            GrantCommand::Revoke(name) => match self.model.grants.get_mut(name) {
                None => ("none", "no such grant"),
                Some(grant) => {
                    let again = std::mem::replace(&mut grant.revoked, true);
                    if again { ("unusable", "revoked again") } else { ("grant", "revoked") }
                }
            },
            GrantCommand::Rotate { name, digest, overlap, expires_in } => {
                let token = token_of(digest).ok_or("a token that was never made")?;
                match self.model.grants.get_mut(name) {
                    None => ("none", "no such grant"),
                    Some(grant) if grant.revoked => ("unusable", "not rotated"),
                    Some(grant) => {
                        let until = grant.expires_at.map_or(now.plus(*overlap), |at| at.min(now.plus(*overlap)));
                        (grant.former, grant.token) = (Some((grant.token, until)), token);
                        grant.length = expires_in.or(grant.length);
                        grant.expires_at = grant.length.map(|length| now.plus(length));
                        ("grant", "rotated")
                    }
                }
            }
        };
        self.count(what);
        ensure!(answer(reply) == due, "{command:?} was answered with {reply:?}, and not {due}");
        Ok(())
    }

    /// Publishes the grants of the core, which are on disk.
    pub(crate) fn publish_grants(&mut self) {
        self.tokens.published = self.core.grants().clone();
    }

    /// Checks that what is published is what is on disk and what the model knows, for every token that was ever made.
    pub(crate) fn check_grants(&mut self) -> Verdict {
        if self.lost == Lost::Life || self.tokens.calm {
            return Ok(());
        }
        let (now, published) = (self.model.wall(), self.tokens.published.clone());
        let on_disk: Grants = self.disk.grants.values().map(|grant| (**grant).clone()).collect();
        ensure!(*published == on_disk, "other grants are published than are on disk");
        ensure!(published.len() == self.model.grants.len(), "there are {} grants", published.len());
        for token in 1..=self.tokens.made {
            let due = judge(&self.model.grants, token, now);
            let judged = published.judge(&digest(token), now).map(|grant| grant.name.clone());
            ensure!(judged == due, "token {token} is {judged:?}, and not {due:?}");
            match due {
                Ok(_) => self.count("a good token"),
                Err(Unusable::Expired) => self.count("an expired token"),
                Err(Unusable::Replaced) => self.count("a replaced token"),
                Err(Unusable::Revoked) => self.count("a revoked token"),
                Err(Unusable::Unknown) => self.count("an unknown token"),
            }
        }
        Ok(())
    }
}

fn answer(reply: &Reply) -> &'static str {
    match reply {
        Reply::Grant(_) => "grant",
        Reply::NameTaken => "taken",
        Reply::NoSuchGrant => "none",
        Reply::Unusable(_) => "unusable",
        Reply::Accepted(_)
        | Reply::Known(_)
        | Reply::MayBeOf(_)
        | Reply::Claimed
        | Reply::Rejected(_)
        | Reply::Job(_)
        | Reply::Refused(_)
        | Reply::NotTheirs
        | Reply::NotLive
        | Reply::Done
        | Reply::NoSuchAgent
        | Reply::Configured
        | Reply::Present
        | Reply::Crowded
        | Reply::OtherContract => "something else",
    }
}
