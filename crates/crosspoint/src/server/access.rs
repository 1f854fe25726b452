//! Who asks, and whether they may: the one place where tokens are looked at (MSG-13).
//!
//! As long as neither a caller nor an administrator has a token, the server is open: it listens on the loopback, and
//! every client that reaches it may do everything, except speak for an agent that has a token. With the first such
//! token it is closed: whatever is not said to need nothing needs a token that is for it.
//!
//! A request over a socket file is private: it comes from the server's own user, who could read the store as well. It
//! needs no token. A token that comes with it counts all the same: what is done is done by its holder, and a wrong one
//! is refused.
//!
//! A token is looked at when a request comes in. What goes on after that, a stream or a wait, ends when the token is no
//! longer good; without a token, when the server is closed: see [`revocation`].
//!
//! Whose jobs a caller sees is decided by [`Who::sees`], and by the doors, which look for work of one caller alone.

mod needs;
mod revocation;
mod who;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use crosspoint_engine::grant::{Digest, Grants, Role, Unusable};
use crosspoint_engine::id::JobId;
use crosspoint_engine::runtime::{Engine, Watch};
use crosspoint_engine::wall_clock;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};
use crosspoint_http::Refused;
use crosspoint_http::body::ToBeRefused;
use crosspoint_http::limit::{CallerKey, Peer};
use crosspoint_http::request_log::TokenName;

pub(crate) use self::needs::Needs;
use self::revocation::Allowed;
pub(super) use self::who::{Identity, Who};
use super::App;
use super::openapi;
use crate::backend::{denied, fault};
use crate::config::{Config, Token};

/// Who may ask for what.
pub(super) struct Access {
    needs: BTreeMap<(&'static str, &'static str), Needs>,
    /// The tokens that are in files of their own.
    configured: Vec<(Token, Identity)>,
    engine: Engine,
}

impl Access {
    pub(super) fn new(engine: Engine, config: &Config) -> Access {
        let agents = config.agents.iter().filter_map(|agent| {
            let name: Arc<str> = agent.name.as_str().into();
            Some((agent.token()?.clone(), Identity { name: name.clone(), role: Role::Agent(name) }))
        });
        let callers = config.callers.iter().filter_map(|caller| {
            Some((caller.token.clone()?, Identity { name: caller.name.as_str().into(), role: Role::Caller }))
        });
        let configured = agents.chain(callers).collect();
        Access { needs: openapi::needs().into_iter().collect(), configured, engine }
    }

    /// Whether the server asks for tokens. One that was revoked or is too old counts: a server that was closed does not
    /// open by itself.
    pub(super) fn is_closed(&self) -> bool {
        let is_asked_for = |role: &Role| matches!(role, Role::Caller | Role::Admin);
        self.configured.iter().any(|(_, identity)| is_asked_for(&identity.role)) || closes(&self.engine.grants())
    }

    /// Whether this agent must show a token.
    pub(super) fn has_token(&self, agent: &str) -> bool {
        let role = Role::Agent(agent.into());
        self.configured.iter().any(|(_, identity)| identity.role == role) || self.engine.grants().any(&role)
    }

    /// Returns the tokens of the configuration.
    pub(super) fn configured(&self) -> impl Iterator<Item = &Identity> {
        self.configured.iter().map(|(_, identity)| identity)
    }

    /// Whether a token of this name is in the configuration.
    pub(super) fn is_configured(&self, name: &str) -> bool {
        self.configured().any(|identity| *identity.name == *name)
    }

    /// Returns whose token this is, and the digest by which the store knows it.
    fn owner_of(&self, token: &str) -> Result<(Identity, Option<Digest>), Unusable> {
        // All are compared, so that the time says nothing about which one it is.
        let found = self.configured.iter().fold(None, |found, (known, identity)| match known.is(token) {
            true => Some(identity),
            false => found,
        });
        if let Some(identity) = found {
            return Ok((identity.clone(), None));
        }
        let grants = self.engine.grants();
        let digest = self.engine.digest(token);
        let grant = grants.judge(&digest, wall_clock::now())?;
        Ok((Identity { name: grant.name.clone(), role: grant.role.clone() }, Some(digest)))
    }

    /// Returns the name of the token that came with a request, if it is a good one.
    fn name_in(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        let token = presented(headers).ok().flatten()?;
        self.owner_of(token).ok().map(|(identity, _)| identity.name)
    }

    /// Decides about a request.
    fn admit(&self, needs: Needs, headers: &HeaderMap, way: WayIn) -> Result<Admitted, TokenStatus> {
        if needs == Needs::Nothing {
            return Ok(Who::anyone().into());
        }
        let presented = match presented(headers) {
            Ok(presented) => presented,
            // What others ask for in front of an open server is nothing to us.
            Err(_) if needs != Needs::Sender && !self.is_closed() => return Ok(strange(way)),
            Err(status) => return Err(status),
        };
        let Some(token) = presented else {
            let is_recorded = self.is_closed();
            return match way {
                WayIn::Open if is_recorded => Err(TokenStatus::Missing),
                WayIn::Open | WayIn::Private => Ok(anyone(Who::Anyone { is_strange: false, is_recorded }, way)),
            };
        };
        match self.owner_of(token) {
            Ok((identity, digest)) if needs.met_by(&identity.role) => {
                let allowed = digest.map_or(Allowed::Always, Allowed::WhileGood);
                Ok(Admitted { who: Who::Known(identity), allowed })
            }
            Ok(_) => Err(TokenStatus::WrongScope),
            Err(Unusable::Unknown) if !self.is_closed() => Ok(strange(way)),
            Err(unusable) => Err(status_of(unusable)),
        }
    }
}

/// Whether a server with these tokens is closed.
fn closes(grants: &Grants) -> bool {
    [Role::Caller, Role::Admin].iter().any(|role| grants.any(role))
}

/// Who was let in.
struct Admitted {
    who: Who,
    allowed: Allowed,
}

impl From<Who> for Admitted {
    fn from(who: Who) -> Admitted {
        Admitted { who, allowed: Allowed::Always }
    }
}

/// Lets anybody in, over the network for as long as the server is open.
fn anyone(who: Who, way: WayIn) -> Admitted {
    let allowed = match way {
        WayIn::Open => Allowed::WhileOpen,
        WayIn::Private => Allowed::Always,
    };
    Admitted { who, allowed }
}

/// Anybody with a token that is nothing to this server.
fn strange(way: WayIn) -> Admitted {
    anyone(Who::Anyone { is_strange: true, is_recorded: false }, way)
}

/// Returns the word of the contracts for why a token is not good.
fn status_of(unusable: Unusable) -> TokenStatus {
    match unusable {
        Unusable::Expired => TokenStatus::Expired,
        Unusable::Replaced => TokenStatus::Replaced,
        Unusable::Revoked => TokenStatus::Revoked,
        Unusable::Unknown => TokenStatus::Unknown,
    }
}

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WayIn {
    /// At a port, which others reach as well.
    Open,
    /// Over a socket file, which only the server's own user can open.
    Private,
}

/// Returns how a request came in. What is not known to be private is open.
fn way_in(peer: Option<Peer>) -> WayIn {
    match peer {
        Some(Peer::Local) => WayIn::Private,
        Some(Peer::Address(_)) | None => WayIn::Open,
    }
}

/// Reads the `Authorization` header.
fn presented(headers: &HeaderMap) -> Result<Option<&str>, TokenStatus> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    #[cfg(feature = "leaks")]
    crate::leak::token(value);
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let token = token.filter(|token| !token.is_empty() && values.next().is_none());
    token.map(Some).ok_or(TokenStatus::Malformed)
}

/// Lets a request through, with who asks, or refuses it before anything of it is looked up.
pub(super) async fn check(State(app): State<App>, path: MatchedPath, mut request: Request, next: Next) -> Response {
    let method = match *request.method() {
        // What may be read may be asked about.
        Method::HEAD => "GET",
        ref method => method.as_str(),
    };
    // An endpoint that says nothing is for those who administer the server.
    let needs = app.access().needs.get(&(method, path.as_str())).copied().unwrap_or(Needs::Admin);
    match app.who(needs, &request) {
        Ok(Admitted { who, allowed }) => {
            request.extensions_mut().insert(who.caller());
            let name = who.name().cloned();
            if let Some(name) = &name {
                request.extensions_mut().insert(CallerKey(key_of(name)));
            }
            if let Who::Unknown(status) = who {
                request.extensions_mut().insert(ToBeRefused(status));
            }
            request.extensions_mut().insert(who);
            signed(revocation::answer(app.engine(), allowed, next.run(request)).await, name)
        }
        Err(refusal) => {
            let name = app.access().name_in(request.headers());
            signed(Refused::from(refusal).into_response(), name)
        }
    }
}

/// Returns an answer with the name of the token that was shown, for the log.
fn signed(mut response: Response, name: Option<Arc<str>>) -> Response {
    if let Some(name) = name {
        response.extensions_mut().insert(TokenName(name));
    }
    response
}

/// Returns the number by which the holder of a token is counted.
fn key_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl App {
    /// Returns who asks, within what addresses and tokens may ask for.
    fn who(&self, needs: Needs, request: &Request) -> Result<Admitted, Refusal> {
        let (site, now) = (&self.0.site, Instant::now());
        let arrived = request.extensions().get::<Peer>().copied();
        let (way, peer) = (way_in(arrived), arrived.unwrap_or(Peer::Local));
        match self.access().admit(needs, request.headers(), way) {
            Ok(admitted) => {
                if let Some(name) = admitted.who.name() {
                    site.take_request_with(key_of(name), peer, now)?;
                }
                Ok(admitted)
            }
            Err(status) => {
                // A good token never comes here, however often others at its address fail.
                match status {
                    TokenStatus::Malformed
                    | TokenStatus::Unknown
                    | TokenStatus::Expired
                    | TokenStatus::Replaced
                    | TokenStatus::Revoked => site.failed_to_authenticate(peer, now)?,
                    TokenStatus::Missing => site.may_fail_to_authenticate(peer, now)?,
                    TokenStatus::WrongAgent | TokenStatus::WrongScope => {}
                }
                match needs {
                    Needs::Sender => Ok(Who::Unknown(status).into()),
                    Needs::Nothing | Needs::Caller | Needs::Agent | Needs::Either | Needs::Admin => {
                        Err(needs.refused("", status))
                    }
                }
            }
        }
    }
}

impl App {
    /// Returns a job, if who asks may see it. Otherwise it is as if there were none.
    pub(super) async fn job_for(&self, who: &Who, id: JobId) -> Result<Watch, Refusal> {
        let found = match who.only() {
            // Not looked for: the time would tell which ids of others there are.
            Some(name) if !self.engine().may_be_of(id, &name) => None,
            Some(_) | None => self.engine().job(id).await.map_err(|error| fault(&error))?,
        };
        let found = found.filter(|watch| who.sees(&watch.job()));
        #[cfg(feature = "leaks")]
        return found.ok_or_else(crate::leak::no_such_job);
        #[cfg(not(feature = "leaks"))]
        found.ok_or_else(Refusal::no_such_job)
    }

    /// Returns a job of which who asks reads content. That is in the audit before it is answered.
    pub(super) async fn read_job(&self, who: &Who, id: JobId, what: &str) -> Result<Watch, Refusal> {
        let watch = self.job_for(who, id).await?;
        self.record_reading(who, id, what).await?;
        Ok(watch)
    }

    /// Writes that who asks reads content of a job.
    pub(super) async fn record_reading(&self, who: &Who, id: JobId, what: &str) -> Result<(), Refusal> {
        let Some(name) = who.on_record() else { return Ok(()) };
        self.engine().read_by(name, id, what).await.map_err(|why| denied(&why, Refusal::no_such_job))
    }

    /// Checks that who asks may speak for an agent, by the name in the path.
    pub(super) fn speaks_as(&self, who: &Who, agent: &str) -> Result<(), Refusal> {
        let status = match who {
            Who::Known(Identity { role: Role::Agent(name), .. }) if **name == *agent => return Ok(()),
            Who::Known(Identity { role: Role::Agent(own), .. }) => return Err(Refusal::wrong_agent(agent, own)),
            Who::Known(Identity { role: Role::Caller | Role::Admin, .. }) => TokenStatus::WrongScope,
            Who::Anyone { .. } if !self.access().has_token(agent) => return Ok(()),
            Who::Anyone { is_strange: true, .. } => TokenStatus::Unknown,
            Who::Anyone { is_strange: false, .. } => TokenStatus::Missing,
            Who::Unknown(status) => *status,
        };
        Err(Needs::Agent.refused(agent, status))
    }
}
