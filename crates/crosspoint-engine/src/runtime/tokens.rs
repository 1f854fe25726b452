//! Tokens: created, rotated, revoked, and looked up.
//!
//! A token exists here only between the moment it is made and the moment it is handed to the operator who asked for it.
//! Everything else knows its digest.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::acting::Acting;
use super::engine::Engine;
use super::inbox::Answer;
use super::requests::Denied;
use crate::audit::{Act, Deed};
use crate::core::{Command, GrantCommand, Reply};
use crate::grant::{self, Digest, Grant, Grants, Role, Unusable};
use crate::id::JobId;
use crate::store::Fault;

/// How many characters a token has: about 165 bits of chance.
const TOKEN_CHARACTERS: usize = 32;

/// How often it is checked whether a token in use has expired. The system's clock may be set, and timers do not notice.
const LOOK_PERIOD: Duration = Duration::from_secs(30);

/// The characters of tokens.
const CHARACTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A new token. It does not print itself, and is nowhere else.
#[derive(Clone)]
pub struct Token(String);

/// Why a grant was not created or changed.
#[derive(Debug)]
pub enum Ungranted {
    /// The name is empty, longer than [`grant::NAME_BYTES_MAX`], or has a space, a slash or a control character in it;
    /// or the agent's name is empty or longer than [`grant::AGENT_BYTES_MAX`].
    BadName,
    /// A grant has, or once had, this name.
    NameTaken,
    /// The limit on the number of grants is reached.
    Crowded,
    /// No grant has this name.
    NotFound,
    /// The grant was revoked, so its token cannot be replaced.
    Unusable(Unusable),
    /// The system gave no random numbers.
    NoChance,
    /// The orchestrator is about to end, and nothing was done.
    Closed,
    /// The orchestrator ended before the result was known.
    Lost,
    /// The change was tried, and is not known to be written.
    Fault(Arc<Fault>),
    /// Nothing can be written at present, and nothing was tried.
    NotTried(Arc<Fault>),
}

impl Token {
    /// Makes a token of the system's randomness.
    fn new() -> Result<Token, Ungranted> {
        // Numbers from here on would make the first characters likelier than the last.
        const FAIR_MAX: u8 = 252;
        let mut token = String::with_capacity(TOKEN_CHARACTERS);
        while token.len() < TOKEN_CHARACTERS {
            let mut bytes = [0; TOKEN_CHARACTERS];
            getrandom::fill(&mut bytes).map_err(|_| Ungranted::NoChance)?;
            let fair = bytes.iter().filter(|byte| **byte < FAIR_MAX);
            let missing = TOKEN_CHARACTERS - token.len();
            token.extend(fair.take(missing).map(|byte| char::from(CHARACTERS[usize::from(*byte) % CHARACTERS.len()])));
        }
        Ok(Token(token))
    }

    /// Returns the token, for the one who asked for it.
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

impl Engine {
    /// Returns all grants, as they are on disk.
    pub fn grants(&self) -> Arc<Grants> {
        self.published().grants()
    }

    /// Returns the digest by which grants know a token.
    pub fn digest(&self, token: &str) -> Digest {
        Digest::of(self.readers().salt(), token)
    }

    /// Waits until a token is no longer good, and returns why. Rotating it with an overlap changes nothing until the
    /// overlap is over.
    pub async fn unusable(&self, digest: &Digest) -> Unusable {
        let mut grants = self.published().changing_grants();
        loop {
            let now = crate::wall_clock::now();
            let good_until = match grants.borrow_and_update().good_until(digest, now) {
                Ok(good_until) => good_until,
                Err(unusable) => return unusable,
            };
            let over = async {
                match good_until {
                    Some(at) => tokio::time::sleep(at.since(now).min(LOOK_PERIOD)).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = grants.changed() => if changed.is_err() { pending().await },
                () = over => {}
            }
        }
    }

    /// Waits until the grants are as they are asked for. If they never are, it never completes.
    pub async fn grants_are(&self, wanted: impl Fn(&Grants) -> bool) {
        let mut grants = self.published().changing_grants();
        if grants.wait_for(|grants| wanted(grants)).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Creates a grant, and returns it with its token. When it returns, the grant is on disk. The token is nowhere.
    pub async fn create_token(
        &self,
        by: Option<&Arc<str>>,
        name: &str,
        role: Role,
        expires_in: Option<Duration>,
    ) -> Result<(Arc<Grant>, Token), Ungranted> {
        if !grant::is_name(name) || !role.is_sound() {
            return Err(Ungranted::BadName);
        }
        let token = Token::new()?;
        // The core sets the time. Only how far the two are apart counts.
        let created_at = Time::default();
        let grant = Grant {
            name: name.into(),
            role,
            digest: self.digest(token.get()),
            created_at,
            expires_at: expires_in.map(|time| created_at.plus(time)),
            revoked_at: None,
            former: None,
        };
        Ok((self.change_grant(by, GrantCommand::Create(Arc::new(grant))).await?, token))
    }

    /// Revokes a grant. When it returns, no token of it is good any more, also after a crash.
    pub async fn revoke_token(&self, by: Option<&Arc<str>>, name: &str) -> Result<Arc<Grant>, Ungranted> {
        match self.change_grant(by, GrantCommand::Revoke(name.into())).await {
            // It was revoked before: nothing is done, and nothing is on record.
            Err(Ungranted::Unusable(_)) => self.grants().get(name).cloned().ok_or(Ungranted::NotFound),
            done => done,
        }
    }

    /// Replaces the token of a grant, and returns the new one. The one before stays good for `overlap`. The new one is
    /// good for `expires_in`, or for as long as the one before was meant to be.
    pub async fn rotate_token(
        &self,
        by: Option<&Arc<str>>,
        name: &str,
        overlap: Duration,
        expires_in: Option<Duration>,
    ) -> Result<(Arc<Grant>, Token), Ungranted> {
        let token = Token::new()?;
        let command = GrantCommand::Rotate { name: name.into(), digest: self.digest(token.get()), overlap, expires_in };
        Ok((self.change_grant(by, command).await?, token))
    }

    async fn change_grant(&self, by: Option<&Arc<str>>, command: GrantCommand) -> Result<Arc<Grant>, Ungranted> {
        let answer = self.inbox().put_by(by, Command::Grant(command)).map_err(|_| Ungranted::Closed)?;
        match answer.await {
            Ok(Answer::Committed { reply: Reply::Grant(grant), .. }) => Ok(grant),
            Ok(Answer::Committed { reply: Reply::NameTaken, .. }) => Err(Ungranted::NameTaken),
            Ok(Answer::Committed { reply: Reply::Crowded, .. }) => Err(Ungranted::Crowded),
            Ok(Answer::Committed { reply: Reply::NoSuchGrant, .. }) => Err(Ungranted::NotFound),
            Ok(Answer::Committed { reply: Reply::Unusable(unusable), .. }) => Err(Ungranted::Unusable(unusable)),
            Ok(Answer::Failed(fault)) => Err(Ungranted::Fault(fault)),
            Ok(Answer::NotTried(fault)) => Err(Ungranted::NotTried(fault)),
            Ok(Answer::Committed { .. }) | Err(_) => Err(Ungranted::Lost),
        }
    }

    /// Writes that `who` reads content of a job; `what` names the part that is read. When it returns, that is on disk.
    /// The same reader and job are written at most once in [`audit::READ_AGAIN`](crate::audit::READ_AGAIN).
    pub async fn read_by(&self, who: &Arc<str>, job: JobId, what: &str) -> Result<(), Denied> {
        self.by(who).note_once(Deed { object: Some(what.into()), ..Act::Read.to_job(job) }, job).await
    }
}

/// The same for the one who is named.
impl Acting<'_> {
    /// Creates a grant: see [`Engine::create_token`].
    pub async fn create_token(
        self,
        name: &str,
        role: Role,
        expires_in: Option<Duration>,
    ) -> Result<(Arc<Grant>, Token), Ungranted> {
        self.engine.create_token(self.by, name, role, expires_in).await
    }

    /// Revokes a grant: see [`Engine::revoke_token`].
    pub async fn revoke_token(self, name: &str) -> Result<Arc<Grant>, Ungranted> {
        self.engine.revoke_token(self.by, name).await
    }

    /// Replaces the token of a grant: see [`Engine::rotate_token`].
    pub async fn rotate_token(
        self,
        name: &str,
        overlap: Duration,
        expires_in: Option<Duration>,
    ) -> Result<(Arc<Grant>, Token), Ungranted> {
        self.engine.rotate_token(self.by, name, overlap, expires_in).await
    }
}
